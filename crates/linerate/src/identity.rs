//! The server's own certificate and key: made at its first start, kept in one PEM file (RFC 7468)
//! that its owner alone can read.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use linerate_engine::access::Identity;
use pem::Pem;

use crate::args::IdentityArgs;
use crate::certificates::read_identity;
use crate::state_directory::{FileBeside, create_private, state_directory};

/// The file's name in its directory.
pub const FILE_NAME: &str = "server.pem";

/// An identity, and what the user should know about it.
pub struct Kept {
    /// The certificate and the key.
    pub identity: Identity,
    /// Where it came from, where that isn't the usual.
    pub note: Option<String>,
}

/// The identity that the flags name: a certificate from elsewhere, or a kept one.
///
/// # Errors
/// As [`read_identity`] and [`server_identity`].
pub fn identity_of(flags: &IdentityArgs) -> Result<Kept, String> {
    match flags.cert.as_deref().zip(flags.key.as_deref()) {
        Some((certificates, key)) => {
            read_identity(certificates, key).map(|identity| Kept { identity, note: None })
        }
        None => server_identity(flags.identity.as_deref()),
    }
}

/// The identity kept in `directory`, or in the user's state directory where none is named; made
/// if there is none yet. Where the user's own directory can't be written the identity is
/// thrown away at the end, and the note says so.
///
/// # Errors
/// Where a file is there that can't be read or isn't an identity, where a named directory can't
/// be written, and where no key can be made.
fn server_identity(directory: Option<&Path>) -> Result<Kept, String> {
    if let Some(directory) = directory {
        return load_or_create(directory).map_err(Trouble::into_text);
    }
    let Some(directory) = state_directory() else {
        return throw_away("no home directory is set (HOME, XDG_STATE_HOME)");
    };
    match load_or_create(&directory) {
        Err(Trouble::Unwritable(why)) => throw_away(&why),
        other => other.map_err(Trouble::into_text),
    }
}

enum Trouble {
    /// Nothing can be kept there.
    Unwritable(String),
    /// Something is there, and wrong.
    Broken(String),
}

impl Trouble {
    fn into_text(self) -> String {
        match self {
            Self::Unwritable(text) | Self::Broken(text) => text,
        }
    }
}

fn load_or_create(directory: &Path) -> Result<Kept, Trouble> {
    let path = directory.join(FILE_NAME);
    if let Some(identity) = load(&path)? {
        return Ok(Kept { identity, note: None });
    }
    let identity = linerate_engine::make_identity().map_err(|e| Trouble::Broken(e.to_string()))?;
    match write_new(&path, &identity) {
        Ok(()) => {
            let note = Some(format!("made this server's key: {}", path.display()));
            Ok(Kept { identity, note })
        }
        // Another server was started at the same time and was faster: its key is the one.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => match load(&path)? {
            Some(identity) => Ok(Kept { identity, note: None }),
            None => Err(Trouble::Unwritable(cant_keep(&path, &error))),
        },
        Err(error) => Err(Trouble::Unwritable(cant_keep(&path, &error))),
    }
}

fn load(path: &Path) -> Result<Option<Identity>, Trouble> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            return Err(Trouble::Unwritable(cant_keep(path, &error)));
        }
        Err(error) => {
            return Err(Trouble::Broken(format!(
                "can't read this server's key {}: {error}; make it readable, or name another \
                 directory with --identity",
                path.display()
            )));
        }
    };
    parse_identity(&text).map(Some).ok_or_else(|| {
        Trouble::Broken(format!(
            "{} doesn't hold one certificate and its private key in PEM; remove it to have a new \
             key made (clients that know the old one will refuse until told), or put the right \
             file back",
            path.display()
        ))
    })
}

/// One certificate and one PKCS #8 key, in any order.
fn parse_identity(text: &[u8]) -> Option<Identity> {
    let parts = pem::parse_many(text).ok()?;
    let only = |tag: &str| -> Option<Vec<u8>> {
        let mut found = parts.iter().filter(|part| part.tag() == tag);
        let part = found.next()?;
        (found.next().is_none() && !part.contents().is_empty()).then(|| part.contents().to_vec())
    };
    Some(Identity {
        certificate_der: only("CERTIFICATE")?,
        chain_der: Vec::new(),
        private_key_der: only("PRIVATE KEY")?,
    })
}

/// The file appears whole or not at all, and never in another's place.
fn write_new(path: &Path, identity: &Identity) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        create_private(directory)?;
    }
    let text = pem::encode_many(&[
        Pem::new("CERTIFICATE", identity.certificate_der.clone()),
        Pem::new("PRIVATE KEY", identity.private_key_der.clone()),
    ]);
    let mut file = FileBeside::create(path, 0o600)?;
    file.write(text.as_bytes())?;
    file.link_new()
}

fn throw_away(why: &str) -> Result<Kept, String> {
    let identity = linerate_engine::make_identity().map_err(|error| error.to_string())?;
    let note = format!(
        "{why}: this server's key is lost when the server ends, and clients that remember it will \
         refuse the next one (--identity DIR keeps the key)"
    );
    Ok(Kept { identity, note: Some(note) })
}

fn cant_keep(path: &Path, error: &io::Error) -> String {
    format!("can't store this server's key in {}: {error}", path.display())
}

#[cfg(test)]
mod tests;
