//! JSON output, field by field, fed with fixed figures.

use linerate::personality::iperf3::printer::{Form, JsonPrinter};
use linerate::personality::iperf3::stock::Stock;
use linerate::personality::iperf3::text::TextPrinter;
use linerate_engine::iperf3::{Event, Role};
use linerate_measure::dialect::FlowExtension;
use linerate_personality::iperf3::release::Release;
use linerate_wire::iperf3::Parameters;
use linerate_wire::iperf3::results::ServerOutput;
use serde_json::Value;

use super::fixture::{Scene, scene, with_unknown_loss};
use super::matches;

fn printed(scene: &Scene, form: Form, error: Option<&str>) -> String {
    let mut printer = JsonPrinter::new(scene.context.clone(), form);
    let mut text = String::new();
    for event in &scene.events {
        text.push_str(&printer.record_event(event).concat());
    }
    text + &printer.render_rest(error).collect::<String>()
}

fn check(words: &str, name: &str) {
    for (role, end) in [(Role::Client, "client"), (Role::Server, "server")] {
        let text = printed(&scene(words, role, Release::V3_21), Form::Json, None);
        let _: Value = serde_json::from_str(&text).unwrap();
        matches(&text, &format!("{name}.{end}.json"));
    }
}

#[test]
fn tcp() {
    check("-t 2 -J", "tcp");
}

#[test]
fn tcp_reverse_with_a_title_and_segments() {
    check("-t 2 -J -R -O 1 -T title --extra-data extra -M 1400", "tcp-reverse");
}

#[test]
fn tcp_both_ways_with_two_streams() {
    check("-t 2 -J --bidir -P 2", "tcp-bidir-2");
}

#[test]
fn udp_with_two_streams() {
    check("-u -t 2 -J -P 2", "udp-2");
}

#[test]
fn udp_both_ways() {
    check("-u -t 2 -J --bidir", "udp-bidir");
}

#[test]
fn an_older_release_has_fewer_fields() {
    let scene = scene("-t 2 -J", Role::Client, Release::V3_12);
    matches(&printed(&scene, Form::Json, None), "tcp-of-3.12.client.json");
}

#[test]
fn a_stream_of_events_has_a_line_for_each() {
    let scene = scene("-t 2 --json-stream", Role::Client, Release::V3_21);
    let text = printed(&scene, Form::Stream { full: false }, None);
    matches(&text, "stream.client.ndjson");
    let events: Vec<String> = text
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["event"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(events, ["start", "interval", "interval", "end"]);
}

#[test]
fn a_stream_may_end_with_the_whole_document() {
    let scene = scene("-t 2 --json-stream", Role::Client, Release::V3_21);
    let text = printed(&scene, Form::Stream { full: true }, None);
    let (lines, document) = text.split_at(text.find("\n{\n").unwrap() + 1);
    assert_eq!(lines.lines().count(), 4);
    assert_eq!(document, printed(&scene, Form::Json, None));
}

#[test]
fn a_failure_is_in_the_document() {
    let mut scene = scene("-J", Role::Client, Release::V3_21);
    scene.events.clear();
    let text = printed(&scene, Form::Json, Some("unable to connect"));
    assert_eq!(
        text,
        "{\n\t\"start\":\t{\n\t\t\"connected\":\t[],\n\t\t\"version\":\t\"iperf 3.21\",\n\
         \t\t\"system_info\":\t\"Linux here 6.1 x86_64\"\n\t},\n\t\"intervals\":\t[],\n\
         \t\"end\":\t{\n\t},\n\t\"error\":\t\"unable to connect\"\n}\n"
    );
    let text = printed(&scene, Form::Stream { full: false }, Some("unable to connect"));
    assert_eq!(
        text,
        "{\"event\":\"error\",\"data\":\"unable to connect\"}\n{\"event\":\"end\",\"data\":{}}\n"
    );
}

#[test]
fn missing_figures_of_the_peer_are_absent() {
    let mut scene = scene("-t 2 -J", Role::Client, Release::V3_21);
    if let Some(Event::Ended(report)) = scene.events.last_mut() {
        report.peer = None;
    }
    let document: Value =
        serde_json::from_str(&printed(&scene, Form::Json, Some("interrupt"))).unwrap();
    let end = document["end"].as_object().unwrap();
    assert!(end.contains_key("sum_sent") && !end.contains_key("sum_received"));
    assert!(end["cpu_utilization_percent"].get("remote_total").is_none());
    assert!(end["streams"][0].get("receiver").is_none());
}

#[test]
fn a_servers_output_is_a_field_or_a_line() {
    let mut scene = scene("-t 2 -J", Role::Client, Release::V3_21);
    if let Some(Event::Ended(report)) = scene.events.last_mut() {
        report.server_output = Some(ServerOutput::Text("printed".to_owned()));
    }
    let document: Value = serde_json::from_str(&printed(&scene, Form::Json, None)).unwrap();
    assert_eq!(document["server_output_text"], "printed");
    let lines = printed(&scene, Form::Stream { full: false }, None);
    assert!(lines.contains("{\"event\":\"server_output_text\",\"data\":\"printed\"}\n"), "{lines}");
}

#[test]
fn a_refused_test_has_what_was_known_of_it() {
    let mut scene = scene("-J -b 5M", Role::Client, Release::V3_21);
    scene.events.truncate(1);
    scene.context.asked = Some(Parameters { bandwidth_bps: 5_000_000, ..Parameters::default() });
    let text = printed(&scene, Form::Json, Some("refused"));
    let document: Value = serde_json::from_str(&text).unwrap();
    let start = document["start"].as_object().unwrap();
    assert_eq!(start["connecting_to"]["host"], "host.example");
    assert_eq!(
        (&start["tcp_mss_default"], &start["target_bitrate"]),
        (&1448.into(), &5_000_000.into())
    );
    assert!(!start.contains_key("test_start"));
}

#[test]
fn figures_of_a_peer_that_claims_the_largest_numbers_are_printed() {
    let most = u64::try_from(i64::MAX).unwrap();
    for words in ["-u -t 2 -P 3", "-t 2 -P 3 -R"] {
        let mut scene = scene(words, Role::Client, Release::V3_21);
        for event in &mut scene.events {
            let Event::Ended(report) = event else { continue };
            for remote in &mut report.peer.as_mut().unwrap().flows {
                for moved in [&mut remote.sent, &mut remote.received].into_iter().flatten() {
                    moved.bytes = most;
                }
                remote.retransmitted_segments = remote.retransmitted_segments.map(|_| most);
                remote.jitter_ns = remote.jitter_ns.map(|_| f64::MAX);
                if let Some(FlowExtension::Iperf3(totals)) = &mut remote.extension {
                    (totals.packets, totals.lost) = (Some(most), Some(i64::MAX));
                }
            }
        }
        let text = printed(&scene, Form::Json, None);
        let document: Value = serde_json::from_str(&text).unwrap();
        let sum = &document["end"][if words.contains("-R") { "sum_sent" } else { "sum_received" }];
        assert_eq!(sum["bytes"].as_u64(), Some(u64::MAX), "{words}");
        let counted = if words.contains("-R") {
            sum["retransmits"].as_u64() == Some(u64::MAX)
        } else {
            sum["lost_packets"].as_i64() == Some(i64::MAX)
        };
        assert!(counted, "{sum}");
        let mut printer = TextPrinter::new(scene.context.clone());
        let lines = scene.events.iter().flat_map(|event| printer.render_event(event));
        assert!(lines.collect::<String>().contains("[SUM]"));
    }
}

#[test]
fn loss_that_is_not_known_is_absent() {
    let mut scene = scene("-u -t 2 -J", Role::Client, Release::V3_21);
    if let Some(Event::Ended(report)) = scene.events.last_mut() {
        with_unknown_loss(report);
    }
    let document: Value = serde_json::from_str(&printed(&scene, Form::Json, None)).unwrap();
    for part in ["/end/sum", "/end/sum_received", "/end/streams/0/udp"] {
        let part = document.pointer(part).unwrap();
        assert!(part.get("packets").is_some() && part.get("jitter_ms").is_some(), "{part}");
        assert!(part.get("lost_packets").is_none() && part.get("lost_percent").is_none(), "{part}");
    }
    assert_eq!(document["end"]["sum_sent"]["lost_packets"], 0);
}

#[test]
fn a_document_for_a_client_is_rendered_as_far_as_there_is_room() {
    let scene = scene("-t 2 -J", Role::Server, Release::V3_21);
    let mut printer = JsonPrinter::new(scene.context, Form::Json);
    for event in &scene.events {
        let _lines = printer.record_event(event);
    }
    let line = printer.render_line(usize::MAX).unwrap();
    let document: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(document["intervals"].as_array().unwrap().len(), 2);
    assert_eq!(printer.render_line(line.len()), Some(line.clone()));
    assert_eq!(printer.render_line(line.len() - 1), None);
}

#[test]
fn the_tests_of_a_server_share_the_room_for_their_intervals() {
    let mut scene = scene("-t 2 -J -P 2", Role::Server, Release::V3_21);
    scene.context.stock = Stock::of(6, 100);
    let kept = |events: &[Event]| {
        let mut printer = JsonPrinter::new(scene.context.clone(), Form::Json);
        for event in events {
            let _lines = printer.record_event(event);
        }
        let text: String = printer.render_rest(None).collect();
        let document: Value = serde_json::from_str(&text).unwrap();
        let intervals = document["intervals"].as_array().unwrap().len();
        assert_eq!(document["intervals_dropped"].as_u64().unwrap(), 30 - intervals as u64);
        (intervals, printer)
    };
    let mut events = scene.events[..2].to_vec();
    events.extend(vec![scene.events[2].clone(); 30]);
    // One test has its own room, and as much as it leaves to the others; it gives all of it back.
    let (first, holds) = kept(&events);
    let (second, _gone) = kept(&events);
    assert_eq!((first, second), (28, 15));
    drop(holds);
    let (third, _) = kept(&events);
    assert_eq!(third, 22);
    let whole: Value = serde_json::from_str(&printed(&scene, Form::Json, None)).unwrap();
    assert!(whole.get("intervals_dropped").is_none());
}

#[test]
fn a_servers_document_keeps_its_order() {
    let mut scene = scene("-t 2 -J", Role::Client, Release::V3_21);
    if let Some(Event::Ended(report)) = scene.events.last_mut() {
        let text = "{\"start\":{\"version\":1,\"a\":[2.5]},\"end\":{}}".to_owned();
        report.server_output = Some(ServerOutput::Json(text));
    }
    let lines = printed(&scene, Form::Stream { full: false }, None);
    let line = "{\"event\":\"server_output_json\",\"data\":{\"start\":{\"version\":1,\"a\":[2.5]},\"end\":{}}}\n";
    assert!(lines.contains(line), "{lines}");
}

#[test]
fn a_file_without_content_goes_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("empty");
    std::fs::write(&path, "").unwrap();
    let words = format!("-t 2 -F {}", path.display());
    let scene = scene(&words, Role::Client, Release::V3_21);
    let document: Value = serde_json::from_str(&printed(&scene, Form::Json, None)).unwrap();
    let file = &document["end"]["streams"][0]["diskfile"];
    assert_eq!((&file["percent_sent"], &file["percent_received"]), (&100.into(), &100.into()));
    let mut printer = TextPrinter::new(scene.context);
    let text: String = scene.events.iter().flat_map(|event| printer.render_event(event)).collect();
    assert!(text.contains(" / 0.00 Byte (100%) of "), "{text}");
}
