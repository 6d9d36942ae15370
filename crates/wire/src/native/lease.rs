//! Tests on several control connections that are one to the server.

use super::TOKEN_BYTES;
use super::hex::{parse_hex, render_hex};
use super::message::Request;

/// How a test is to be counted by the server, which may be older and know no leases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeaseWish {
    /// By itself.
    #[default]
    None,
    /// The server keeps a place for this connection, and gives a token to those that belong to it.
    Begin,
    /// It belongs to the lease with this token.
    Join([u8; TOKEN_BYTES]),
}

impl LeaseWish {
    /// A request with this wish.
    pub(super) fn request(self, plan: String, exclusive: bool) -> Request {
        let lease = match self {
            Self::Join(token) => Some(render_hex(&token)),
            Self::None | Self::Begin => None,
        };
        Request { plan, exclusive, begins_lease: self == Self::Begin, lease }
    }

    /// The wish of a request that was checked.
    pub(super) fn of(request: &Request) -> Self {
        match request.lease.as_deref().and_then(parse_hex) {
            Some(token) => Self::Join(token),
            None if request.begins_lease => Self::Begin,
            None => Self::None,
        }
    }
}
