//! Authentication: tokens, encrypted with the server's key, and the file of users.

use std::fs;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rsa::{
    OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, OaepPublicEncryptingKey,
    Pkcs1PrivateDecryptingKey, Pkcs1PublicEncryptingKey, PrivateDecryptingKey, PublicEncryptingKey,
};
use linerate_wire::iperf3::Code;
use linerate_wire::iperf3::token::Token;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, SubjectPublicKeyInfoDer};

use super::{Authority, Credentials, Failure, Padding};
use crate::clock::SECOND_NS;

/// Makes a token for the server that holds the private key.
pub(super) fn make_token(credentials: &Credentials, utc_ns: i64) -> Result<Vec<u8>, Failure> {
    let failed = |why: &str| Failure::of(Code::CLIENT_AUTH).because(why);
    let der = SubjectPublicKeyInfoDer::from_pem_slice(credentials.public_key_pem.as_bytes())
        .map_err(|_| failed("the file has no public key in PEM form"))?;
    let key = PublicEncryptingKey::from_der(der.as_ref())
        .map_err(|_| failed("the public key is no RSA key of 2048 to 8192 bits"))?;
    let seconds = utc_ns / SECOND_NS as i64;
    let token = Token {
        user: credentials.username.clone(),
        password: credentials.password.clone(),
        seconds,
    };
    let plain = token.render();
    let mut sealed = vec![0; key.key_size_bytes()];
    let length = match credentials.padding {
        Padding::Oaep => OaepPublicEncryptingKey::new(key).and_then(|key| {
            Ok(key.encrypt(&OAEP_SHA1_MGF1SHA1, plain.as_bytes(), &mut sealed, None)?.len())
        }),
        Padding::Pkcs1 => Pkcs1PublicEncryptingKey::new(key)
            .and_then(|key| Ok(key.encrypt(plain.as_bytes(), &mut sealed)?.len())),
    };
    let length = length.map_err(|_| failed("user and password are too long for the key"))?;
    sealed.truncate(length);
    Ok(sealed)
}

/// A server's private key, ready for use.
pub(super) struct Gate {
    authority: Authority,
    key: Key,
}

enum Key {
    Oaep(OaepPrivateDecryptingKey),
    Pkcs1(Pkcs1PrivateDecryptingKey),
}

impl Gate {
    /// Reads the key.
    pub(super) fn new(authority: &Authority) -> Result<Self, Failure> {
        let failed = |why: &str| Failure::of(Code::SERVER_AUTH).because(why);
        let der =
            PrivateKeyDer::from_pem_slice(authority.private_key_pem.as_bytes()).map_err(|_| {
                failed("the file has no private key in PEM form, or it has a passphrase")
            })?;
        let pkcs8 = match &der {
            PrivateKeyDer::Pkcs8(key) => key.secret_pkcs8_der().to_vec(),
            PrivateKeyDer::Pkcs1(key) => pkcs8_of_pkcs1(key.secret_pkcs1_der()),
            _ => return Err(failed("the private key is no RSA key")),
        };
        let key = PrivateDecryptingKey::from_pkcs8(&pkcs8)
            .map_err(|_| failed("the private key is no RSA key of 2048 to 8192 bits"))?;
        let unusable = |_| failed("the private key can't be used");
        let key = match authority.padding {
            Padding::Oaep => Key::Oaep(OaepPrivateDecryptingKey::new(key).map_err(unusable)?),
            Padding::Pkcs1 => Key::Pkcs1(Pkcs1PrivateDecryptingKey::new(key).map_err(unusable)?),
        };
        fs::metadata(&authority.users_file)
            .map_err(|error| Failure::system(Code::USERS_FILE, &error))?;
        Ok(Self { authority: authority.clone(), key })
    }

    /// Whether a token lets its bearer test. Whatever is wrong with it, the same is done: a bad
    /// padding is decrypted to nothing, an unknown user has a random password.
    pub(super) fn lets_in(&self, sealed: &[u8], utc_ns: i64) -> bool {
        let mut plain = vec![0; 8192 / 8];
        let opened = match &self.key {
            Key::Oaep(key) => key.decrypt(&OAEP_SHA1_MGF1SHA1, sealed, &mut plain, None),
            Key::Pkcs1(key) => key.decrypt(sealed, &mut plain),
        };
        let opened = opened.map(|plain| plain.to_vec()).unwrap_or_default();
        let token = Token::parse(&opened).unwrap_or_default();
        let skew_s = token.seconds.saturating_sub(utc_ns / SECOND_NS as i64).unsigned_abs();
        let in_time = skew_s <= u64::from(self.authority.time_skew_s);
        // The file is read for each test, so that it may change while the server runs.
        // A line that isn't UTF-8 names no user. The other lines stay valid.
        let users = fs::read(&self.authority.users_file).unwrap_or_default();
        let users = String::from_utf8_lossy(&users);
        let given = digest(&SHA256, format!("{{{}}}{}", token.user, token.password).as_bytes());
        let given: String = given.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let mut known = false;
        for (user, hash) in users.lines().filter_map(user_of) {
            let same = verify_slices_are_equal(hash.as_bytes(), given.as_bytes()).is_ok();
            known |= user == token.user && same;
        }
        known && in_time && !token.user.is_empty()
    }
}

/// A line of the users file: `user,hash`; lines that begin with `#` are comments.
fn user_of(line: &str) -> Option<(&str, String)> {
    let line = line.trim();
    let (user, hash) = line.split_once(',').filter(|_| !line.starts_with('#'))?;
    Some((user.trim(), hash.trim().to_ascii_lowercase()))
}

/// Wraps a key of PKCS#1 (RFC 8017, A.1.2) as PKCS#8 (RFC 5208): SEQUENCE { version 0, { rsaEncryption,
/// NULL }, OCTET STRING }.
fn pkcs8_of_pkcs1(pkcs1: &[u8]) -> Vec<u8> {
    const HEAD: [u8; 18] = [
        0x02, 0x01, 0x00, 0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01,
        0x01, 0x05, 0x00,
    ];
    let inner = element(0x04, pkcs1);
    element(0x30, &[HEAD.as_slice(), &inner].concat())
}

/// One element of DER (X.690): tag, length, content.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let digits: Vec<u8> = length.iter().copied().skip_while(|byte| *byte == 0).collect();
    let mut bytes = vec![tag];
    match content.len() {
        short @ 0..=0x7f => bytes.push(u8::try_from(short).unwrap_or(0)),
        _ => {
            bytes.push(0x80 | u8::try_from(digits.len()).unwrap_or(0));
            bytes.extend_from_slice(&digits);
        }
    }
    bytes.extend_from_slice(content);
    bytes
}
