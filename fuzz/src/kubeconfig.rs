//! kubeconfig files. The function takes any bytes and panics only when the reader is wrong.

use std::path::PathBuf;

use linerate_lab::host::kubernetes::{Source, parse};

/// Files, behind each other with lines `===` between them, and a context by its name and without one. What is refused
/// is told in one sentence; what is read has a server and paths beside its file.
pub fn kubeconfig(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let files: Vec<(PathBuf, String)> = text
        .split("\n===\n")
        .take(4)
        .zip(1..)
        .map(|(text, number)| (PathBuf::from(format!("/kube/{number}")), text.to_owned()))
        .collect();
    for context in [None, Some("c")] {
        let config = match parse(&files, context) {
            Err(why) => {
                assert!(!why.is_empty());
                continue;
            }
            Ok(config) => config,
        };
        assert!(!config.server.ends_with('/'));
        let certificate = config.user.certificate.iter().flat_map(|(one, key)| [one, key]);
        for source in certificate.chain(&config.user.token).chain(&config.authority) {
            if let Source::File(path) = source {
                assert!(path.is_absolute());
            }
        }
        // What is secret is not printed; a program's name is.
        let user = &config.user;
        assert!(user.exec.is_some() || !format!("{user:?}").contains("sesame"));
        assert_eq!(parse(&files, context), Ok(config));
    }
}
