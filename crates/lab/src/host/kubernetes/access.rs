//! Who we are to the API server: certificates, tokens and the programs that print them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};

use super::kubeconfig::{self, Exec, Kubeconfig, Source};

/// Where a pod finds what it may use to talk to its own cluster.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Bundles of the certificates that a system trusts.
const SYSTEM_BUNDLES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// Finds the cluster: the named kubeconfig, `KUBECONFIG`, `~/.kube/config`, or what a pod has.
///
/// # Errors
/// A sentence that says where was looked.
pub fn find(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Kubeconfig, String> {
    let named: Vec<PathBuf> = match kubeconfig {
        Some(path) => vec![path.to_owned()],
        None => env::var_os("KUBECONFIG")
            .map(|paths| env::split_paths(&paths).filter(|p| !p.as_os_str().is_empty()).collect())
            .unwrap_or_default(),
    };
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".kube/config"));
    let paths: Vec<PathBuf> = match named.as_slice() {
        [] => home().into_iter().filter(|path| path.exists()).collect(),
        _ => named,
    };
    if paths.is_empty() {
        return in_cluster(Path::new(SERVICE_ACCOUNT)).ok_or_else(|| {
            "no cluster is known: there is no KUBECONFIG, no ~/.kube/config, and this is no pod; set \
             KUBECONFIG, or `kubeconfig` of the host"
                .to_owned()
        });
    }
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let text = fs::read_to_string(&path)
            .map_err(|error| format!("{} can't be read: {error}", path.display()))?;
        files.push((path, text));
    }
    kubeconfig::parse(&files, context)
}

fn in_cluster(directory: &Path) -> Option<Kubeconfig> {
    let host = env::var("KUBERNETES_SERVICE_HOST").ok()?;
    let port = env::var("KUBERNETES_SERVICE_PORT").unwrap_or_else(|_| "443".to_owned());
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let token = directory.join("token");
    let namespace = fs::read_to_string(directory.join("namespace"));
    token.exists().then(|| Kubeconfig {
        server: format!("https://{host}:{port}"),
        authority: Some(Source::File(directory.join("ca.crt"))),
        namespace: namespace.map_or_else(|_| "default".to_owned(), |n| n.trim().to_owned()),
        user: kubeconfig::User { token: Some(Source::File(token)), ..kubeconfig::User::default() },
    })
}

/// What is presented to the API server.
#[derive(Clone, Default)]
pub(super) struct Credential {
    /// The bearer token.
    pub(super) token: Option<String>,
    /// The client's certificates and key, PEM.
    pub(super) certificate: Option<(Vec<u8>, Vec<u8>)>,
}

/// Gives the credential, anew where it may have changed.
pub(super) struct Access {
    config: Kubeconfig,
    /// What the program printed last.
    printed: Mutex<Option<Credential>>,
}

impl Access {
    pub(super) fn new(config: Kubeconfig) -> Self {
        Self { config, printed: Mutex::new(None) }
    }

    pub(super) fn config(&self) -> &Kubeconfig {
        &self.config
    }

    /// The credential of now. Files of tokens are read again, since they are replaced; a program is
    /// executed once.
    pub(super) fn credential(&self) -> Result<Credential, String> {
        let user = &self.config.user;
        let mut credential = Credential::default();
        if let Some((certificate, key)) = &user.certificate {
            credential.certificate = Some((read(certificate)?, read(key)?));
        }
        if let Some(token) = &user.token {
            let token = String::from_utf8(read(token)?);
            let token = token.map_err(|_| "the token is no text".to_owned())?;
            credential.token = Some(token.trim().to_owned());
        }
        if let Some(exec) = &user.exec {
            let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
            let from_program = match printed.take() {
                Some(printed) => printed,
                None => execute(exec)?,
            };
            *printed = Some(from_program.clone());
            credential.token = credential.token.or(from_program.token);
            credential.certificate = credential.certificate.or(from_program.certificate);
        }
        Ok(credential)
    }

    /// The server did not accept the credential: a program is executed again. False where nothing would
    /// change.
    pub(super) fn forget(&self) -> bool {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }

    /// How TLS is spoken with the server.
    pub(super) fn tls(&self) -> Result<Arc<rustls::ClientConfig>, String> {
        let mut roots = RootCertStore::empty();
        for certificate in self.authorities()? {
            roots.add(certificate).map_err(|error| format!("a certificate-authority: {error}"))?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots);
        let config = match self.credential()?.certificate {
            None => builder.with_no_client_auth(),
            Some((certificates, key)) => {
                let chain = certificates_of(&certificates)?;
                let key = PrivateKeyDer::from_pem_slice(&key)
                    .map_err(|error| format!("client-key has no key in PEM: {error}"))?;
                builder
                    .with_client_auth_cert(chain, key)
                    .map_err(|error| format!("the client certificate can't be used: {error}"))?
            }
        };
        Ok(Arc::new(config))
    }

    /// The certificates that may sign the server's.
    pub(super) fn authorities(&self) -> Result<Vec<CertificateDer<'static>>, String> {
        let bytes = match &self.config.authority {
            Some(source) => read(source)?,
            None if self.config.server.starts_with("http://") => return Ok(Vec::new()),
            None => system_bundle()?,
        };
        certificates_of(&bytes)
    }
}

fn system_bundle() -> Result<Vec<u8>, String> {
    let named = env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let paths = named.into_iter().chain(SYSTEM_BUNDLES.into_iter().map(PathBuf::from));
    paths.into_iter().find_map(|path| fs::read(path).ok()).ok_or_else(|| {
        "the kubeconfig has no certificate-authority, and this system has no bundle of certificates: \
         add one of both"
            .to_owned()
    })
}

pub(super) fn certificates_of(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.map_err(|error| format!("no certificate in PEM: {error}"))?;
    if certificates.is_empty() {
        return Err("a certificate of the kubeconfig is no PEM".to_owned());
    }
    Ok(certificates)
}

fn read(source: &Source) -> Result<Vec<u8>, String> {
    match source {
        Source::Data(bytes) => Ok(bytes.clone()),
        Source::File(path) => {
            fs::read(path).map_err(|error| format!("{} can't be read: {error}", path.display()))
        }
    }
}

/// Executes a program that prints an `ExecCredential`. It may not ask anything.
fn execute(exec: &Exec) -> Result<Credential, String> {
    let name = exec.command.display();
    let input = json!({
        "apiVersion": exec.api_version,
        "kind": "ExecCredential",
        "spec": { "interactive": false },
    });
    let output = Command::new(&exec.command)
        .args(&exec.args)
        .envs(exec.environment.iter().map(|(name, value)| (name, value)))
        .env("KUBERNETES_EXEC_INFO", input.to_string())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("the kubeconfig's program {name} can't be started: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim();
        return Err(format!("the kubeconfig's program {name} failed ({}): {said}", output.status));
    }
    let printed: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("the kubeconfig's program {name} printed no JSON: {error}"))?;
    let word =
        |name: &str| printed.pointer(&format!("/status/{name}"))?.as_str().map(str::to_owned);
    let bytes = |name: &str| word(name).map(String::into_bytes);
    let certificate = bytes("clientCertificateData").zip(bytes("clientKeyData"));
    let token = word("token");
    if token.is_none() && certificate.is_none() {
        return Err(format!("the kubeconfig's program {name} printed no token and no certificate"));
    }
    Ok(Credential { token, certificate })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(text: &str) -> Access {
        let exec = Exec {
            command: "sh".into(),
            args: vec!["-c".to_owned(), text.to_owned()],
            environment: vec![("WORD".to_owned(), "sesame".to_owned())],
            api_version: "client.authentication.k8s.io/v1".to_owned(),
        };
        let user = kubeconfig::User { exec: Some(exec), ..kubeconfig::User::default() };
        Access::new(Kubeconfig { user, ..Kubeconfig::default() })
    }

    #[test]
    fn a_program_prints_the_token_once() {
        let folder = tempfile::tempdir().unwrap();
        let count = folder.path().join("count");
        let access = program(&format!(
            "case \"$KUBERNETES_EXEC_INFO\" in *ExecCredential*) ;; *) exit 3;; esac\n\
             echo x >> '{0}'\nprintf '{{\"status\":{{\"token\":\"%s\"}}}}' $WORD",
            count.display()
        ));
        for _ in 0..3 {
            assert_eq!(access.credential().unwrap().token.as_deref(), Some("sesame"));
        }
        assert_eq!(fs::read_to_string(&count).unwrap(), "x\n");
        assert!(access.forget());
        assert!(!access.forget());
        access.credential().unwrap();
        assert_eq!(fs::read_to_string(&count).unwrap(), "x\nx\n");
    }

    #[test]
    fn a_program_that_fails_is_quoted() {
        let why = |text: &str| program(text).credential().err().unwrap();
        assert!(why("echo who are you >&2; exit 1").contains("(exit status: 1): who are you"));
        assert!(why("echo hello").contains("printed no JSON"));
        assert!(why("echo '{}'").contains("no token and no certificate"));
    }

    #[test]
    fn files_of_tokens_are_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        fs::write(&file, "one\n").unwrap();
        let user = kubeconfig::User {
            token: Some(Source::File(file.clone())),
            ..kubeconfig::User::default()
        };
        let access = Access::new(Kubeconfig { user, ..Kubeconfig::default() });
        assert_eq!(access.credential().unwrap().token.as_deref(), Some("one"));
        fs::write(&file, "two").unwrap();
        assert_eq!(access.credential().unwrap().token.as_deref(), Some("two"));
    }
}
