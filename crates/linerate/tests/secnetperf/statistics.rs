//! The blocks of `-pconn` and `-stats`: their lines, and each end's figures beside the other's.

use super::fixture::{Server, results, without_numbers};

const QUIC: &str = "\
Connection Statistics:
  RTT                       # us
  MinRTT                    # us
  EcnCapable                #
  SendTotalPackets          #
  SendSuspectedLostPackets  #
  SendCongestionCount       #
  SendEcnCongestionCount    #
  RecvTotalPackets          #
  RecvReorderedPackets      #
  RecvDroppedPackets        #
  RecvDuplicatePackets      #
  RecvDecryptionFailures    #
Connection TLS Info:
  TlsProtocolVersion        #x#
  CipherAlgorithm           #x#e
  CipherStrength            #
  Hash                      #x#c
  HashStrength              #
  KeyExchangeAlgorithm      #
  KeyExchangeStrength       #
  CipherSuite               #x#
  TlsGroup                  #";

const TCP: &str = "\
Connection Statistics:
  RTT                       # us
  MinRTT                    # us
  TimestampsEnabled         #
  BytesOut                  #
  BytesIn                   #
  BytesRetrans              #
  TimeoutEpisodes           #
  SynRetrans                #
  SndLimTimeRwin            #
  SndLimTimeSnd             #";

/// The figure of this name.
#[track_caller]
fn figure(text: &str, name: &str) -> u64 {
    let rest = text.lines().find_map(|line| line.strip_prefix(&format!("  {name} ")));
    let digits = rest.unwrap_or_else(|| panic!("{name} is missing: {text}")).trim();
    digits.split(' ').next().unwrap().parse().unwrap()
}

/// What both ends say of one connection, each block's shape looked at.
fn blocks(words: &str, flags: &str, shape: &str) -> [String; 2] {
    let server = Server::start(&format!("-stats:1 -cipher:1 {flags}"));
    let ended = server.client(&format!("{words} -pconn:1"));
    let lines = results(&ended);
    let (last, block) = lines.split_last().unwrap();
    assert_eq!(*last, "Completed 1 connections and 1 streams!", "{words}");
    let said = server.stop();
    let heard = said.strip_prefix("Started!\n\n").unwrap().trim_end().to_owned();
    let blocks = [block.join("\n"), heard];
    for block in &blocks {
        assert_eq!(without_numbers(block), shape, "{words}");
    }
    blocks
}

#[test]
fn connections_of_quic_tell_their_statistics_and_the_ends_agree() {
    for (words, flags) in [
        ("-up:50kb -down:50kb", ""),
        ("-up:50kb -down:50kb -share:0", ""),
        ("-up:50kb -down:50kb -encrypt:0", "-cibir:aabb"),
    ] {
        let words = if flags.is_empty() { words.to_owned() } else { format!("{words} {flags}") };
        let [client, server] = blocks(&words, flags, QUIC);
        for (near, far) in [(&client, &server), (&server, &client)] {
            let sent = figure(near, "SendTotalPackets");
            let came = figure(far, "RecvTotalPackets");
            // A client's block is made before it says goodbye, which it may have to say again, and a server's when it has heard
            // that.
            assert!(came <= sent + 10, "{words}: {came} of {sent}\n{near}\n{far}");
            assert!(came >= 40_000 / 8_972, "{words}: {far}");
            let dropped = figure(far, "RecvDroppedPackets");
            let duplicates = figure(far, "RecvDuplicatePackets");
            let failures = figure(far, "RecvDecryptionFailures");
            assert!(duplicates + failures <= dropped && dropped < came, "{words}: {far}");
            // Nobody on loopback changes anything or says it twice.
            assert_eq!((duplicates, failures), (0, 0), "{words}: {far}");
            assert!(figure(far, "RecvReorderedPackets") < came, "{words}: {far}");
        }
    }
}

#[test]
fn connections_of_tcp_tell_their_statistics_and_the_ends_agree() {
    let [client, server] = blocks("-tcp:1 -up:500kb -down:70kb", "", TCP);
    for (near, far, least) in [(&client, &server, 500_000), (&server, &client, 70_000)] {
        let again = figure(near, "BytesRetrans");
        let (sent, came) = (figure(near, "BytesOut"), figure(far, "BytesIn"));
        assert!(came >= least, "{far}");
        // What was sent again need not have been lost; a FIN has one.
        assert!(came <= sent + 1 && sent <= came + again + 1, "{sent} {came}\n{near}\n{far}");
        assert_eq!(figure(near, "SynRetrans"), 0, "{near}");
    }
}
