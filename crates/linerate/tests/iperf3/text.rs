//! Text output in all its forms, fed with fixed figures.

use linerate::personality::iperf3::text::TextPrinter;
use linerate_engine::iperf3::{Event, Keepalive, Role};
use linerate_measure::sample::Traffic;
use linerate_personality::iperf3::release::Release;
use linerate_wire::iperf3::Parameters;
use linerate_wire::iperf3::results::ServerOutput;

use super::fixture::{Scene, scene, with_unknown_loss};
use super::matches;

fn printed(Scene { context, events }: Scene) -> String {
    let is_client = context.host.is_some();
    let mut printer = TextPrinter::new(context);
    let mut pieces =
        if is_client { printer.render_opening() } else { printer.render_listening(5201, 1) };
    for event in &events {
        pieces.extend(printer.render_event(event));
    }
    if is_client {
        pieces.extend(printer.render_done());
    }
    pieces.concat()
}

fn check(words: &str, name: &str) {
    for (role, end) in [(Role::Client, "client"), (Role::Server, "server")] {
        let text = printed(scene(words, role, Release::V3_21));
        matches(&text, &format!("{name}.{end}.txt"));
    }
}

#[test]
fn tcp() {
    check("-t 2", "tcp");
}

#[test]
fn tcp_with_particulars() {
    check("-t 2 -V -b 2M -M 1400", "tcp-verbose");
}

#[test]
fn tcp_reverse_with_two_streams() {
    check("-t 2 -R -P 2", "tcp-reverse-2");
}

#[test]
fn tcp_both_ways_with_two_streams_and_particulars() {
    check("-t 2 --bidir -P 2 -V", "tcp-bidir-2-verbose");
}

#[test]
fn udp_with_two_streams_and_omitted_time() {
    check("-u -t 2 -O 1 -P 2 -f k", "udp-2-omit");
}

#[test]
fn udp_both_ways() {
    check("-u -t 2 --bidir -V", "udp-bidir-verbose");
}

#[test]
fn bytes_and_blocks_end_a_test() {
    check("-n 1M -V -f M", "bytes-verbose");
    let text = printed(scene("-k 100 -V", Role::Client, Release::V3_21));
    assert!(text.contains("omitting 0 seconds, 100 blocks to send, tos 0\n"), "{text}");
}

#[test]
fn the_end_of_the_omitted_time_is_a_line_where_there_are_no_intervals() {
    let line = "Finished omit period, starting real test\n";
    for (words, told) in [("-V -i 0 -O 1", true), ("-i 0 -O 1", false), ("-V -O 1", false)] {
        for role in [Role::Client, Role::Server] {
            let text = printed(scene(&format!("-t 2 {words}"), role, Release::V3_21));
            assert_eq!(text.contains(line), told, "{words}: {text}");
        }
    }
}

#[test]
fn how_a_control_connection_is_probed_stands_before_all_else_of_it() {
    let line = "Control connection TCP Keepalive TCP_KEEPIDLE/TCP_KEEPINTVL/TCP_KEEPCNT are set to \
                20/2/3\n";
    for (words, role, next) in [
        ("-V", Role::Client, "Control connection MSS"),
        ("-V", Role::Server, "Time: "),
        ("", Role::Server, ""),
    ] {
        let mut scene = scene(words, role, Release::V3_21);
        if let Some(Event::Connected(control)) = scene.events.first_mut() {
            control.keepalive = Some(Keepalive { idle_s: 20, interval_s: 2, count: 3 });
        }
        let text = printed(scene);
        let told = format!("{line}{next}");
        assert_eq!(text.contains(&told), !words.is_empty(), "{text}");
    }
}

#[test]
fn loss_that_is_not_known_is_said_to_be_so() {
    let mut scene = scene("-u -t 2 -P 2", Role::Client, Release::V3_21);
    if let Some(Event::Ended(report)) = scene.events.last_mut() {
        with_unknown_loss(report);
    }
    let text = printed(scene);
    assert!(text.contains("  0.031 ms  Unknown/181  receiver\n"), "{text}");
    // A sum of what isn't known isn't known either.
    assert!(text.contains(" ms  Unknown/543  receiver\n"), "{text}");
    assert!(text.contains(" ms  2/362 (0.55%)  receiver\n"), "{text}");
}

#[test]
fn an_older_release_has_one_blank_more() {
    let text = printed(scene("-t 2 -P 2", Role::Client, Release::V3_12));
    matches(&text, "tcp-2-of-3.12.client.txt");
}

#[test]
fn a_short_rest_without_bytes_is_not_printed() {
    let mut scene = scene("-t 2", Role::Client, Release::V3_21);
    let last = scene.events.iter_mut().rev().find_map(|event| match event {
        Event::Sample(sample) => Some(sample),
        _ => None,
    });
    let last = last.unwrap();
    last.to_ns = last.from_ns + 10_000_000;
    last.flows[0].sent_bytes = Some(0);
    last.sent = Some(Traffic::default());
    let text = printed(scene);
    assert_eq!(text.matches("[  5] ").count(), 4, "{text}");
}

#[test]
fn missing_figures_of_the_peer_are_not_printed_as_zero() {
    let mut scene = scene("-t 2", Role::Client, Release::V3_21);
    if let Some(Event::Ended(report)) = scene.events.last_mut() {
        report.peer = None;
    }
    let text = printed(scene);
    assert!(text.contains("[  5] (receiver statistics not available)\n"), "{text}");
}

#[test]
fn a_servers_output_stands_before_the_end() {
    let scene = scene("-t 2", Role::Client, Release::V3_21);
    let printer = TextPrinter::new(scene.context);
    let printed = ServerOutput::Text("line\n".to_owned());
    let output = |output: &ServerOutput| printer.render_output(output).collect::<String>();
    assert_eq!(output(&printed), "\nServer output:\nline\n\n");
    assert_eq!(printer.render_done().concat(), "\niperf Done.\n");
    let text = output(&ServerOutput::Text("\u{1b}[2Jx\r".to_owned()));
    assert!(text.contains("\n.[2Jx.\n"), "{text}");
    let text = output(&ServerOutput::Json("{\"start\": {}}".to_owned()));
    assert_eq!(text, "\nServer JSON output:\n{\n\t\"start\":\t{\n\t}\n}\n");
    let deep = ServerOutput::Json("[".repeat(1000) + &"]".repeat(1000));
    assert_eq!(output(&deep), "\nServer JSON output:\nnull\n");
}

#[test]
fn a_refused_test_is_shown_as_far_as_it_came() {
    let mut scene = scene("-t 2 -R -V", Role::Client, Release::V3_21);
    scene.events.truncate(1);
    scene.context.asked = Some(Parameters { reverse: true, ..Parameters::default() });
    let mut printer = TextPrinter::new(scene.context);
    assert_eq!(printer.render_event(&scene.events[0]).concat(), "Control connection MSS 1448\n");
    assert_eq!(
        printer.render_refused().concat(),
        "Time: Sat, 21 Nov 2026 01:12:59 GMT\nConnecting to host host.example, port 5201\n\
         Reverse mode, remote host host.example is sending\n      \
         Cookie: lnbdljn6lwrd2ceujynlfbpzmdtdkrebvnkz\n      TCP MSS: 1448 (default)\n"
    );
}
