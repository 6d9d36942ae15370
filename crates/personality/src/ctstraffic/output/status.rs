//! Rows of status, on the console and in files.

use super::{per_second, render_time};

/// The console's head of rows of TCP.
pub const TCP_HEAD: &str =
    " TimeSlice      SendBps      RecvBps  In-Flight  Completed  NetError  DataError ";

/// The console's head of rows of UDP.
pub const UDP_HEAD: &str =
    " TimeSlice       Bits/Sec    Streams   Completed   Dropped   Repeated    Errors ";

/// The head of a csv file of TCP.
pub const TCP_CSV_HEAD: &str = "TimeSlice,SendBps,RecvBps,In-Flight,Completed,NetError,DataError";

/// The head of a csv file of UDP.
pub const UDP_CSV_HEAD: &str = "TimeSlice,Bits/Sec,Streams,Completed,Dropped,Repeated,Errors";

/// After so many rows the console's head is printed again.
pub const HEAD_EVERY_ROWS: u64 = 40;

/// The console's head with the empty lines around it.
pub fn render_head(head: &str) -> String {
    format!("\n{head}\n\n")
}

/// The length in milliseconds of a slice that ends `end_ns` after the start: the difference of the two times as rows
/// show them, so that rates times lengths add up to what was moved.
pub fn slice_ms(end_ns: u64, slice_ns: u64) -> u64 {
    const MILLISECOND_NS: u64 = 1_000_000;
    end_ns / MILLISECOND_NS - end_ns.saturating_sub(slice_ns) / MILLISECOND_NS
}

/// A slice of time of a run over TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpStatus {
    /// The end of the slice, ms since the program's start.
    pub time_ms: u64,
    /// The length of the slice, ms.
    pub slice_ms: u64,
    /// Bytes sent in the slice, ids and `DONE` included.
    pub sent_bytes: u64,
    /// Bytes received in the slice, likewise.
    pub received_bytes: u64,
    /// Connections that transfer now.
    pub in_flight: u64,
    /// Connections that were completed so far.
    pub completed: u64,
    /// Connections that failed by an error of the network so far.
    pub network_errors: u64,
    /// Connections that failed by an error of the protocol so far.
    pub data_errors: u64,
}

/// A slice of time of a run over UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpStatus {
    /// The end of the slice, ms since the program's start.
    pub time_ms: u64,
    /// The length of the slice, ms.
    pub slice_ms: u64,
    /// Bits received in the slice; at a server, sent.
    pub bits: u64,
    /// Streams that run now.
    pub streams: u64,
    /// Frames completed in the slice.
    pub completed: u64,
    /// Frames dropped in the slice.
    pub dropped: u64,
    /// Frames repeated in the slice.
    pub repeated: u64,
    /// Errors in the slice.
    pub errors: u64,
}

impl TcpStatus {
    fn numbers(&self) -> [u64; 6] {
        [
            per_second(self.sent_bytes, self.slice_ms),
            per_second(self.received_bytes, self.slice_ms),
            self.in_flight,
            self.completed,
            self.network_errors,
            self.data_errors,
        ]
    }

    /// The console's row.
    pub fn console_row(&self) -> String {
        let columns = [(23, 11), (36, 11), (47, 7), (58, 7), (68, 7), (79, 7)];
        render_row(self.time_ms, columns, self.numbers())
    }

    /// The row of a csv file.
    pub fn csv_row(&self) -> String {
        render_csv(self.time_ms, self.numbers())
    }
}

impl UdpStatus {
    fn numbers(&self) -> [u64; 6] {
        [
            per_second(self.bits, self.slice_ms),
            self.streams,
            self.completed,
            self.dropped,
            self.repeated,
            self.errors,
        ]
    }

    /// The console's row.
    pub fn console_row(&self) -> String {
        let columns = [(25, 12), (36, 8), (48, 9), (58, 7), (69, 7), (79, 7)];
        render_row(self.time_ms, columns, self.numbers())
    }

    /// The row of a csv file.
    pub fn csv_row(&self) -> String {
        render_csv(self.time_ms, self.numbers())
    }
}

/// A row with its time and numbers, each of which ends at a column and has a greatest width.
fn render_row(time_ms: u64, columns: [(usize, usize); 6], numbers: [u64; 6]) -> String {
    let mut row = format!("{:>10}", render_time(time_ms));
    for ((end, width), number) in columns.into_iter().zip(numbers) {
        let vacant = end.saturating_sub(row.len());
        row.push_str(&format!("{:>vacant$}", render_number(number, width)));
    }
    row
}

/// A number within a width: whole, or in millions, thousands of millions or millions of millions.
fn render_number(number: u64, width: usize) -> String {
    let whole = number.to_string();
    if whole.len() <= width {
        return whole;
    }
    let scaled = [(1e6, "x^6"), (1e9, "x^9"), (1e12, "x^12")]
        .into_iter()
        .map(|(scale, name)| format!("{:.1}{name}", number as f64 / scale))
        .find(|text| text.len() <= width);
    scaled.unwrap_or_else(|| "9+++T".to_owned())
}

fn render_csv(time_ms: u64, numbers: [u64; 6]) -> String {
    let numbers: String = numbers.into_iter().map(|number| format!(",{number}")).collect();
    render_time(time_ms) + &numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_as_long_as_rows_say() {
        assert_eq!(slice_ms(2_000_000, 1_999_999), 2);
        assert_eq!(slice_ms(2_999_999, 1_000_000), 1);
        assert_eq!(slice_ms(2_000_001, 2), 1);
        assert_eq!(slice_ms(2_500_000, 100_000), 0);
    }

    #[test]
    fn rows_of_tcp_are_the_originals() {
        let row = TcpStatus {
            time_ms: 82,
            slice_ms: 54,
            sent_bytes: 9_837_316,
            received_bytes: 90,
            completed: 4,
            ..TcpStatus::default()
        };
        assert_eq!(
            row.console_row(),
            "     0.082    182172518         1666          0          4         0          0"
        );
        assert_eq!(row.csv_row(), "0.082,182172518,1666,0,4,0,0");
        let first = TcpStatus { time_ms: 1000, slice_ms: 1000, ..TcpStatus::default() };
        assert_eq!(first.csv_row(), "1.000,0,0,0,0,0,0");
        let none = TcpStatus { sent_bytes: 9, ..TcpStatus::default() };
        assert_eq!(none.csv_row(), "0.000,0,0,0,0,0,0", "a slice without length has no rate");
        assert_eq!(TCP_HEAD.trim_end().len(), 79);
    }

    #[test]
    fn rows_of_udp_are_the_originals() {
        let row = UdpStatus {
            time_ms: 2001,
            slice_ms: 1000,
            bits: 2_000_000,
            streams: 1,
            completed: 25,
            ..UdpStatus::default()
        };
        assert_eq!(
            row.console_row(),
            "     2.001        2000000          1          25         0          0         0"
        );
        assert_eq!(row.csv_row(), "2.001,2000000,1,25,0,0,0");
        assert_eq!(UDP_HEAD.trim_end().len(), 79);
    }

    #[test]
    fn numbers_that_are_too_wide_are_scaled() {
        for (number, width, expected) in [
            (9_999_999, 7, "9999999"),
            (10_000_000, 7, "10.0x^6"),
            (99_940_000, 7, "99.9x^6"),
            (99_960_000, 7, "0.1x^9"),
            (123_456_789, 7, "0.1x^9"),
            (99_900_000_000, 7, "99.9x^9"),
            (100_000_000_000, 7, "0.1x^12"),
            (9_900_000_000_000, 7, "9.9x^12"),
            (10_000_000_000_000, 7, "9+++T"),
            (u64::MAX, 7, "9+++T"),
            (99_999_999_999, 11, "99999999999"),
            (100_000_000_000, 11, "100000.0x^6"),
            (1_234_567_000_000, 11, "1234.6x^9"),
            (1_234_567_000_000_000, 11, "1234.6x^12"),
            (u64::MAX, 11, "9+++T"),
            (999_999_999_999, 12, "999999999999"),
        ] {
            assert_eq!(render_number(number, width), expected, "{number} in {width}");
        }
        let all = TcpStatus {
            time_ms: 999_999_999,
            slice_ms: 1,
            sent_bytes: u64::MAX,
            received_bytes: u64::MAX,
            in_flight: u64::MAX,
            completed: u64::MAX,
            network_errors: u64::MAX,
            data_errors: u64::MAX,
        };
        assert_eq!(all.console_row().len(), 79);
        let most = u64::MAX;
        let expected = format!("999999.999,{most},{most},{most},{most},{most},{most}");
        assert_eq!(all.csv_row(), expected);
    }
}
