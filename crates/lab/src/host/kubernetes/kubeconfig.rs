//! kubeconfig files: where the API server is, and who we are.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use saphyr::{LoadableYamlNode as _, Scalar, Yaml};
use serde_json::{Map, Value};

/// The largest kubeconfig, bytes.
const MAX_TEXT: usize = 1 << 20;

/// The deepest nesting of a kubeconfig. The parser and the values that it makes are recursive.
const MAX_DEPTH: usize = 48;

/// One context of the kubeconfig files, with nothing left to look up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kubeconfig {
    /// The URL of the API server.
    pub server: String,
    /// The certificates that sign the server's; absent: those of this system.
    pub authority: Option<Source>,
    /// The namespace, `default` where none is named.
    pub namespace: String,
    /// Who we are.
    pub user: User,
}

/// How a user is known to the API server.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct User {
    /// The client's certificate and its key.
    pub certificate: Option<(Source, Source)>,
    /// A bearer token, or the file that has it.
    pub token: Option<Source>,
    /// A program that prints one of both.
    pub exec: Option<Exec>,
}

impl std::fmt::Debug for User {
    /// Without what is secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("User")
            .field("certificate", &self.certificate.is_some())
            .field("token", &self.token.is_some())
            .field("exec", &self.exec)
            .finish()
    }
}

/// Where bytes come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// The kubeconfig itself.
    Data(Vec<u8>),
}

/// A program that prints an `ExecCredential`.
#[derive(Clone, PartialEq, Eq)]
pub struct Exec {
    /// The program.
    pub command: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Further variables of its environment, which may be secret.
    pub environment: Vec<(String, String)>,
    /// The version of the API that it speaks.
    pub api_version: String,
}

impl std::fmt::Debug for Exec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exec").field("command", &self.command).finish_non_exhaustive()
    }
}

/// Reads a context out of kubeconfig files, each with its path, as kubectl merges them: the first that has a
/// name wins. Without a name the current context is taken.
///
/// # Errors
/// A sentence that names the file or the entry.
pub fn parse(files: &[(PathBuf, String)], context: Option<&str>) -> Result<Kubeconfig, String> {
    let mut read = Vec::with_capacity(files.len());
    for (path, text) in files {
        let value = yaml(text).map_err(|why| format!("{}: {why}", path.display()))?;
        read.push((path.as_path(), value));
    }
    let current = read.iter().find_map(|(_, file)| word(file, "current-context"));
    let Some(name) = context.map(str::to_owned).or(current) else {
        return Err("kubeconfig has no current-context: name one with `context`".to_owned());
    };
    let (_, context) = entry(&read, "contexts", "context", &name)?;
    let cluster_name = word(context, "cluster")
        .ok_or_else(|| format!("kubeconfig: context {name} names no cluster"))?;
    let (path, cluster) = entry(&read, "clusters", "cluster", &cluster_name)?;
    let server = word(cluster, "server")
        .ok_or_else(|| format!("kubeconfig: cluster {cluster_name} has no server"))?;
    for unsupported in ["insecure-skip-tls-verify", "tls-server-name", "proxy-url"] {
        let value = cluster.get(unsupported);
        if value.is_some_and(|value| !matches!(value, Value::Bool(false) | Value::Null)) {
            return Err(format!(
                "kubeconfig: cluster {cluster_name} has {unsupported}, which linerate does not take: \
                 use a server whose certificate its certificate-authority signs, without a proxy"
            ));
        }
    }
    let user = match word(context, "user") {
        None => User::default(),
        Some(user) => {
            let (path, value) = entry(&read, "users", "user", &user)?;
            read_user(path, value).map_err(|why| format!("kubeconfig: user {user} {why}"))?
        }
    };
    let authority = source(path, cluster, "certificate-authority")
        .map_err(|why| format!("kubeconfig: cluster {cluster_name} {why}"))?;
    let namespace = word(context, "namespace").unwrap_or_else(|| "default".to_owned());
    let server = server.trim_end_matches('/').to_owned();
    Ok(Kubeconfig { server, authority, namespace, user })
}

fn read_user(path: &Path, user: &Value) -> Result<User, String> {
    if user.get("auth-provider").is_some_and(|value| !value.is_null()) {
        return Err("has an auth-provider, which Kubernetes has removed: use exec".to_owned());
    }
    let certificate = source(path, user, "client-certificate")?;
    let key = source(path, user, "client-key")?;
    let certificate = match (certificate, key) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return Err("has only one of client-certificate and client-key".to_owned()),
    };
    let token = match (word(user, "tokenFile"), word(user, "token")) {
        (Some(file), _) => Some(Source::File(beside(path, &file))),
        (None, token) => token.map(|token| Source::Data(token.into_bytes())),
    };
    let exec = match user.get("exec").filter(|exec| !exec.is_null()) {
        None => None,
        Some(exec) => Some(read_exec(path, exec)?),
    };
    Ok(User { certificate, token, exec })
}

fn read_exec(path: &Path, exec: &Value) -> Result<Exec, String> {
    let command = word(exec, "command").ok_or("has an exec without command")?;
    let api_version = word(exec, "apiVersion").unwrap_or_default();
    let known = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];
    if !known.contains(&api_version.as_str()) {
        return Err(format!("has an exec of apiVersion '{api_version}': {} is known", known[0]));
    }
    let words = |name: &str| exec.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let args = words("args").iter().filter_map(as_word).collect();
    let environment = words("env")
        .iter()
        .filter_map(|pair| word(pair, "name").zip(word(pair, "value")))
        .collect();
    // A name without a slash is looked up in PATH, as kubectl does.
    let command = match command.contains('/') {
        true => beside(path, &command),
        false => PathBuf::from(command),
    };
    Ok(Exec { command, args, environment, api_version })
}

/// `NAME-data` in base64, else the file `NAME`.
fn source(path: &Path, value: &Value, name: &str) -> Result<Option<Source>, String> {
    let data_name = format!("{name}-data");
    if let Some(data) = word(value, &data_name).filter(|data| !data.is_empty()) {
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(data.trim())
            .map_err(|error| format!("has a {data_name} that is no base64: {error}"))?;
        return Ok(Some(Source::Data(bytes)));
    }
    Ok(word(value, name)
        .filter(|file| !file.is_empty())
        .map(|file| Source::File(beside(path, &file))))
}

/// Relative paths are relative to the kubeconfig's directory.
fn beside(path: &Path, file: &str) -> PathBuf {
    path.parent().unwrap_or_else(|| Path::new("")).join(file)
}

/// The member of the first entry of this name in any of the files, and the file's path.
fn entry<'a>(
    files: &'a [(&'a Path, Value)],
    list: &str,
    member: &str,
    name: &str,
) -> Result<(&'a Path, &'a Value), String> {
    let entries = files.iter().flat_map(|(path, file)| {
        let entries = file.get(list).and_then(Value::as_array).map(Vec::as_slice);
        entries.unwrap_or_default().iter().map(move |entry| (*path, entry))
    });
    let mut known = Vec::new();
    for (path, entry) in entries {
        let entry_name = word(entry, "name").unwrap_or_default();
        match entry.get(member) {
            Some(value) if entry_name == name => return Ok((path, value)),
            _ => known.push(entry_name),
        }
    }
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Err(format!("kubeconfig has no {member} '{name}'; its {list} are: {known}"))
}

fn word(value: &Value, name: &str) -> Option<String> {
    as_word(value.get(name)?)
}

/// YAML reads tokens of digits alone as numbers.
fn as_word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The first document of a YAML text as JSON.
fn yaml(text: &str) -> Result<Value, String> {
    if text.len() > MAX_TEXT {
        return Err(format!("is longer than {MAX_TEXT} bytes, which no kubeconfig is"));
    }
    // A line of many indicators nests as deep without being long.
    let indicators = |line: &str| {
        line.split_whitespace().take_while(|word| matches!(*word, "-" | "?" | ":")).count()
    };
    if text.lines().any(|line| indicators(line) > MAX_DEPTH) {
        return Err("is nested too deeply".to_owned());
    }
    let documents = Yaml::load_from_str(text).map_err(|error| format!("is no YAML: {error}"))?;
    documents.first().map_or(Ok(Value::Null), |document| json(document, 0))
}

fn json(node: &Yaml<'_>, depth: usize) -> Result<Value, String> {
    if depth > MAX_DEPTH {
        return Err("is nested too deeply".to_owned());
    }
    Ok(match node {
        Yaml::Sequence(items) => {
            Value::Array(items.iter().map(|item| json(item, depth + 1)).collect::<Result<_, _>>()?)
        }
        Yaml::Mapping(entries) => {
            let mut object = Map::new();
            for (key, value) in entries {
                if let Some(key) = key.as_str() {
                    object.insert(key.to_owned(), json(value, depth + 1)?);
                }
            }
            Value::Object(object)
        }
        Yaml::Tagged(_, inner) => json(inner, depth + 1)?,
        Yaml::Value(Scalar::String(text)) => Value::String(text.clone().into_owned()),
        Yaml::Value(Scalar::Boolean(is)) => Value::Bool(*is),
        Yaml::Value(Scalar::Integer(number)) => (*number).into(),
        Yaml::Value(Scalar::FloatingPoint(number)) => (**number).into(),
        Yaml::Representation(text, ..) => Value::String(text.clone().into_owned()),
        Yaml::Value(Scalar::Null) | Yaml::Alias(_) | Yaml::BadValue => Value::Null,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"
apiVersion: v1
kind: Config
current-context: lab
contexts:
- name: lab
  context: {cluster: here, user: me, namespace: perf}
- name: other
  context: {cluster: there, user: robot}
clusters:
- name: here
  cluster:
    server: https://10.0.0.1:6443/
    certificate-authority-data: aGFsbG8=
- name: there
  cluster: {server: "https://there", certificate-authority: ca.pem}
- name: blind
  cluster: {server: "https://x", insecure-skip-tls-verify: true}
users:
- name: me
  user: {client-certificate-data: Yw==, client-key: key.pem}
- name: robot
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: get-token
      args: [--region, 1]
      env: [{name: A, value: B}]
"#;

    fn files(text: &str) -> Vec<(PathBuf, String)> {
        vec![("/etc/kube/config".into(), text.to_owned())]
    }

    #[test]
    fn the_current_context_is_read_with_its_files() {
        let read = parse(&files(TWO), None).unwrap();
        assert_eq!(read.server, "https://10.0.0.1:6443");
        assert_eq!(read.namespace, "perf");
        assert_eq!(read.authority, Some(Source::Data(b"hallo".to_vec())));
        let (certificate, key) = read.user.certificate.unwrap();
        assert_eq!(certificate, Source::Data(b"c".to_vec()));
        assert_eq!(key, Source::File("/etc/kube/key.pem".into()));
    }

    #[test]
    fn a_named_context_with_a_plugin_is_read() {
        let read = parse(&files(TWO), Some("other")).unwrap();
        assert_eq!(read.namespace, "default");
        assert_eq!(read.authority, Some(Source::File("/etc/kube/ca.pem".into())));
        let exec = read.user.exec.unwrap();
        assert_eq!(exec.command, Path::new("get-token"));
        assert_eq!(exec.args, ["--region", "1"]);
        assert_eq!(exec.environment, [("A".to_owned(), "B".to_owned())]);
    }

    #[test]
    fn the_first_of_several_files_wins() {
        let first = "current-context: c\ncontexts: [{name: c, context: {cluster: here}}]\n";
        let both = vec![("/a/one".into(), first.to_owned()), ("/b/two".into(), TWO.to_owned())];
        let read = parse(&both, None).unwrap();
        assert_eq!((read.server.as_str(), &read.user), ("https://10.0.0.1:6443", &User::default()));
    }

    #[test]
    fn faults_name_the_entry() {
        for (text, context, part) in [
            ("", None, "no current-context"),
            (TWO, Some("nowhere"), "no context 'nowhere'; its contexts are: lab, other"),
            ("a: [", None, "is no YAML"),
            ("contexts: [{name: x, context: {cluster: y}}]", Some("x"), "no cluster 'y'"),
            (
                "contexts: [{name: x, context: {cluster: y}}]\nclusters: [{name: y, cluster: \
                 {server: s, insecure-skip-tls-verify: true}}]",
                Some("x"),
                "insecure-skip-tls-verify",
            ),
        ] {
            let why = parse(&files(text), context).unwrap_err();
            assert!(why.contains(part), "{why}");
        }
        let deep = "- ".repeat(200_000);
        assert!(parse(&files(&deep), None).unwrap_err().contains("too deeply"));
        let deep = "[".repeat(100_000);
        assert!(parse(&files(&deep), None).is_err());
    }

    #[test]
    fn secrets_are_not_in_debug_output() {
        let user = User { token: Some(Source::Data(b"geheim".to_vec())), ..User::default() };
        assert!(!format!("{user:?}").contains("geheim"));
    }
}
