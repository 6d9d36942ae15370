//! Lines of errors, and what is printed when a run ends early. In the file of errors each line has its
//! time in front ([`timed`]); on the console, where the original has it.

use linerate_wire::ctstraffic::data::Mismatch;

use super::render_time;
use super::system::SystemError;

/// A line with its time in front.
pub fn timed(time_ms: u64, line: &str) -> String {
    format!("[{}] {line}", render_time(time_ms))
}

/// A call that failed: `send failed (10054) Connection reset by peer`.
pub fn failed_call(name: &str, error: &SystemError) -> String {
    format!("{name} failed ({}) {}", error.code, error.words)
}

/// A connection that failed by a protocol error.
pub fn aborted(protocol_error: &str) -> String {
    format!("Connection aborted due to the protocol error {protocol_error}")
}

/// Wrong data: where, what was expected, what was found, and how far it goes.
pub fn wrong_data(id: &str, mismatch: &Mismatch) -> String {
    let Mismatch { offset, expected, found, extent_bytes, wrong_bytes, received_bytes } = mismatch;
    format!(
        "[{id}] wrong data: byte {offset} is {found:#04x}, expected {expected:#04x}; {wrong_bytes} \
         of {extent_bytes} bytes from there on are wrong (received at once: {received_bytes} bytes)"
    )
}

/// A run that reached its `-TimeLimit`.
pub fn time_limit_reached(limit_ms: u32) -> String {
    format!("\n  **** Time-limit of {limit_ms} reached ****\n\n")
}

/// A run that waits for `-PauseAtEnd`.
pub fn pausing(pause_ms: u32) -> String {
    format!("\n  **** Pausing {pause_ms} ms at the end ****\n\n")
}

/// A run that is interrupted.
pub const INTERRUPTED: &str = "\n  **** ctrl-break hit -- shutting down ****\n\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_originals() {
        assert_eq!(
            timed(34, &aborted("ErrorNotAllDataTransferred")),
            "[0.034] Connection aborted due to the protocol error ErrorNotAllDataTransferred"
        );
        assert_eq!(
            timed(839, &failed_call("send", &SystemError::of(104))),
            "[0.839] send failed (10054) Connection reset by peer"
        );
        assert_eq!(time_limit_reached(5000), "\n  **** Time-limit of 5000 reached ****\n\n");
    }

    #[test]
    fn wrong_data_has_its_offset_and_bytes() {
        let mismatch = Mismatch {
            offset: 70_001,
            expected: 0x11,
            found: 0x31,
            extent_bytes: 4,
            wrong_bytes: 2,
            received_bytes: 1000,
        };
        assert_eq!(
            wrong_data("b060", &mismatch),
            "[b060] wrong data: byte 70001 is 0x31, expected 0x11; 2 of 4 bytes from there on are \
             wrong (received at once: 1000 bytes)"
        );
    }
}
