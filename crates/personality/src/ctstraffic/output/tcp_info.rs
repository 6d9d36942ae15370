//! Rows of the file of TCP_INFO.

use super::connection::{TcpConnection, render_id};

/// The head of the file.
pub const CSV_HEAD: &str = "TimeSlice,LocalAddress,RemoteAddress,ConnectionId,SendBytes,SendBps,\
                            RecvBytes,RecvBps,TimeMs,BytesReordered,BytesRetransmitted,\
                            SynRetransmitted,DupAcksIn,MinRttUs,Mss,TimeoutEpisodes,FastRetransmit,\
                            SndLimBytesCwnd,SndLimBytesRwin,SndLimBytesSnd";

/// What the kernel knew of a connection when it ended. Linux has no counter for the other columns of the
/// original: bytes reordered, duplicate acknowledgements, fast retransmissions and bytes per limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Bytes that were sent again.
    pub retransmitted_bytes: Option<u64>,
    /// SYN segments that were sent again.
    pub syn_retransmits: Option<u64>,
    /// The least round-trip time, us.
    pub min_rtt_us: Option<u64>,
    /// The largest segment that is sent, bytes.
    pub mss_bytes: Option<u64>,
    /// Retransmission time-outs.
    pub timeouts: Option<u64>,
}

/// A connection's row. Cells of what isn't known are empty.
pub fn csv_row(connection: &TcpConnection, info: &TcpInfo) -> String {
    let figures = [
        None,
        info.retransmitted_bytes,
        info.syn_retransmits,
        None,
        info.min_rtt_us,
        info.mss_bytes,
        info.timeouts,
        None,
        None,
        None,
        None,
    ];
    let amounts = connection.amounts().map(Some);
    let cells = amounts.into_iter().chain(figures);
    let cells: Vec<String> =
        cells.map(|cell| cell.map(|number| number.to_string()).unwrap_or_default()).collect();
    let (ends, id) = (connection.ends.cells(", "), render_id(connection.id));
    format!("{ends}, {id}, {}", cells.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ctstraffic::output::connection::{Ends, Outcome};

    #[test]
    fn a_row_has_a_cell_for_each_column() {
        let address = Some("127.0.0.1:4444".parse().unwrap());
        let connection = TcpConnection {
            ends: Ends { time_ms: 5, local: address, remote: address },
            id: None,
            sent_bytes: 10,
            received_bytes: 0,
            elapsed_ms: 2,
            outcome: Outcome::Succeeded,
        };
        let info = TcpInfo { min_rtt_us: Some(30), mss_bytes: Some(65_483), ..TcpInfo::default() };
        let row = csv_row(&connection, &info);
        assert_eq!(
            row,
            "0.005, 127.0.0.1:4444, 127.0.0.1:4444, , 10, 5000, 0, 0, 2, , , , , 30, 65483, , , , , "
        );
        assert_eq!(row.matches(',').count(), CSV_HEAD.matches(',').count());
    }
}
