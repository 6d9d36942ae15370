//! What the kernel says of the data connection, told on standard error after each test where somebody asks for it;
//! flent sets the variable for every run.

use std::env;

use linerate_engine::netperf::TcpFigures;

/// If it is set, to any value, the dump is printed; also with a second `-d`.
const VARIABLE: &str = "DUMP_TCP_INFO";

/// Whether it is asked for.
pub(super) fn is_wanted(debug: u32) -> bool {
    debug > 1 || env::var_os(VARIABLE).is_some()
}

/// The original's lines, its slip in one of the names included: scripts know it so.
pub(super) fn render_tcp_info(tcp: &TcpFigures) -> String {
    format!(
        "tcpi_rto {} tcpi_ato {} tcpi_pmtu {} tcpi_rcv_ssthresh {}\n\
         tcpi_rtt {} tcpi_rttvar {} tcpi_snd_ssthresh {} tpci_snd_cwnd {}\n\
         tcpi_reordering {} tcpi_total_retrans {}\n",
        tcp.rto_us,
        tcp.ato_us,
        tcp.pmtu_bytes,
        tcp.receive_ssthresh_bytes,
        tcp.rtt_us,
        tcp.rtt_var_us,
        tcp.send_ssthresh_segments,
        tcp.cwnd_segments,
        tcp.reordering_segments,
        tcp.retransmitted_segments,
    )
}
