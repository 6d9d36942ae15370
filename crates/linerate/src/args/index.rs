//! The flags that say where an index is.

use std::path::PathBuf;

use clap::Args;
use linerate_results::export::CdmVersion;

/// The flags of commands that send runs to an index while they measure.
#[derive(Args, Clone, Debug, Default)]
pub struct IndexArgs {
    /// Send results to this OpenSearch or Elasticsearch, too, cell by cell
    #[arg(long = "index", value_name = "URL")]
    pub url: Option<String>,
    /// How the index is reached.
    #[command(flatten)]
    pub server: ServerArgs,
    /// The version of the Common Data Model: v7dev to v10dev [default: the newest that the index has]
    #[arg(long, value_name = "VERSION", value_parser = cdm_version)]
    pub cdm: Option<CdmVersion>,
}

/// How an index is trusted, and who we are to it.
#[derive(Args, Clone, Debug, Default)]
pub struct ServerArgs {
    /// Trust the certificates of FILE (PEM) at the index [default: the system's]
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// A file with `Basic USER:PASSWORD`, `Bearer TOKEN` or `ApiKey KEY` for the index [default: LINERATE_INDEX_AUTH]
    #[arg(long, value_name = "FILE")]
    pub auth_file: Option<PathBuf>,
}

/// A version of the Common Data Model.
///
/// # Errors
/// Names those that are known.
pub(crate) fn cdm_version(text: &str) -> Result<CdmVersion, String> {
    CdmVersion::of_name(text).ok_or_else(|| {
        let known = CdmVersion::ALL.map(CdmVersion::name).join(", ");
        format!("'{text}' is no version of the Common Data Model: known are {known}")
    })
}
