//! Words that users bring from iperf3 and its kin: taken where they mean the same, else explained.

use super::run;

#[test]
fn words_that_mean_the_same_are_taken() {
    for (theirs, ours) in [
        ("stream a --duration 3s", "stream a --time 3s"),
        ("stream a -t 3 -i 1", "stream a --time 3s --interval 1s"),
        ("stream a --reverse", "stream a --down"),
        ("stream a -R -P 4 -J", "stream a --down --flows 4 --json"),
        ("stream a --bidir --parallel 2", "stream a --both --flows 2"),
        ("stream a --bandwidth 5M", "stream a --rate-per-flow 5M"),
        ("stream a -b 5M --udp", "stream a --rate-per-flow 5M --udp"),
        ("stream -c a -p 5201", "stream a --port 5201"),
        ("rr --client a -P 3", "rr a --flows 3"),
        ("stream --client=a -b 0", "stream a"),
    ] {
        let [theirs, ours] = [theirs, ours].map(|words| run(&format!("{words} --dry-run")));
        assert_eq!((theirs.exit_code, theirs.stderr.as_str()), (0, ""));
        assert_eq!(theirs.stdout, ours.stdout);
    }
}

#[test]
fn words_that_mean_something_else_are_explained() {
    for (words, ours) in [
        ("stream a -u", "--rate"),
        ("stream a -n 1G", "--bytes"),
        ("stream a -l 128K", "--size"),
        ("rr a -n 1G", "in `linerate stream`, --bytes"),
        ("connect a -l 5", "in `linerate stream`, --size"),
        ("rr a -Z", "in `linerate stream`, --splice"),
        ("serve -1", "--one-off"),
        ("serve -D", "service manager"),
        ("serve -B 127.0.0.1", "--bind"),
        ("stream a --length 128K", "--size"),
        ("stream a --zerocopy", "--splice"),
        ("stream a -w 1M", "--window"),
        ("stream a -S 0x10", "--dscp"),
        ("rr a --reverse", "linerate stream"),
        ("rr a -b 1M", "--rate-per-flow"),
        ("connect a --bidir", "linerate stream"),
        ("client a", "linerate stream HOST"),
        ("-c a", "linerate stream HOST"),
        ("-s", "linerate serve"),
        ("server", "linerate serve"),
    ] {
        let ended = run(words);
        assert_eq!((ended.exit_code, ended.stdout.as_str()), (2, ""), "{words}");
        assert_eq!(ended.stderr.lines().count(), 1, "{words}: {}", ended.stderr);
        for word in [ours, "linerate iperf3 "] {
            assert!(ended.stderr.contains(word), "{words}: no {word:?} in {}", ended.stderr);
        }
    }
    let ended = run("stream a 5201");
    assert_eq!(ended.exit_code, 2);
    assert!(ended.stderr.contains("HOST:5201"), "{}", ended.stderr);
}

#[test]
fn a_tip_corrects_a_slip_and_nothing_else() {
    for (words, tip) in [("stream a --flws 2", "--flows"), ("strem a", "'stream'")] {
        let ended = run(words);
        assert!(ended.stderr.contains(tip), "{words}: {}", ended.stderr);
    }
    for words in ["stream a --server-port 1", "rr a --bind-to b", "klient a"] {
        let ended = run(words);
        assert_eq!(ended.exit_code, 2, "{words}");
        assert!(!ended.stderr.contains("tip"), "{words}: {}", ended.stderr);
    }
}

#[test]
fn errors_name_the_flag_that_was_typed() {
    for (words, flag) in [
        ("stream a --parallel x", "'--parallel <N>'"),
        ("stream a -Px", "'-P <N>'"),
        ("stream a --flows x", "'--flows <N>'"),
        ("stream a --parallel 0", "--parallel: number of flows 0"),
        ("stream a --flows 0", "--flows: number of flows 0"),
        ("stream a --duration 0", "--duration: measured time"),
        ("stream a --bandwidth 0k", "--bandwidth: rate"),
        ("stream a --rate 0", "--rate: rate"),
        ("stream a --reverse --up", "'--reverse'"),
        ("stream a --quic --mtu 5", "--mtu: QUIC packet"),
        ("stream a --quic --idle-timeout 0", "--idle-timeout: idle time-out"),
    ] {
        let ended = run(words);
        assert_eq!(ended.exit_code, 2, "{words}");
        assert!(ended.stderr.contains(flag), "{words}: no {flag:?} in {}", ended.stderr);
    }
}

#[test]
fn help_of_each_tool() {
    for tool in ["iperf3", "netperf", "netserver", "secnetperf", "ctstraffic", "qperf", "crucible"]
    {
        let ended = run(&format!("help {tool}"));
        assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""), "{tool}");
        assert!(ended.stdout.lines().count() > 5, "{tool}: {}", ended.stdout);
    }
    assert_eq!(run("help iperf3").stdout, run("iperf3 --help").stdout);
    for words in ["secnetperf --help", "secnetperf -h", "secnetperf -help"] {
        let ended = run(words);
        assert!(ended.stdout.contains("-target"), "{words}: {}", ended.stdout);
        assert!(!ended.stdout.contains("Started"), "{words}: {}", ended.stdout);
    }
}
