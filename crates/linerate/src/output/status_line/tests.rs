use linerate_measure::{Direction, Transport, Workload};

use super::*;

fn plan() -> Plan {
    let workload = Workload::stream(Direction::Up, Transport::Tcp);
    serde_json::from_value(serde_json::json!({
        "schema": Plan::SCHEMA, "host": "h", "port": 5250, "workload": workload,
    }))
    .unwrap()
}

#[test]
fn it_shows_while_nothing_else_moves_and_gives_way() {
    let began = Instant::now();
    let at = |ms| began + Duration::from_millis(ms);
    let mut line = StatusLine::new(60);
    assert_eq!(line.refresh(at(5000)), "", "no run, no line");
    line.begin(&plan(), began);
    assert_eq!(line.refresh(at(900)), "");
    let opening = line.refresh(at(3100));
    assert!(opening.starts_with("\r\x1b[K3 s  opening  TCP stream to h:5250"), "{opening:?}");
    assert!(opening.chars().count() < 60 + CLEAR.len(), "{opening:?}");
    assert_eq!(line.refresh(at(3200)), "", "it moved just now");
    assert_eq!(line.give_way(at(3300)), CLEAR);
    assert_eq!(line.give_way(at(3300)), "", "it is away already");

    let plan = Box::new(plan());
    line.handle_event(&Event::Started { run_id: String::new(), plan, utc_ns: 0 }, at(4000));
    assert!(line.refresh(at(6500)).contains("2 s of 10.0 s"));
    assert!(line.refresh(at(15_000)).contains("waiting for the results"));
}
