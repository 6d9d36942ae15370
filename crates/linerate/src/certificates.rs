//! Certificates and keys that the user has from elsewhere, in PEM (RFC 7468).

use std::fs::File;
use std::io::Read;
use std::path::Path;

use linerate_engine::access::{Authority, Identity};
use linerate_engine::check_identity;

/// The longest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// How the forms of private keys are marked: PKCS #8, PKCS #1, SEC 1.
const KEY_TAGS: [&str; 3] = ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"];

/// A server's identity from a file with its certificate, those that vouch for it behind it, and a file
/// with its private key; the two may be one.
///
/// # Errors
/// Where a file can't be read or doesn't hold what it should, and where the key isn't the
/// certificate's.
pub fn read_identity(certificates: &Path, key: &Path) -> Result<Identity, String> {
    read_identity_of((certificates, "--cert"), (key, "--key"))
}

/// The same, where the files were given with other flags.
///
/// # Errors
/// As [`read_identity`], with these flags.
pub fn read_identity_of(
    (certificates, certificates_flag): (&Path, &str),
    (key, key_flag): (&Path, &str),
) -> Result<Identity, String> {
    let mut chain = read_certificates(certificates, certificates_flag)?.into_iter();
    let Some(certificate_der) = chain.next() else {
        let certificates = certificates.display();
        return Err(format!("{certificates} ({certificates_flag}) has no certificate in PEM"));
    };
    let keys = read_parts(key, key_flag, &KEY_TAGS)?;
    let [private_key_der] = <[Vec<u8>; 1]>::try_from(keys).map_err(|keys| {
        let count = keys.len();
        format!(
            "{} ({key_flag}) has {count} unencrypted private keys in PEM: give a file with one",
            key.display()
        )
    })?;
    let identity = Identity { certificate_der, chain_der: chain.collect(), private_key_der };
    check_identity(&identity).map_err(|why| {
        let (certificates, key) = (certificates.display(), key.display());
        format!(
            "a server can't use {certificates} ({certificates_flag}) with {key} ({key_flag}): {why}"
        )
    })?;
    Ok(identity)
}

/// The certificates of an authority that vouches for servers.
///
/// # Errors
/// Where the file can't be read or holds none.
pub fn read_authority(path: &Path) -> Result<Authority, String> {
    let certificates_der = read_certificates(path, "--ca")?;
    if certificates_der.is_empty() {
        return Err(format!("{} (--ca) has no certificate in PEM", path.display()));
    }
    Ok(Authority { certificates_der })
}

fn read_certificates(path: &Path, flag: &str) -> Result<Vec<Vec<u8>>, String> {
    read_parts(path, flag, &["CERTIFICATE"])
}

/// What stands under these tags in a file.
fn read_parts(path: &Path, flag: &str, tags: &[&str]) -> Result<Vec<Vec<u8>>, String> {
    let wrong =
        |why: &dyn std::fmt::Display| format!("can't read {} ({flag}): {why}", path.display());
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text))
        .map_err(|error| wrong(&error))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(wrong(&"it is longer than 1 MiB, too long for a certificate or key"));
    }
    let parts = pem::parse_many(&text).map_err(|error| wrong(&format!("it isn't PEM: {error}")))?;
    let wanted = parts.into_iter().filter(|part| tags.contains(&part.tag()));
    Ok(wanted.map(|part| part.into_contents()).collect())
}
