use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::{FILE_NAME, parse_identity, server_identity};

#[test]
fn made_once_then_kept_and_private() {
    let directory = tempfile::tempdir().unwrap();
    let inner = directory.path().join("made");
    let first = server_identity(Some(&inner)).unwrap();
    assert!(first.note.unwrap().contains("made this server's key"));
    let second = server_identity(Some(&inner)).unwrap();
    assert_eq!(second.note, None);
    assert_eq!(first.identity.certificate_der, second.identity.certificate_der);
    assert_eq!(first.identity.private_key_der, second.identity.private_key_der);
    let mode = fs::metadata(inner.join(FILE_NAME)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(fs::read_dir(&inner).unwrap().count(), 1);
}

#[test]
fn servers_that_start_together_have_one_key() {
    let directory = tempfile::tempdir().unwrap();
    let certificates: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let start = || server_identity(Some(directory.path())).unwrap().identity.certificate_der;
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(certificates.iter().all(|certificate| *certificate == certificates[0]));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_broken_file_is_told_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(FILE_NAME);
    for content in
        ["", "nonsense", "-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n"]
    {
        fs::write(&path, content).unwrap();
        let error = server_identity(Some(directory.path())).err().unwrap();
        assert!(error.contains("server.pem") && error.contains("remove it"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
}

#[test]
fn a_directory_that_cant_be_made_is_told() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = server_identity(Some(&file.path().join("below"))).err().unwrap();
    assert!(error.contains("can't store this server's key"), "{error}");
}

#[test]
fn exactly_one_certificate_and_one_key() {
    let part = |tag: &str| format!("-----BEGIN {tag}-----\nAQID\n-----END {tag}-----\n");
    let (certificate, key) = (part("CERTIFICATE"), part("PRIVATE KEY"));
    assert!(parse_identity(format!("{certificate}{key}").as_bytes()).is_some());
    assert!(parse_identity(format!("{key}{certificate}").as_bytes()).is_some());
    assert!(parse_identity(format!("{certificate}{certificate}{key}").as_bytes()).is_none());
    assert!(parse_identity(key.as_bytes()).is_none());
    assert!(parse_identity(&[0xff; 100]).is_none());
}
