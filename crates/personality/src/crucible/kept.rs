//! Where the results of a command line's runs are.

/// Where results are: a store, or an index of a search engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The store.
    pub store: Option<String>,
    /// The address of the index.
    pub index: Option<String>,
    /// A file with the certificates that the index is trusted by.
    pub ca: Option<String>,
    /// A file with the credential for the index.
    pub auth_file: Option<String>,
}
