use super::*;

#[test]
fn a_stream_has_the_originals_lines() {
    let download = Some(Transfer { bytes: 1_000_000, elapsed_us: 21_541 });
    let outcome = Outcome { upload: None, download, latency_us: None };
    assert_eq!(
        render_outcome(&outcome, false),
        "Result: Download 1000000 bytes @ 371384 kbps (21.541 ms).\n"
    );
    let upload = Some(Transfer { bytes: 10_000_000, elapsed_us: 52_722 });
    let outcome = Outcome { upload, download: None, latency_us: None };
    assert_eq!(
        render_outcome(&outcome, true),
        "  Upload: 10000000 bytes @ 1517393 kbps (52.722 ms).\n"
    );
}

#[test]
fn the_blocks_are_the_originals() {
    let statistics = QuicStatistics {
        rtt_us: 3052,
        min_rtt_us: Some(1288),
        ecn_capable: Some(false),
        sent_packets: 5,
        lost_packets: 0,
        congestion_events: 0,
        ecn_congestion_events: Some(0),
        received_packets: Some(7),
        reordered_packets: Some(2),
        dropped_packets: Some(3),
        duplicate_packets: Some(1),
        decryption_failures: Some(0),
        cipher_suite: Some(0x1301),
        group: Some(0),
    };
    // As the original printed it, without the lines that nobody counts here.
    let expected = "\
Connection Statistics:
  RTT                       3052 us
  MinRTT                    1288 us
  EcnCapable                0
  SendTotalPackets          5
  SendSuspectedLostPackets  0
  SendCongestionCount       0
  SendEcnCongestionCount    0
  RecvTotalPackets          7
  RecvReorderedPackets      2
  RecvDroppedPackets        3
  RecvDuplicatePackets      1
  RecvDecryptionFailures    0
Connection TLS Info:
  TlsProtocolVersion        0x3000
  CipherAlgorithm           0x660e
  CipherStrength            128
  Hash                      0x800c
  HashStrength              0
  KeyExchangeAlgorithm      0
  KeyExchangeStrength       0
  CipherSuite               0x1301
  TlsGroup                  0
";
    assert_eq!(render_quic(&statistics), expected);
}
