//! A command line as a whole: what may stand together, and what is missing.

use std::path::Path;

use linerate_wire::iperf3::Code;
use linerate_wire::iperf3::Failure;
use linerate_wire::iperf3::parameters::limits;

use crate::getopt::{LexError, Lexeme, Lexer};

use super::flags::{Side, TABLE};
use super::options::{Direction, Options, Role};

/// Why a command line isn't one.
#[derive(Clone, Debug)]
pub enum UsageError {
    /// A flag that isn't known, or has too much or too little behind it: the C library's words.
    Lexical(LexError),
    /// A value or a combination that can't be.
    Parameter(Box<Failure>),
}

impl From<Failure> for UsageError {
    fn from(failure: Failure) -> Self {
        Self::Parameter(Box::new(failure))
    }
}

/// The flags that say which end we are.
const ROLES: [&str; 2] = ["client", "server"];

/// Reads a command line, without the program's name. Flags are taken in order, so the first wrong
/// one is what the error tells; `--help` and `--version` end the reading, as in the original.
///
/// # Errors
/// The original's errors with the original's numbers; a number that can't be read at all is an
/// error too, where the original takes it for zero. `is_readable` tells whether a file can be read.
pub fn parse_command_line(
    words: &[String],
    is_readable: impl FnOnce(&Path) -> bool,
) -> Result<Options, UsageError> {
    let mut options = Options::default();
    let (mut client_only, mut server_only) = (false, false);
    for lexeme in Lexer::new(TABLE, words) {
        let Lexeme::Flag(flag, value) = lexeme.map_err(UsageError::Lexical)? else {
            continue;
        };
        (flag.meaning.take)(&mut options, value.as_deref().unwrap_or_default())?;
        if options.wants_help || options.wants_version {
            return Ok(options);
        }
        let is_role = ROLES.contains(&flag.long);
        client_only |= flag.meaning.side == Side::Client && !is_role;
        server_only |= flag.meaning.side == Side::Server && !is_role;
    }
    client_only |= options.process.has_client_affinity;
    check_role(&options, client_only, server_only)?;
    check_values(&options)?;
    match &options.server.users {
        Some(users) if !is_readable(users) => Err(Failure::of(Code::USERS_FILE).into()),
        _ => Ok(options),
    }
}

fn check_role(options: &Options, client_only: bool, server_only: bool) -> Result<(), Failure> {
    let has_name =
        options.credentials.username.is_some() || options.credentials.public_key.is_some();
    let has_users = options.server.private_key.is_some() || options.server.users.is_some();
    match &options.role {
        Some(Role::Client(_)) if server_only => Err(Failure::of(Code::SERVER_ONLY)),
        Some(Role::Server) if client_only => Err(Failure::of(Code::CLIENT_ONLY)),
        Some(Role::Client(_))
            if has_name
                && !(options.credentials.username.is_some()
                    && options.credentials.public_key.is_some()) =>
        {
            Err(Failure::of(Code::CLIENT_AUTH))
        }
        Some(Role::Server)
            if has_users
                && !(options.server.private_key.is_some() && options.server.users.is_some()) =>
        {
            Err(Failure::of(Code::SERVER_AUTH))
        }
        None => Err(Failure::of(Code::NO_ROLE)),
        Some(_) => Ok(()),
    }
}

fn check_values(options: &Options) -> Result<(), Failure> {
    let is_client = options.host().is_some();
    let bytes = options.load.length_bytes;
    if is_client
        && options.load.direction == Direction::Up
        && options.connection.rcv_timeout_ms.is_some()
    {
        return Err(Failure::of(Code::REVERSE_RECEIVE_TIMEOUT));
    }
    if options.load.udp && bytes.is_some_and(|bytes| !limits::DATAGRAM_BYTES.contains(&bytes)) {
        return Err(Failure::of(Code::UDP_BLOCK_SIZE));
    }
    if !options.load.udp && bytes.is_some_and(|bytes| bytes > limits::BLOCK_BYTES) {
        return Err(Failure::of(Code::BLOCK_SIZE));
    }
    let given = |count: Option<u64>| count.is_some_and(|count| count > 0);
    let ends =
        [options.load.time_s.is_some(), given(options.load.bytes), given(options.load.blocks)];
    if ends.iter().filter(|end| **end).count() > 1 {
        return Err(Failure::of(Code::END_CONDITIONS));
    }
    if options.load.udp && options.payload.file.is_some() {
        return Err(Failure::of(Code::UDP_FILE));
    }
    Ok(())
}
