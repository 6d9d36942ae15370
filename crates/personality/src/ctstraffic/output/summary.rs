//! What is printed at the end of a run.

use linerate_wire::ctstraffic::media::receiver::FrameCounts;

/// Connections of a whole run, or streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunTotals {
    /// Those that succeeded.
    pub succeeded: u64,
    /// Those that failed by an error of the network.
    pub network_errors: u64,
    /// Those that failed by a protocol error.
    pub protocol_errors: u64,
    /// How long the run took, ms, a pause at its end included.
    pub time_ms: u64,
}

/// What was transferred, as far as an end knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transferred {
    /// Over TCP: bytes received and sent, ids and `DONE` included.
    Tcp {
        /// Bytes received.
        received_bytes: u64,
        /// Bytes sent.
        sent_bytes: u64,
    },
    /// By a client of streams.
    Frames(FrameCounts),
    /// By a server of streams: nothing is known of what arrived.
    Unknown,
}

/// The summary, which ends in a line.
pub fn render_summary(run: &RunTotals, transferred: &Transferred) -> String {
    let title = "  Historic Connection Statistics (all connections over the complete lifetime)  ";
    let mut text = format!(
        "\n\n{title}\n{}\n  SuccessfulConnections [{}]   NetworkErrors [{}]   ProtocolErrors [{}]\n",
        "-".repeat(title.len()),
        run.succeeded,
        run.network_errors,
        run.protocol_errors
    );
    match transferred {
        Transferred::Tcp { received_bytes, sent_bytes } => {
            text.push_str(&format!(
                "\n  Total Bytes Recv : {received_bytes}\n  Total Bytes Sent : {sent_bytes}\n"
            ));
        }
        Transferred::Frames(counts) => push_frames(&mut text, counts),
        Transferred::Unknown => {}
    }
    text.push_str(&format!("  Total Time : {} ms.\n", run.time_ms));
    text
}

fn push_frames(text: &mut String, counts: &FrameCounts) {
    let rows = [
        ("Successful", counts.completed),
        ("Dropped", counts.dropped),
        ("Duplicate", counts.repeated),
        ("Error", counts.errors),
    ];
    let all: f64 = rows.iter().map(|(_, count)| *count as f64).sum();
    text.push_str(&format!("\n  Total Bytes Recv : {}\n", counts.bits / 8));
    for (name, count) in rows {
        let percent = if all > 0.0 { count as f64 * 100.0 / all } else { 0.0 };
        text.push_str(&format!("  Total {name} Frames : {count} ({percent:.6})\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "\n\n  Historic Connection Statistics (all connections over the complete lifetime)  \n\
        -------------------------------------------------------------------------------\n";

    #[test]
    fn a_summary_of_tcp_is_the_originals() {
        let run = RunTotals { succeeded: 4, time_ms: 82, ..RunTotals::default() };
        let transferred = Transferred::Tcp { received_bytes: 164, sent_bytes: 12_000_004 };
        assert_eq!(
            render_summary(&run, &transferred),
            format!(
                "{HEAD}  SuccessfulConnections [4]   NetworkErrors [0]   ProtocolErrors [0]\n\n  \
                 Total Bytes Recv : 164\n  Total Bytes Sent : 12000004\n  Total Time : 82 ms.\n"
            )
        );
    }

    #[test]
    fn a_summary_of_streams_is_the_originals() {
        let run = RunTotals { succeeded: 1, time_ms: 5967, ..RunTotals::default() };
        let counts = FrameCounts { completed: 125, bits: 10_000_000, ..FrameCounts::default() };
        assert_eq!(
            render_summary(&run, &Transferred::Frames(counts)),
            format!(
                "{HEAD}  SuccessfulConnections [1]   NetworkErrors [0]   ProtocolErrors [0]\n\n  \
                 Total Bytes Recv : 1250000\n  Total Successful Frames : 125 (100.000000)\n  \
                 Total Dropped Frames : 0 (0.000000)\n  Total Duplicate Frames : 0 (0.000000)\n  \
                 Total Error Frames : 0 (0.000000)\n  Total Time : 5967 ms.\n"
            )
        );
        let server = render_summary(&run, &Transferred::Unknown);
        assert!(server.ends_with("ProtocolErrors [0]\n  Total Time : 5967 ms.\n"));
    }
}
