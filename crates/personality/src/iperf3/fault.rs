//! The texts of failures, which scripts read.
//!
//! A failure is the dialect's, with its number and text. Here is what stands behind the
//! text, and what 3.12 says otherwise.

use linerate_wire::iperf3::{Code, Failure, system_words};

use super::release::Release;

/// What 3.12 says otherwise.
const OF_3_12: [(Code, &str); 10] = [
    (Code::DURATION, "test duration too long (maximum = 86400 seconds)"),
    (Code::NUM_STREAMS, "number of parallel streams too large (maximum = 1048576)"),
    (Code::MSS, "TCP MSS too large (maximum = 9216 bytes)"),
    (Code::OMIT, "bogus value for --omit"),
    (Code::DSCP, "bad TOS value (must be between 0 and 255 inclusive)"),
    (Code::CONNECT, "unable to connect to server"),
    (Code::MESSAGE, "received an unknown control message"),
    (Code::SEND_MESSAGE, "unable to send control message"),
    (Code::RECEIVE_MESSAGE, "unable to receive control message"),
    (Code::USER_TIMEOUT, "unable to set TCP/SCTP MSS"),
];

/// What an original says whose limit on streams is its own. A server of ours tells the system's error with it.
const STREAMS_OF_ORIGINAL: [&str; 2] = [
    "number of parallel streams too large (maximum = 128)",
    "invalid number of parallel streams (min = 1, max = 128)",
];

/// A failure as this release words it, without the program's name: the text, and behind it the
/// system's own words where the text asks for them.
pub fn render_failure(failure: &Failure, release: Release) -> String {
    let older: &[(Code, &str)] = if release.is_new() { &[] } else { &OF_3_12 };
    let code = failure.code;
    let known = older.iter().find(|(known, _)| *known == code);
    let ours = known.map_or_else(|| code.text(), |(_, text)| text);
    let is_of_original =
        failure.from_peer && code == Code::NUM_STREAMS && failure.system_error.is_none();
    let [old, new] = STREAMS_OF_ORIGINAL;
    let theirs = if release.is_new() { new } else { old };
    let text = if is_of_original { theirs } else { ours };
    let said = failure.system_error.filter(|number| *number != 0 && code.tells_system_error());
    match said.map(system_words).or_else(|| failure.detail.clone()) {
        Some(detail) => format!("{text}: {detail}"),
        // The original prints a colon where the system had nothing to say.
        None => text.to_owned(),
    }
}

/// `SERVER ERROR - ...`: what a server said before it closed, with the system's words behind any text.
pub fn render_server_error(failure: &Failure, release: Release) -> String {
    let text = render_failure(failure, release);
    match failure.system_error.filter(|number| *number > 0) {
        Some(number) => format!("SERVER ERROR - {text}, errno: {}", system_words(number)),
        None => format!("SERVER ERROR - {text}"),
    }
}

/// A value that can't be read.
pub(super) fn wrong_unit(value: &str) -> Failure {
    Failure::of(Code::UNIT).because(format!("'{value}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_the_originals() {
        let text = |failure: &Failure| render_failure(failure, Release::V3_21);
        assert_eq!(
            text(&Failure::of(Code::NO_ROLE)),
            "must either be a client (-c) or server (-s)"
        );
        assert_eq!(text(&wrong_unit("5q")), "invalid unit value or suffix: '5q'");
        let refused = std::io::Error::from_raw_os_error(111);
        let refused = Failure::system(Code::CONNECT, &refused);
        assert_eq!(
            text(&refused),
            "unable to connect to server - server may have stopped running or use a different \
             port, firewall issue, etc.: Connection refused"
        );
        assert_eq!(text(&Failure::of(Code::AFFINITY)), "unable to set CPU affinity");
        let old = render_failure(&refused, Release::V3_12);
        assert_eq!(old, "unable to connect to server: Connection refused");
    }

    #[test]
    fn no_text_ends_in_a_colon() {
        for number in 0..400 {
            for (from_peer, system_error) in [(false, None), (true, None), (true, Some(0))] {
                let failure = Failure::of(Code(number));
                let failure = Failure { from_peer, system_error, ..failure };
                for release in [Release::V3_12, Release::V3_21] {
                    for text in
                        [render_failure(&failure, release), render_server_error(&failure, release)]
                    {
                        assert!(!text.trim_end().ends_with(':'), "{text}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_limit_on_streams_is_that_of_who_refuses_them() {
        let told = |from_peer: bool, system_error: Option<i32>| {
            let failure = Failure::of(Code::NUM_STREAMS);
            let failure = Failure { from_peer, system_error, ..failure };
            [Release::V3_12, Release::V3_21].map(|release| render_failure(&failure, release))
        };
        for (from_peer, system_error) in [(false, None), (false, Some(24)), (true, Some(24))] {
            let texts = told(from_peer, system_error);
            assert!(texts.iter().all(|text| text.contains("1048576")), "{texts:?}");
        }
        assert_eq!(told(true, None), STREAMS_OF_ORIGINAL);
    }

    #[test]
    fn the_systems_words_stand_behind_texts_that_ask_for_them() {
        let told = |code: Code, number: i32| {
            let failure = Failure { system_error: Some(number), ..Failure::of(code) };
            let text = render_failure(&failure, Release::V3_21);
            (text, render_server_error(&failure, Release::V3_21))
        };
        for code in [Code::CONGESTION, Code::SET_FLOW_LABEL, Code::DONT_FRAGMENT, Code::TOTAL_RATE]
        {
            let (text, of_server) = told(code, 2);
            assert_eq!(text, code.text());
            let expected = format!("SERVER ERROR - {text}, errno: No such file or directory");
            assert_eq!(of_server, expected);
            assert_eq!(told(code, 0).1, format!("SERVER ERROR - {text}"));
        }
        let (text, of_server) = told(Code::SET_MSS, 22);
        assert_eq!(text, "unable to set TCP/SCTP MSS: Invalid argument");
        assert_eq!(of_server, format!("SERVER ERROR - {text}, errno: Invalid argument"));
        let known = Failure::of(Code::BUFFER_MISMATCH).because("8 bytes were granted");
        let text = render_failure(&known, Release::V3_21);
        assert_eq!(text, "socket buffer size not set correctly: 8 bytes were granted");
    }
}
