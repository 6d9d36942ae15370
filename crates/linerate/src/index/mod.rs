//! Indices of OpenSearch and Elasticsearch, and sending runs there.

mod live;

use linerate_engine::event::Cancel;
use linerate_measure::run::exit;
use linerate_results::export::CdmVersion;
use linerate_results::export::client::{Index, IndexError};

pub(crate) use live::{Live, report_unserved, report_waiting};

use crate::args::ServerArgs;
use crate::http_client::{Http, Remote, Service};

const SERVICE: Service =
    Service { variable: "LINERATE_INDEX_AUTH", example: "https://search.example:9200" };

/// How often in a row an index may fail for somebody who waits: two minutes.
pub(crate) const ATTENDED_TRIES: u32 = 7;

/// The exit code of a command that an index has stopped.
pub(crate) fn exit_code(error: &IndexError) -> u8 {
    match error {
        IndexError::Away(_) => exit::UNREACHABLE,
        IndexError::Untrusted(_) => exit::REFUSED,
        IndexError::Interrupted => exit::INTERRUPTED,
        _ => exit::FAILED,
    }
}

/// An index that was named.
#[derive(Clone, Debug)]
pub(crate) struct Target(Remote);

impl Target {
    /// The index of this address, which the flag `flag` gave, with the credential of the file or of the environment.
    ///
    /// # Errors
    /// A sentence for the user.
    pub(crate) fn new(flag: &str, url: &str, server: &ServerArgs) -> Result<Self, String> {
        Remote::new(&SERVICE, flag, url, server).map(Self)
    }

    /// Its address, which the store knows it by.
    pub(crate) fn url(&self) -> &str {
        self.0.url()
    }

    /// Asks it what it is.
    ///
    /// # Errors
    /// Where no index answers.
    pub(crate) fn open(
        &self,
        version: Option<CdmVersion>,
        tries: u32,
        cancel: &Cancel,
    ) -> Result<Index<Http>, IndexError> {
        let http = self.0.client(cancel).map_err(IndexError::Refused)?;
        Index::open(http, version, tries)
    }
}
