//! netserver's command line.

use std::io::{self, BufRead as _, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};

use linerate_engine::HandedSockets;
use linerate_engine::error::Error;
use linerate_engine::event::Cancel;
use linerate_engine::netperf::{Server, ServerOptions};
use linerate_measure::plan::Family;
use linerate_measure::{Dialect, Role};
use linerate_personality::netperf::server_flags::{
    FLAGS, ServerOptions as Typed, parse_server_command_line,
};
use linerate_personality::netperf::{EXIT_USAGE, VERSION_LINE};
use rustix::fs::FileType;

use super::debug_log::{leave_output, leave_terminal, serve_telling};
use super::document::without_passphrase;
use super::family_name;
use super::recording::Netserver;
use super::resolve::resolve_all;
use crate::output::narrate;
use crate::personality::recorder::{Recorder, ServerRecorder, command_line};
use crate::personality::say;
use crate::signals::stop_on_signals;

/// The word that makes a netserver go on in the background; it comes first.
const IN_BACKGROUND: &str = "--in-background";

/// Does what netserver's command line says; its exit code.
pub(in super::super) fn perform(name: &str, words: &[String]) -> u8 {
    let (in_background, words) = match words.split_first() {
        Some((first, rest)) if first == IN_BACKGROUND => (true, rest),
        _ => (false, words),
    };
    let typed = match parse_server_command_line(name, words) {
        Ok((typed, note)) => {
            note.iter().for_each(|note| narrate(note));
            typed
        }
        Err(text) => {
            narrate(&text);
            return EXIT_USAGE;
        }
    };
    if typed.version {
        say(VERSION_LINE);
        return 0;
    }
    let handed = HandedSockets::take();
    let is_client = !in_background && stdin_is_socket();
    if let Ok(none) = &handed
        && none.is_empty()
        && !(is_client || in_background || typed.foreground)
    {
        return go_to_background(words);
    }
    let cancel = Cancel::default();
    let typed_words = command_line("netserver", &without_passphrase(FLAGS, words));
    let observe =
        match Recorder::of_environment(Dialect::Netperf, Role::Server, typed_words, &cancel) {
            Ok(recorder) => ServerRecorder::new(recorder, Netserver).observer(),
            Err(sentence) => {
                narrate(&format!("{name}: {sentence}\n"));
                return 1;
            }
        };
    let options = ServerOptions { observe, ..options(&typed) };
    let done = match handed {
        // An activated server stays in the foreground.
        Ok(handed) if !handed.is_empty() => serve(&typed, options, handed, false, &cancel),
        Ok(_) if is_client => serve_stdin(&typed, &options, &cancel),
        Ok(none) => serve(&typed, options, none, in_background, &cancel),
        Err(error) => Err(error),
    };
    match done {
        Ok(()) => 0,
        Err(error) => {
            let (host, port, family) = names(&typed);
            narrate(&format!(
                "Unable to start netserver with  '{host}' port '{port}' and family {family}\n\
                 {name}: {error}\n"
            ));
            1
        }
    }
}

/// Where it listens, as the original tells it.
fn names(typed: &Typed) -> (String, u16, &'static str) {
    let host = typed.host.clone().unwrap_or_else(|| "IN(6)ADDR_ANY".to_owned());
    (host, typed.port, family_name(typed.family))
}

/// Whether another process accepted a client and handed it over (inetd).
fn stdin_is_socket() -> bool {
    rustix::fs::fstat(io::stdin())
        .is_ok_and(|facts| FileType::from_raw_mode(facts.st_mode) == FileType::Socket)
}

/// Whether what is told on standard error goes to the client on standard input, as under inetd.
fn stderr_is_client() -> bool {
    let [client, told] = [rustix::fs::fstat(io::stdin()), rustix::fs::fstat(io::stderr())]
        .map(|facts| facts.ok().map(|facts| (facts.st_dev, facts.st_ino)));
    client.is_some() && client == told
}

fn options(typed: &Typed) -> ServerOptions {
    ServerOptions {
        passphrase: typed.passphrase.clone(),
        serial: typed.serial,
        cpu_count: typed.cpu_count,
        busy_poll: typed.busy_poll,
        other_addresses: typed.other_addresses,
        ..ServerOptions::default()
    }
}

/// Serves the client on standard input.
fn serve_stdin(typed: &Typed, options: &ServerOptions, cancel: &Cancel) -> Result<(), Error> {
    let socket = io::stdin().as_fd().try_clone_to_owned().map_err(|source| Error::Io {
        operation: "take",
        address: "the connection on standard input".to_owned(),
        source,
    })?;
    stop_on_signals(cancel)
        .map_err(|error| Error::Host(format!("can't listen for signals: {error}")))?;
    let heard_by_client = stderr_is_client();
    let log = if typed.debug || heard_by_client {
        leave_terminal(typed.debug, !heard_by_client)?
    } else {
        None
    };
    serve_telling(typed.debug, log, |sink| {
        Server::serve_connection(socket.into(), options, sink, cancel)
    })
}

/// Serves until a signal comes.
fn serve(
    typed: &Typed,
    options: ServerOptions,
    handed: HandedSockets,
    in_background: bool,
    cancel: &Cancel,
) -> Result<(), Error> {
    if in_background {
        // A session of its own: the terminal that started it may close. Fails only for what leads
        // one already.
        let _ = rustix::process::setsid();
    }
    let server = Server::bind(&ServerOptions {
        listen: match handed.is_empty() {
            true => listen_addresses(typed, resolve_all)?,
            false => Vec::new(),
        },
        handed,
        ..options
    })?;
    stop_on_signals(cancel)
        .map_err(|error| Error::Host(format!("can't listen for signals: {error}")))?;
    let (host, _, family) = names(typed);
    let port = server.addresses().first().map_or(typed.port, |address| address.port());
    let log = if in_background { leave_terminal(typed.debug, true)? } else { None };
    if in_background {
        // The old directory can be unmounted then. Fails only without access to the root directory.
        let _stays_at_worst = std::env::set_current_dir("/");
    }
    say(&format!("Starting netserver with host '{host}' port '{port}' and family {family}\n"));
    if in_background {
        leave_output();
    }
    serve_telling(typed.debug, log, |sink| server.serve(sink, cancel))
}

/// Where it listens: at all addresses of a name.
fn listen_addresses(
    typed: &Typed,
    resolve: impl Fn(&str, Option<Family>) -> io::Result<Vec<SocketAddr>>,
) -> Result<Vec<SocketAddr>, Error> {
    if let Some(host) = &typed.host {
        let mut addresses = resolve(host, typed.family)
            .map_err(|error| Error::Host(format!("can't resolve {host}: {error}")))?;
        addresses.iter_mut().for_each(|address| address.set_port(typed.port));
        // A name may stand for one address twice, which can be listened on once.
        addresses.sort_unstable_by_key(|address| (address.is_ipv4(), *address));
        addresses.dedup();
        return Ok(addresses);
    }
    let v4: IpAddr = Ipv4Addr::UNSPECIFIED.into();
    let v6: IpAddr = Ipv6Addr::UNSPECIFIED.into();
    let addresses = match typed.family {
        None => vec![v6, v4],
        Some(Family::Ipv4) => vec![v4],
        Some(Family::Ipv6) => vec![v6],
    };
    Ok(addresses.into_iter().map(|address| SocketAddr::new(address, typed.port)).collect())
}

/// Starts the same again as a process of its own, and tells what it tells until it listens.
fn go_to_background(words: &[String]) -> u8 {
    match start_again(words) {
        Ok((first_line, _)) if !first_line.is_empty() => {
            say(&first_line);
            0
        }
        // It has said why.
        Ok((_, exit_code)) => exit_code,
        Err(error) => {
            narrate(&format!(
                "netserver: can't go to the background: {error}; -D stays in the \
                 foreground\n"
            ));
            1
        }
    }
}

fn start_again(words: &[String]) -> io::Result<(String, u8)> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg("netserver")
        .arg(IN_BACKGROUND)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut first_line = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut first_line)?;
    }
    if !first_line.is_empty() {
        return Ok((first_line, 0));
    }
    let code = child.wait()?.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Ok((String::new(), code))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(line: &str) -> Typed {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse_server_command_line("netserver", &words).unwrap().0
    }

    #[test]
    fn all_addresses_of_a_name_are_listened_on() {
        let listened = |line: &str| {
            let of_name = |host: &str, family: Option<Family>| {
                assert_eq!((host, family), ("host", None));
                let found = ["10.0.0.1:0", "[fe80::1%2]:0", "10.0.0.2:0", "[::1]:0", "10.0.0.1:0"];
                Ok(found.iter().map(|address| address.parse().unwrap()).collect())
            };
            let addresses = listen_addresses(&typed(line), of_name).unwrap();
            addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(listened("-L host -p 5"), "[::1]:5 [fe80::1%2]:5 10.0.0.1:5 10.0.0.2:5");
        assert_eq!(listened("-p 5"), "[::]:5 0.0.0.0:5");
        assert_eq!(listened("-4 -p 5"), "0.0.0.0:5");
    }
}
