//! netserver's options: one table that the parser, `-h` and the tests read.

use linerate_measure::plan::Family;

use super::blame;
use super::flags::set_family;
use super::number::{pair_of_first, parse_port, parse_size};
use super::options::CONTROL_PORT;
use crate::getopt::{Flag, Takes, parse_words, render_flags};

/// What was typed.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// `-D`.
    pub foreground: bool,
    /// `-d`: tell what happens.
    pub debug: bool,
    /// `-h`.
    pub help: bool,
    /// `-V`.
    pub version: bool,
    /// `-p`: the port to listen on.
    pub port: u16,
    /// `-L`: the address or name to listen on; absent: all.
    pub host: Option<String>,
    /// `-4`, `-6`, or beside `-L`.
    pub family: Option<Family>,
    /// `-Z`: what clients must say first.
    pub passphrase: Option<String>,
    /// `-f`: one client after the other.
    pub serial: bool,
    /// `-n`: the number of processors reported to clients.
    pub cpu_count: Option<u32>,
    /// `--busy-poll`.
    pub busy_poll: bool,
    /// `--other-addresses`.
    pub other_addresses: bool,
}

/// What a flag does with its argument, which is empty where there is none.
pub type Take = fn(&mut ServerOptions, &str) -> Result<(), String>;

const fn flag(
    short: char,
    takes: Takes,
    value_name: &'static str,
    help: &'static str,
    take: Take,
) -> Flag<Take> {
    Flag::letter(short, takes, value_name, help, take)
}

/// The options of netserver.
pub const FLAGS: &[Flag<Take>] = &[
    flag('d', Takes::Nothing, "", "Tell what happens", |o, _| {
        o.debug = true;
        Ok(())
    }),
    flag('D', Takes::Nothing, "", "Stay in the foreground", |o, _| {
        o.foreground = true;
        Ok(())
    }),
    flag('f', Takes::Nothing, "", "One client after the other", |o, _| {
        o.serial = true;
        Ok(())
    }),
    flag('h', Takes::Nothing, "", "Show this text", |o, _| {
        o.help = true;
        Ok(())
    }),
    flag('L', Takes::Value, "name,family", "The address to listen on (all)", |o, v| {
        let (host, family) = pair_of_first(v);
        o.host = host.map(str::to_owned).or(o.host.take());
        set_family(&mut o.family, family)
    }),
    flag('n', Takes::Value, "cpus", "Number of processors reported to clients", |o, v| {
        o.cpu_count = Some(parse_size(v)?);
        Ok(())
    }),
    flag('N', Takes::Nothing, "", "Tell nothing, whatever clients ask", |o, _| {
        o.debug = false;
        Ok(())
    }),
    flag('p', Takes::Value, "port", "The port to listen on (12865)", |o, v| {
        o.port = parse_port(v)?;
        Ok(())
    }),
    flag('v', Takes::Value, "level", "Verbosity: from 2 on as -d", |o, v| {
        o.debug |= parse_size(v)? > 1;
        Ok(())
    }),
    flag('V', Takes::Nothing, "", "Show the version", |o, _| {
        o.version = true;
        Ok(())
    }),
    flag('Z', Takes::Value, "passphrase", "What clients must say first", |o, v| {
        o.passphrase = Some(v.to_owned());
        Ok(())
    }),
    flag('4', Takes::Nothing, "", "IPv4", |o, _| {
        o.family = Some(Family::Ipv4);
        Ok(())
    }),
    flag('6', Takes::Nothing, "", "IPv6", |o, _| {
        o.family = Some(Family::Ipv6);
        Ok(())
    }),
    Flag::name(
        "busy-poll",
        "Answer TCP_RR and UDP_RR without sleep, on all processors but one (ours alone)",
        |o, _| {
            o.busy_poll = true;
            Ok(())
        },
    ),
    Flag::name(
        "other-addresses",
        "Datagrams to and from other addresses than the client's, too (ours alone)",
        |o, _| {
            o.other_addresses = true;
            Ok(())
        },
    ),
];

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            foreground: false,
            debug: false,
            help: false,
            version: false,
            port: CONTROL_PORT,
            host: None,
            family: None,
            passphrase: None,
            serial: false,
            cpu_count: None,
            busy_poll: false,
            other_addresses: false,
        }
    }
}

/// Reads a command line, without the program's name, which complaints begin with. The options come
/// with a sentence about the first word that is not looked at.
///
/// # Errors
/// What is said of a command line that makes no sense, or asks for help.
pub fn parse_server_command_line(
    name: &str,
    words: &[String],
) -> Result<(ServerOptions, Option<String>), String> {
    let mut options = ServerOptions::default();
    let lexed = parse_words(FLAGS, words)
        .map_err(|error| format!("{name}: {error}\n{}", server_usage()))?;
    for (flag, value) in lexed.flags {
        (flag.meaning)(&mut options, value.as_deref().unwrap_or_default())
            .map_err(|sentence| blame(name, flag.short, &sentence))?;
    }
    let note = lexed.operands.first();
    let note =
        note.map(|word| format!("{name}: '{word}' belongs to no option and is not looked at\n"));
    if options.help { Err(server_usage()) } else { Ok((options, note)) }
}

/// What `-h` tells.
pub fn server_usage() -> String {
    format!("\nUsage: netserver [options]\n\nOptions:\n{}", render_flags(FLAGS))
}
