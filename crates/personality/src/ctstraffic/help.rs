//! The pages of help.

use super::flags::{OWN_TABLE, Page, TABLE};

/// Columns of a page.
const WIDTH: usize = 80;

/// Where the text of an option begins.
const INDENT: usize = 26;

/// What is printed after any page of help and after a usage error.
pub const POINTER: &str =
    "\nPages of help: -Help, -Help:Tcp, -Help:Udp, -Help:Logging, -Help:Advanced\n";

/// What stands above the options of a page.
fn introduction(page: Page) -> &'static str {
    match page {
        Page::General => {
            "ctsTraffic sends data between two hosts over TCP or UDP and checks every byte.\n\
             \n\
             A server, and a client that makes 8 connections to it again and again:\n\
             \x20 ctsTraffic -Listen:*\n\
             \x20 ctsTraffic -Target:HOST\n\
             \n\
             Nothing is negotiated. Both ends need the same -Port, -Protocol, -Pattern,\n\
             -Transfer, -PushBytes and -PullBytes, or with udp the same -BitsPerSecond,\n\
             -FrameRate and -StreamLength.\n\
             \n\
             Options are -Name:value, in any case. Numbers are decimal, or hexadecimal\n\
             with 0x.\n"
        }
        Page::Tcp => {
            "A connection transfers -Transfer bytes: its server sends an id, then the\n\
             data goes as -Pattern sets it, then the server sends DONE and the client closes\n\
             the connection.\n"
        }
        Page::Udp => {
            "A client requests a stream, and the server sends it: -FrameRate frames per\n\
             second of one size, each in one or more datagrams. The client renders each\n\
             frame -BufferDepth seconds later and counts it as completed, dropped or\n\
             repeated.\n\
             \n\
             A server sends to any address that requests a stream. Source addresses can be\n\
             forged, so run one on trusted networks only, or limit it with --max-rate.\n"
        }
        Page::Logging => {
            "Files are emptied at the start. Text files may have one name for several\n\
             options; csv files may not.\n"
        }
        Page::Advanced => "Sockets, addresses and threads.\n",
    }
}

/// A page of help, without [`POINTER`].
pub fn render_help(page: Page) -> String {
    let mut text = format!("{}\n", introduction(page));
    for flag in TABLE.iter().filter(|flag| flag.page == page) {
        push_option(&mut text, &format!("-{}:{}", flag.name, flag.value), flag.help);
    }
    if page == Page::General {
        text.push_str("\nlinerate's own options:\n\n");
        for flag in OWN_TABLE {
            let colon = if flag.value.is_empty() { "" } else { ":" };
            push_option(&mut text, &format!("{}{colon}{}", flag.name, flag.value), flag.help);
        }
    }
    text
}

/// Adds an option with its text, which is wrapped.
fn push_option(text: &mut String, option: &str, help: &str) {
    let mut line = format!("  {option:<width$}", width = INDENT - 3);
    if line.len() >= INDENT {
        text.push_str(&line);
        text.push('\n');
        line = " ".repeat(INDENT - 1);
    }
    for word in help.split(' ') {
        if line.len() + 1 + word.len() > WIDTH {
            text.push_str(&line);
            text.push('\n');
            line = " ".repeat(INDENT - 1);
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: [Page; 5] = [Page::General, Page::Tcp, Page::Udp, Page::Logging, Page::Advanced];

    #[test]
    fn pages_fit_80_columns() {
        for page in PAGES {
            let text = render_help(page);
            for line in text.lines().chain(POINTER.lines()) {
                assert!(line.len() <= WIDTH && line.trim_end() == line, "{line:?}");
            }
        }
    }

    #[test]
    fn every_option_is_on_one_page() {
        let all: String = PAGES.into_iter().map(render_help).collect();
        for flag in TABLE {
            let shown = format!("\n  -{}:{}", flag.name, flag.value);
            assert_eq!(all.matches(&shown).count(), 1, "{shown}");
        }
    }

    #[test]
    fn options_stand_before_their_text() {
        let page = render_help(Page::Tcp);
        assert!(page.contains("\n  -BurstDelay:<ms>        the pause between bursts\n"), "{page}");
        let long = "\n  -Shutdown:<graceful,rude,random>\n                          client: end";
        assert!(page.contains(long), "{page}");
    }
}
