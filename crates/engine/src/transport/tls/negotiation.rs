//! The handshake of a flow's connection: rustls's, between buffers that are the caller's.

use std::sync::Arc;

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::kernel::KernelConnection;
use rustls::pki_types::ServerName;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedStatus};
use rustls::{ClientConfig, Error, ExtractedSecrets, ServerConfig, SupportedCipherSuite};

/// A connection whose keys are being agreed on. Its configuration must let the keys out.
pub(crate) enum Negotiation {
    Client(UnbufferedClientConnection),
    Server(UnbufferedServerConnection),
}

/// What becomes of keys that have been agreed on.
pub(super) enum Successor {
    Client(KernelConnection<ClientConnectionData>),
    Server(KernelConnection<ServerConnectionData>),
}

/// How a handshake goes on.
enum Next {
    /// There may be more to say.
    Again,
    /// Not before more has come.
    Await,
}

impl Negotiation {
    pub(crate) fn client(
        config: &Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Self, Error> {
        UnbufferedClientConnection::new(Arc::clone(config), name).map(Self::Client)
    }

    pub(crate) fn server(config: Arc<ServerConfig>) -> Result<Self, Error> {
        UnbufferedServerConnection::new(config).map(Self::Server)
    }

    /// Whether the keys aren't agreed on yet.
    pub(super) fn is_open(&self) -> bool {
        match self {
            Self::Client(client) => client.is_handshaking(),
            Self::Server(server) => server.is_handshaking(),
        }
    }

    /// Goes on with whole records at the beginning of `incoming`; says how many bytes of it are done with,
    /// and adds to `said` what is to be sent. Nothing that comes after the handshake may be handed in.
    pub(super) fn advance(
        &mut self,
        incoming: &mut [u8],
        said: &mut Vec<u8>,
    ) -> Result<usize, Error> {
        let mut done = 0;
        loop {
            let rest = incoming.get_mut(done..).unwrap_or_default();
            let (discard, next) = match self {
                Self::Client(client) => follow(client.process_tls_records(rest), said)?,
                Self::Server(server) => follow(server.process_tls_records(rest), said)?,
            };
            done += discard;
            if matches!(next, Next::Await) {
                return Ok(done);
            }
        }
    }

    /// The keys, and what their successors are made by.
    pub(super) fn into_secrets(self) -> Result<(ExtractedSecrets, Successor), Error> {
        match self {
            Self::Client(client) => client
                .dangerous_into_kernel_connection()
                .map(|(secrets, successor)| (secrets, Successor::Client(successor))),
            Self::Server(server) => server
                .dangerous_into_kernel_connection()
                .map(|(secrets, successor)| (secrets, Successor::Server(successor))),
        }
    }
}

impl Successor {
    pub(super) fn suite(&self) -> SupportedCipherSuite {
        match self {
            Self::Client(client) => client.negotiated_cipher_suite(),
            Self::Server(server) => server.negotiated_cipher_suite(),
        }
    }
}

fn follow<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    said: &mut Vec<u8>,
) -> Result<(usize, Next), Error> {
    let next = match status.state? {
        ConnectionState::EncodeTlsData(mut message) => {
            let start = said.len();
            if let Err(EncodeError::InsufficientSize(lack)) = message.encode(&mut []) {
                said.resize(start + lack.required_size, 0);
                let place = said.get_mut(start..).unwrap_or_default();
                message.encode(place).map_err(|error| Error::General(error.to_string()))?;
            }
            Next::Again
        }
        ConnectionState::TransmitTlsData(sent) => {
            sent.done();
            Next::Again
        }
        ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_) => Next::Await,
        // Data before the keys stand, or an end before the beginning.
        _ => return Err(Error::HandshakeNotComplete),
    };
    Ok((status.discard, next))
}
