//! Starts of many hosts at one time: counts only, since a busy machine starts nothing on time.

use std::sync::Arc;

use linerate_lab::agent::{Moment, StartTask};
use linerate_lab::barrier::{lateness, on_host, render_start, skew, start_time};
use linerate_lab::host::{HostClock, NamedHost, NetnsHost};

use crate::fleet::Fleet;
use crate::process::Watched;
use crate::skipped::skip;

const HOSTS: usize = 8;

#[test]
fn eight_namespaces_start_when_all_are_armed() {
    let fleet = match Fleet::create(HOSTS) {
        Ok(fleet) => fleet,
        Err(why) => return skip(&why),
    };
    let hosts: Vec<NamedHost> = (0..HOSTS)
        .map(|host| {
            let name = fleet.namespace(host);
            let host = Arc::new(NetnsHost::new(&name, fleet.place.executable()));
            NamedHost { name, host }
        })
        .collect();
    let mut watched = Watched::open(&hosts);
    let clocks: Vec<HostClock> = (0..HOSTS).map(|host| watched.await_opened(host)).collect();
    let tasks: Vec<u32> = (0..HOSTS)
        .map(|host| {
            let argv = vec!["wait".to_owned()];
            watched
                .session
                .start(host, StartTask { argv, keep_stdin: true, ..StartTask::default() })
        })
        .collect();
    for &task in &tasks {
        assert_eq!(watched.await_line(task), r#"{"record":"armed"}"#);
    }
    let start_ns = start_time(Moment::now().utc_ns, clocks.iter().map(|clock| clock.round_trip_ns));
    for (host, &task) in tasks.iter().enumerate() {
        let line = render_start(on_host(start_ns, clocks[host].offset)) + "\n";
        watched.session.write(host, task, &line, true);
    }
    let mut late = Vec::new();
    for (host, &task) in tasks.iter().enumerate() {
        let line: serde_json::Value = serde_json::from_str(&watched.await_line(task)).unwrap();
        late.push(lateness(start_ns, line["utc_ns"].as_i64().unwrap(), clocks[host]));
        assert_eq!(watched.await_ended(task).code, Some(0));
    }
    let skew = skew(&late).unwrap();
    println!("{HOSTS} namespaces started late by: {skew:?}");
    assert_eq!(late.len(), HOSTS);
    // A sleep never ends early; the clock may be off by its bound.
    let earliest_ns = late.iter().map(|late| late.late_ns + late.bound_ns as i64).min().unwrap();
    assert!(earliest_ns >= 0, "{late:?}");
    drop(watched);
    fleet.place.await_nothing_left();
}

#[test]
fn a_namespace_that_does_not_exist_is_named() {
    let place = crate::process::Place::new();
    let host = Arc::new(NetnsHost::new("linerate-test-nowhere", place.executable()));
    let mut watched = Watched::open(&[NamedHost { name: "a".to_owned(), host }]);
    let error = watched.await_lost(0).0.to_string();
    assert!(error.contains("no network namespace 'linerate-test-nowhere'"), "{error}");
}
