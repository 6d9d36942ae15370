//! The API server's REST: a request and its answer, and watches.

use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use ureq::http::{Request, Response};
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};
use ureq::{Agent, Body};

use super::access::Access;
use super::kubeconfig::Kubeconfig;
use super::trouble::{ClusterError, Trouble};

/// A request and its answer may take so long.
const TIMEOUT: Duration = Duration::from_secs(8);

/// A connection may take so long.
const CONNECT: Duration = Duration::from_secs(4);

/// How often a request is made that the server was too busy for, or that a broken connection ate.
const TRIES: u32 = 4;

/// The longest pause between tries, whatever the server asks for.
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// The largest answer, bytes.
const MAX_ANSWER: u64 = 16 << 20;

/// The longest line of a watch, bytes.
const MAX_EVENT: u64 = 4 << 20;

/// An API server.
pub struct Client {
    access: Access,
    agent: Mutex<Option<Agent>>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("server", &self.access.config().server).finish()
    }
}

/// What is asked of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Post,
    Delete,
}

impl Client {
    /// The server of this configuration.
    pub fn new(config: Kubeconfig) -> Self {
        Self { access: Access::new(config), agent: Mutex::new(None) }
    }

    /// The configuration.
    pub fn config(&self) -> &Kubeconfig {
        self.access.config()
    }

    pub(super) fn access(&self) -> &Access {
        &self.access
    }

    /// The server's version.
    ///
    /// # Errors
    /// Those of a request.
    pub fn version(&self) -> Result<String, ClusterError> {
        let version = self.get("/version")?;
        Ok(version["gitVersion"].as_str().unwrap_or("unknown").to_owned())
    }

    pub(super) fn get(&self, path: &str) -> Result<Value, ClusterError> {
        self.ask(Method::Get, path, None)
    }

    /// Makes an object. One that is there already is taken if it is of the same run: the answer to the
    /// request that made it was lost.
    pub(super) fn create(&self, path: &str, object: &Value) -> Result<Value, ClusterError> {
        match self.request(Method::Post, path, Some(object)) {
            Err(failure) if failure.status == 409 => {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                let found = self.get(&format!("{path}/{name}"))?;
                match found["metadata"]["labels"] == object["metadata"]["labels"] {
                    true => Ok(found),
                    false => Err(failure.error),
                }
            }
            answer => answer.map_err(|failure| failure.error),
        }
    }

    /// Deletes an object with all that it owns; one that is not there is fine.
    pub(super) fn delete(&self, path: &str) -> Result<(), ClusterError> {
        let options = json!({ "propagationPolicy": "Background" });
        match self.request(Method::Delete, path, Some(&options)) {
            Err(failure) if failure.status != 404 => Err(failure.error),
            _ => Ok(()),
        }
    }

    pub(super) fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, ClusterError> {
        self.request(method, path, body).map_err(|failure| failure.error)
    }

    fn request(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Failure> {
        let mut tries = 0;
        loop {
            tries += 1;
            let failure = match self.send(method, path, body, TIMEOUT).and_then(read_answer) {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            if failure.status == 401 && self.renew() {
                continue;
            }
            if tries >= TRIES || !failure.may_pass {
                return Err(failure);
            }
            thread::sleep(failure.pause);
        }
    }

    /// Asks a program for a credential again.
    fn renew(&self) -> bool {
        let is_new = self.access.forget();
        if is_new {
            *self.agent.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        is_new
    }

    /// The events of a watch until the server ends it, an event is enough, or nothing comes any more.
    /// An error is one of the request; a stream that breaks just ends, as the server's end does.
    pub(super) fn watch(
        &self,
        path: &str,
        seconds: u32,
        mut is_enough: impl FnMut(&Value) -> bool,
    ) -> Result<(), ClusterError> {
        let timeout = Duration::from_secs(u64::from(seconds)) + Duration::from_secs(2);
        let path = format!("{path}&watch=true&timeoutSeconds={seconds}");
        let answer = match self.send(Method::Get, &path, None, timeout) {
            // The version to watch from is too old: the caller lists again.
            Err(failure) if failure.status == 410 || failure.may_pass => {
                thread::sleep(failure.pause);
                return Ok(());
            }
            answer => answer.map_err(|failure| failure.error)?,
        };
        let mut lines = BufReader::new(answer.into_body().into_reader());
        loop {
            let mut line = Vec::new();
            match (&mut lines).take(MAX_EVENT).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return Ok(()),
                Ok(_) => {}
            }
            // A stream that was cut gives half an event; an ERROR is that of a version too old.
            let Ok(event) = serde_json::from_slice::<Value>(&line) else { return Ok(()) };
            if event["type"] == "ERROR" || is_enough(&event) {
                return Ok(());
            }
        }
    }

    fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        timeout: Duration,
    ) -> Result<Response<Body>, Failure> {
        let config = |said: String| Failure::config(ClusterError::new(Trouble::Config, said));
        let agent = self.agent().map_err(config)?;
        let credential = self.access.credential().map_err(config)?;
        let name = match method {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Delete => "DELETE",
        };
        let url = format!("{}{path}", self.config().server);
        let mut request = Request::builder()
            .method(name)
            .uri(url)
            .header("Accept", "application/json")
            .header("Content-Type", "application/json");
        if let Some(token) = credential.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let answer = match body {
            None => request.body(()).map_err(ureq::Error::from).and_then(|request| {
                agent.run(agent.configure_request(request).timeout_global(Some(timeout)).build())
            }),
            Some(body) => {
                request.body(body.to_string()).map_err(ureq::Error::from).and_then(|request| {
                    let request = agent.configure_request(request).timeout_global(Some(timeout));
                    agent.run(request.allow_non_standard_methods(true).build())
                })
            }
        };
        let answer = answer.map_err(|error| Failure::transport(&error))?;
        match answer.status().as_u16() {
            200..=299 => Ok(answer),
            status => Err(Failure::refused(status, answer)),
        }
    }

    /// The connections, made when they are first needed.
    fn agent(&self) -> Result<Agent, String> {
        let mut kept = self.agent.lock().unwrap_or_else(PoisonError::into_inner);
        let agent = match kept.take() {
            Some(agent) => agent,
            None => self.make_agent()?,
        };
        *kept = Some(agent.clone());
        Ok(agent)
    }

    fn make_agent(&self) -> Result<Agent, String> {
        let authorities = self.access.authorities()?;
        let roots = authorities.iter().map(|der| Certificate::from_der(der.as_ref()).to_owned());
        let mut tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(Arc::new(
                rustls::crypto::aws_lc_rs::default_provider(),
            ))
            .root_certs(RootCerts::from(roots));
        if let Some((certificates, key)) = self.access.credential()?.certificate {
            let chain: Vec<_> = super::access::certificates_of(&certificates)?
                .iter()
                .map(|der| Certificate::from_der(der.as_ref()).to_owned())
                .collect();
            let key = PrivateKey::from_pem(&key)
                .map_err(|error| format!("client-key has no key in PEM: {error}"))?;
            tls = tls.client_cert(Some(ClientCert::new_with_certs(&chain, key)));
        }
        let config = Agent::config_builder()
            .tls_config(tls.build())
            .http_status_as_error(false)
            .proxy(None)
            .max_redirects(0)
            .timeout_connect(Some(CONNECT))
            .user_agent(concat!("linerate/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Agent::new_with_config(config))
    }
}

/// A request that failed.
#[derive(Debug)]
struct Failure {
    /// The HTTP status; 0 without an answer.
    status: u16,
    error: ClusterError,
    /// Whether the same request may succeed after a pause.
    may_pass: bool,
    pause: Duration,
}

impl Failure {
    fn config(error: ClusterError) -> Self {
        Self { status: 0, error, may_pass: false, pause: Duration::ZERO }
    }

    /// No answer came. What makes an object has a name of its own, so that trying twice is harmless.
    fn transport(error: &ureq::Error) -> Self {
        let late = matches!(error, ureq::Error::Timeout(_));
        let said = match error {
            ureq::Error::HostNotFound => "its name has no address".to_owned(),
            error => error.to_string(),
        };
        Self {
            status: 0,
            error: ClusterError::new(Trouble::Unreachable, said),
            // A second wait would be as long.
            may_pass: !late,
            pause: Duration::from_millis(300),
        }
    }

    fn refused(status: u16, mut answer: Response<Body>) -> Self {
        let after = answer.headers().get("Retry-After").and_then(|value| value.to_str().ok());
        let pause = after.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
        let text =
            answer.body_mut().with_config().limit(MAX_ANSWER).lossy_utf8(true).read_to_string();
        let said = said(status, &text.unwrap_or_default());
        Self {
            status,
            error: ClusterError::new(trouble_of(status, &said), said),
            may_pass: matches!(status, 429 | 500 | 502 | 503 | 504),
            pause: pause.unwrap_or(Duration::from_millis(500)).min(MAX_PAUSE),
        }
    }
}

/// What an answer other than success means. A webhook that refuses an object has "denied the request". Of a missing
/// verb the API server says `User "NAME" cannot VERB`. Whatever else is forbidden was refused by admission.
pub(super) fn trouble_of(status: u16, said: &str) -> Trouble {
    match status {
        401 => Trouble::Unauthorized,
        _ if said.contains(" denied the request") => Trouble::NotAdmitted,
        403 if is_forbidden_by_admission(said) => Trouble::NotAdmitted,
        403 => Trouble::Forbidden,
        _ => Trouble::Refused,
    }
}

fn is_forbidden_by_admission(said: &str) -> bool {
    let is_forbidden = said.contains(" is forbidden: ") || said.contains(": is forbidden");
    let of_user = said.split_once("User \"").and_then(|(_, rest)| rest.split_once('"'));
    let lacks_verb = of_user.is_some_and(|(_, rest)| rest.starts_with(" cannot "));
    is_forbidden && !lacks_verb
}

/// The server's own sentence: the message of a `Status`, or what else it wrote.
pub(super) fn said(status: u16, text: &str) -> String {
    let message = serde_json::from_str::<Value>(text)
        .ok()
        .and_then(|answer| answer["message"].as_str().map(str::to_owned));
    let text = message.unwrap_or_else(|| text.lines().next().unwrap_or_default().to_owned());
    match text.trim() {
        "" => format!("HTTP status {status}"),
        text => text.chars().take(1000).collect(),
    }
}

fn read_answer(mut answer: Response<Body>) -> Result<Value, Failure> {
    let status = answer.status().as_u16();
    let text = answer.body_mut().with_config().limit(MAX_ANSWER).read_to_string();
    let text = text.map_err(|error| Failure::transport(&error))?;
    serde_json::from_str(&text).map_err(|error| Failure {
        status,
        error: ClusterError::new(Trouble::Refused, format!("the answer is no JSON: {error}")),
        may_pass: false,
        pause: Duration::ZERO,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_verb_is_told_from_refusals_of_admission() {
        let webhook = "admission webhook \"policy.example.org\" denied the request";
        for (status, said, trouble) in [
            (403, format!("{webhook}: User \"u\" cannot use this image"), Trouble::NotAdmitted),
            (403, format!("{webhook} without explanation"), Trouble::NotAdmitted),
            (400, format!("{webhook}: no limits are set"), Trouble::NotAdmitted),
            (
                403,
                "pods \"p\" is forbidden: violates PodSecurity \"restricted:latest\": such pods cannot run".into(),
                Trouble::NotAdmitted,
            ),
            (403, "hostNetwork: is forbidden by the policy of this namespace".into(), Trouble::NotAdmitted),
            (
                403,
                "jobs.batch is forbidden: User \"u\" cannot create resource \"jobs\" in API group \"batch\"".into(),
                Trouble::Forbidden,
            ),
            (403, "forbidden: User \"u\" cannot get path \"/version\"".into(), Trouble::Forbidden),
            (403, "no".into(), Trouble::Forbidden),
            (401, "Unauthorized".into(), Trouble::Unauthorized),
            (409, "jobs.batch \"j\" already exists".into(), Trouble::Refused),
        ] {
            assert_eq!(trouble_of(status, &said), trouble, "{status} {said}");
        }
    }
}
