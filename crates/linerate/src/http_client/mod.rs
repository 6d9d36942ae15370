//! Servers that runs are sent to over HTTP: where one is, who we are to it, and how it is trusted.

mod client;

use std::env;
use std::fs;
use std::io::Read;
use std::path::Path;

use linerate_engine::event::Cancel;

pub(crate) use client::Http;

use crate::args::ServerArgs;

/// A credential may have so many bytes.
const MOST_AUTH_BYTES: u64 = 64 << 10;

/// A kind of server.
#[derive(Debug)]
pub(crate) struct Service {
    /// The variable that holds a credential for it, where no file does.
    pub(crate) variable: &'static str,
    /// What its address looks like.
    pub(crate) example: &'static str,
}

/// A server that was named.
#[derive(Clone)]
pub(crate) struct Remote {
    /// Its address, without a slash at the end.
    url: String,
    /// The value of the header `Authorization`.
    authorization: Option<String>,
    /// The certificates that it is trusted by, in PEM.
    authorities: Vec<u8>,
    /// What these are, for sentences.
    authority: String,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Remote {
    /// The server of this address, which the flag `flag` gave, with the credential of the file or of the environment.
    ///
    /// # Errors
    /// A sentence for the user.
    pub(crate) fn new(
        service: &Service,
        flag: &str,
        url: &str,
        server: &ServerArgs,
    ) -> Result<Self, String> {
        let url = checked(service, flag, url)?;
        let line = match &server.auth_file {
            Some(path) => Some((
                format!("--auth-file {}", path.display()),
                read_line(path).map_err(|why| format!("--auth-file {}: {why}", path.display()))?,
            )),
            None => env::var(service.variable)
                .ok()
                .filter(|line| !line.trim().is_empty())
                .map(|line| (service.variable.to_owned(), line)),
        };
        let authorization = match line {
            Some((origin, line)) => {
                Some(client::authorization(&line).map_err(|why| format!("{origin}: {why}"))?)
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
            (true, None) => client::system_authorities()?,
        };
        client::certificates(&authorities).map_err(|why| format!("--ca: {why}"))?;
        let authority = match &server.ca {
            Some(path) => format!("a certificate of --ca {}", path.display()),
            None => "one that this system trusts: give that one with --ca FILE".to_owned(),
        };
        Ok(Self { url, authorization, authorities, authority })
    }

    /// Its address, which the store knows it by.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Whether its address has a path.
    pub(crate) fn has_path(&self) -> bool {
        self.url.split_once("://").is_some_and(|(_, rest)| rest.contains('/'))
    }

    /// The way to it. `cancel` ends the client's pauses and requests.
    ///
    /// # Errors
    /// Where a certificate can't be used.
    pub(crate) fn client(&self, cancel: &Cancel) -> Result<Http, String> {
        Http::new(self, cancel)
    }
}

/// An address as it is kept: scheme, host, port and path alone. One that may have a credential is never shown.
fn checked(service: &Service, flag: &str, url: &str) -> Result<String, String> {
    let Service { variable, example } = service;
    if url.contains('@') {
        return Err(format!(
            "{flag}: the address has an @, as one with a credential, which every user of this machine could see; give \
             the credential in a file with --auth-file, or in {variable}, and an @ of a path as %40"
        ));
    }
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let Some(rest) = rest else {
        return Err(format!("{flag} {url}: give an address such as {example}"));
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_strange = |c: char| c.is_whitespace() || c.is_control() || !c.is_ascii();
    if authority.is_empty() || rest.contains(['?', '#']) || rest.contains(is_strange) {
        return Err(format!("{flag} {url}: give an address such as {example}"));
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
