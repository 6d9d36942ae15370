//! HTTP to a server, with TLS and a credential.

use std::fs;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use linerate_engine::certificate_fault;
use linerate_engine::event::Cancel;
use linerate_results::exchange::{Exchange, Reply, Request, SendError};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use ureq::Agent;
use ureq::http;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::Remote;

/// An answer may take so long: a server may delete millions of documents before it answers.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A connection may take so long.
const CONNECT: Duration = Duration::from_secs(10);

/// The largest answer, bytes.
const MOST_BYTES: u64 = 64 << 20;

/// How often a pause, or a wait for an answer, looks whether it is wanted any more.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Bundles of the certificates that a system trusts.
const SYSTEM_BUNDLES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// The certificates that this system trusts, in PEM.
///
/// # Errors
/// Says where was looked.
pub(super) fn system_authorities() -> Result<Vec<u8>, String> {
    SYSTEM_BUNDLES.iter().find_map(|path| fs::read(path).ok()).ok_or_else(|| {
        format!(
            "this system has no list of trusted certificates ({}): give --ca FILE",
            SYSTEM_BUNDLES.join(", ")
        )
    })
}

/// The certificates of a file.
///
/// # Errors
/// Where it is no PEM.
pub(super) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.map_err(|error| format!("no certificate in PEM: {error}"))?;
    match certificates.is_empty() && !pem.is_empty() {
        true => Err("the file has no certificate in PEM".to_owned()),
        false => Ok(certificates),
    }
}

/// The header of a credential: `Basic USER:PASSWORD`, `Bearer TOKEN` or `ApiKey KEY`.
///
/// # Errors
/// Where it is none of these; the sentence doesn't show it.
pub(super) fn authorization(line: &str) -> Result<String, String> {
    let line = line.trim();
    let known = "give `Basic USER:PASSWORD`, `Bearer TOKEN` or `ApiKey KEY`";
    let (scheme, credential) = line.split_once(' ').ok_or(known)?;
    let credential = credential.trim();
    if credential.is_empty() || credential.chars().any(char::is_control) {
        return Err(known.to_owned());
    }
    match scheme.to_ascii_lowercase().as_str() {
        "basic" if credential.contains(':') => Ok(format!("Basic {}", STANDARD.encode(credential))),
        "basic" => Err("`Basic` needs USER:PASSWORD".to_owned()),
        "bearer" => Ok(format!("Bearer {credential}")),
        "apikey" => Ok(format!("ApiKey {credential}")),
        _ => Err(known.to_owned()),
    }
}

/// The way to a server.
pub(crate) struct Http {
    agent: Agent,
    url: String,
    authorization: Option<String>,
    /// What vouches for the server's certificate.
    authority: String,
    cancel: Cancel,
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Http {
    /// The way to this server. `cancel` ends its pauses and requests.
    ///
    /// # Errors
    /// Where a certificate can't be used.
    pub(super) fn new(remote: &Remote, cancel: &Cancel) -> Result<Self, String> {
        let roots = certificates(&remote.authorities)?;
        let roots = roots.iter().map(|der| Certificate::from_der(der.as_ref()).to_owned());
        let tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(Arc::new(
                rustls::crypto::aws_lc_rs::default_provider(),
            ))
            .root_certs(RootCerts::from(roots))
            .build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(0)
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(TIMEOUT))
            .user_agent(concat!("linerate/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self {
            agent: Agent::new_with_config(config),
            url: remote.url.clone(),
            authorization: remote.authorization.clone(),
            authority: remote.authority.clone(),
            cancel: cancel.clone(),
        })
    }
}

impl Http {
    /// Why no answer came.
    fn fault(&self, error: &ureq::Error) -> SendError {
        use rustls::{Error as Tls, InvalidMessage};
        let tls = match error {
            ureq::Error::HostNotFound => {
                return SendError::Away("its name has no address".to_owned());
            }
            ureq::Error::Rustls(error) => Some(error),
            ureq::Error::Io(error) => error.get_ref().and_then(|inner| inner.downcast_ref()),
            _ => None,
        };
        match tls {
            Some(Tls::InvalidCertificate(why)) => {
                let uri = self.url.parse::<http::Uri>().unwrap_or_default();
                let fault = certificate_fault(why, uri.host().unwrap_or_default(), &self.authority);
                SendError::Untrusted(format!("the certificate of {}: {fault}", self.url))
            }
            Some(Tls::InvalidMessage(InvalidMessage::InvalidContentType)) => {
                SendError::Untrusted(format!(
                    "{} answers without TLS; a server without it has an address of http",
                    self.url
                ))
            }
            _ => SendError::Away(error.to_string()),
        }
    }
}

impl Exchange for Http {
    /// Returns soon where nothing is wanted any more: a thread of its own waits for a server that says nothing.
    fn send(&mut self, request: &Request<'_>) -> Result<Reply, SendError> {
        let away = |why: &str| Err(SendError::Away(why.to_owned()));
        let interrupted = || away("interrupted");
        if self.cancel.requested() {
            return interrupted();
        }
        let kind = match request.path.starts_with("/_bulk") {
            true => "application/x-ndjson",
            false => "application/json",
        };
        let mut built = http::Request::builder()
            .method(request.method)
            .uri(format!("{}{}", self.url, request.path))
            .header("Accept", "application/json");
        if let Some(authorization) = &self.authorization {
            built = built.header("Authorization", authorization);
        }
        if !request.body.is_empty() {
            built = built.header("Content-Type", kind);
        }
        let built = built.body(request.body.to_owned());
        let built = built.map_err(|error| SendError::Away(error.to_string()))?;
        let agent = self.agent.clone();
        let (answered, answer) = sync_channel(1);
        thread::Builder::new()
            .name("index-request".to_owned())
            .spawn(move || {
                // Nobody may wait any more.
                let _gone = answered.send(perform(&agent, built));
            })
            .map_err(|error| {
                SendError::Away(format!("there is no thread left to ask it: {error}"))
            })?;
        loop {
            match answer.recv_timeout(LOOK_EVERY) {
                Ok(reply) => return reply.map_err(|error| self.fault(&error)),
                Err(RecvTimeoutError::Timeout) if self.cancel.requested() => return interrupted(),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return away("no answer came"),
            }
        }
    }

    /// Waits up to a quarter longer, so that many clients of a busy server don't come back at once.
    fn pause(&mut self, time: Duration) -> bool {
        let mut byte = [0];
        let _without = aws_lc_rs::rand::fill(&mut byte);
        let end = Instant::now() + time + time / 4 * u32::from(byte[0]) / 255;
        while Instant::now() < end {
            if self.cancel.requested() {
                return false;
            }
            thread::sleep(LOOK_EVERY.min(end.saturating_duration_since(Instant::now())));
        }
        !self.cancel.requested()
    }
}

/// Sends a request and reads the whole answer.
fn perform(agent: &Agent, request: http::Request<String>) -> Result<Reply, ureq::Error> {
    let sent = match request.body().is_empty() {
        true => {
            let request = agent.configure_request(request.map(|_| ()));
            agent.run(request.allow_non_standard_methods(true).build())
        }
        false => agent.run(request),
    };
    let mut answer = sent?;
    let asked = answer.headers().get("Retry-After").and_then(|value| value.to_str().ok());
    let retry_after = asked.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
    let status = answer.status().as_u16();
    let body = answer.body_mut().with_config().limit(MOST_BYTES).lossy_utf8(true);
    let body = body.read_to_string()?;
    Ok(Reply { status, retry_after, body })
}
