//! Indices of OpenSearch and Elasticsearch: where one is, who we are to it, and sending runs there.

mod http;
mod live;

use std::env;
use std::fs;
use std::io::Read;
use std::path::Path;

use linerate_engine::event::Cancel;
use linerate_results::export::CdmVersion;
use linerate_results::export::client::{Index, IndexError};

pub(crate) use http::Http;
pub(crate) use live::{Live, report_waiting};

use crate::args::ServerArgs;

/// Holds a credential for an index, where no file does.
const VARIABLE: &str = "LINERATE_INDEX_AUTH";

/// A credential may have so many bytes.
const MOST_AUTH_BYTES: u64 = 64 << 10;

/// How often in a row an index may fail for somebody who waits: two minutes.
pub(crate) const ATTENDED_TRIES: u32 = 7;

/// An index that was named.
#[derive(Clone)]
pub(crate) struct Target {
    /// Its address, without a slash at the end.
    url: String,
    /// The value of the header `Authorization`.
    authorization: Option<String>,
    /// The certificates that it is trusted by, in PEM.
    authorities: Vec<u8>,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Target {
    /// The index of this address, which the flag `flag` gave, with the credential of the file or of the environment.
    ///
    /// # Errors
    /// A sentence for the user.
    pub(crate) fn new(flag: &str, url: &str, server: &ServerArgs) -> Result<Self, String> {
        let url = checked(flag, url)?;
        let line = match &server.auth_file {
            Some(path) => Some((
                format!("--auth-file {}", path.display()),
                read_line(path).map_err(|why| format!("--auth-file {}: {why}", path.display()))?,
            )),
            None => env::var(VARIABLE)
                .ok()
                .filter(|line| !line.trim().is_empty())
                .map(|line| (VARIABLE.to_owned(), line)),
        };
        let authorization = match line {
            Some((origin, line)) => {
                Some(http::authorization(&line).map_err(|why| format!("{origin}: {why}"))?)
            }
            None => None,
        };
        let authorities = match (url.starts_with("https:"), &server.ca) {
            (false, Some(_)) => {
                return Err(format!("--ca needs an address of https, and {flag} gives {url}"));
            }
            (false, None) => Vec::new(),
            (true, Some(path)) => {
                fs::read(path).map_err(|error| format!("--ca {}: {error}", path.display()))?
            }
            (true, None) => http::system_authorities()?,
        };
        http::certificates(&authorities).map_err(|why| format!("--ca: {why}"))?;
        Ok(Self { url, authorization, authorities })
    }

    /// Its address, which the store knows it by.
    pub(crate) fn url(&self) -> &str {
        &self.url
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
        let http = Http::new(self, cancel).map_err(IndexError::Refused)?;
        Index::open(http, version, tries)
    }
}

/// An address as it is kept: scheme, host, port and path alone. One that may have a credential is never shown.
fn checked(flag: &str, url: &str) -> Result<String, String> {
    if url.contains('@') {
        return Err(format!(
            "{flag}: the address has an @, as one with a credential, which every user of this machine could see; give \
             the credential in a file with --auth-file, or in {VARIABLE}, and an @ of a path as %40"
        ));
    }
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let Some(rest) = rest else {
        return Err(format!("{flag} {url}: give an address such as https://search.example:9200"));
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_strange = |c: char| c.is_whitespace() || c.is_control() || !c.is_ascii();
    if authority.is_empty() || rest.contains(['?', '#']) || rest.contains(is_strange) {
        return Err(format!("{flag} {url}: give an address such as https://search.example:9200"));
    }
    Ok(url.trim_end_matches('/').to_owned())
}

fn read_line(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    file.take(MOST_AUTH_BYTES).read_to_string(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

#[cfg(test)]
mod tests;
