//! The first words with whatever answers on the server's port.

use std::io;
use std::net::SocketAddr;

use super::dial::{CONNECT_NS, LOOK_NS};
use crate::clock::monotonic_ns;
use crate::control::{ALPN, Channel, Reading, TlsChannel, certificate_fault, wait};
use crate::error::Error;
use crate::event::Cancel;

/// Records of TLS (RFC 8446, section 5.1).
const TLS_ALERT: u8 = 0x15;
const TLS_HANDSHAKE: u8 = 0x16;

/// What became of a handshake that broke no rule.
pub(super) enum Greeting {
    Done,
    /// The connection ended in the midst of it, as those do that a flooded server has no room for.
    CutOff(Error),
}

/// Finishes the TLS handshake.
pub(super) fn greet(
    channel: &mut TlsChannel,
    server: SocketAddr,
    host: &str,
    cancel: &Cancel,
) -> Result<Greeting, Error> {
    let deadline_ns = monotonic_ns() + CONNECT_NS;
    let mut nothing_yet = Vec::new();
    while channel.is_handshaking() {
        if cancel.requested() {
            return Err(Error::Interrupted);
        }
        if monotonic_ns() > deadline_ns {
            return Err(Error::Peer(format!(
                "{server} accepts connections but sends nothing: another program than a linerate \
                 server listens there, or the server hangs"
            )));
        }
        if let Err(error) = channel.flush() {
            return broken(channel, server, &error);
        }
        wait(channel, true, None, &[], monotonic_ns() + LOOK_NS);
        match channel.read(&mut nothing_yet) {
            Ok(Reading::Ended) if channel.is_handshaking() => {
                return cut_off(channel, not_linerate(channel, server, "it closed the connection"));
            }
            Ok(_) => {}
            Err(error) => {
                let refused = unvouched(&error, host);
                return refused.map_or_else(|| broken(channel, server, &error), Err);
            }
        }
    }
    if channel.session().alpn_protocol() != Some(ALPN) {
        return Err(Error::Peer(format!(
            "{server} speaks TLS but isn't a linerate server: check the port (linerate's is 5250)"
        )));
    }
    Ok(Greeting::Done)
}

fn broken(channel: &TlsChannel, server: SocketAddr, error: &io::Error) -> Result<Greeting, Error> {
    let what = not_linerate(channel, server, &error.to_string());
    match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => cut_off(channel, what),
        _ => Err(what),
    }
}

/// A connection that ended before any byte, or within TLS, may be made again. A server of another protocol would
/// send the same again.
fn cut_off(channel: &TlsChannel, error: Error) -> Result<Greeting, Error> {
    match channel.preface().first() {
        None | Some(&TLS_HANDSHAKE) => Ok(Greeting::CutOff(error)),
        Some(_) => Err(error),
    }
}

/// Why a certificate isn't taken that an authority should vouch for; `None` of any other error.
fn unvouched(error: &io::Error, host: &str) -> Option<Error> {
    let inner = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    let rustls::Error::InvalidCertificate(why) = inner else { return None };
    let why = certificate_fault(why, host, "a certificate of --ca");
    Some(Error::Refused(format!(
        "the server's certificate isn't valid under the authority of --ca: {why}"
    )))
}

/// Says what answers on that port, as far as can be told.
fn not_linerate(channel: &TlsChannel, server: SocketAddr, how: &str) -> Error {
    let seen: String = channel
        .preface()
        .iter()
        .map(|byte| if byte.is_ascii_graphic() || *byte == b' ' { *byte as char } else { '.' })
        .collect();
    let said = match channel.preface().first() {
        None => format!("it sent nothing, then: {how}"),
        Some(&(TLS_ALERT | TLS_HANDSHAKE)) => format!("it speaks TLS, but: {how}"),
        Some(_) => format!("it sent \"{seen}\""),
    };
    Error::Peer(format!(
        "{server} isn't a linerate server: {said}; check the port (linerate's is 5250)"
    ))
}
