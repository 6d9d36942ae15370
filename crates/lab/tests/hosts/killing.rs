//! Controllers that are killed or stopped: nothing of them is left.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::Signal;

use crate::process::{Place, signal};

/// The controllers that are killed, and those that are stopped, each with four hosts and two children on each.
const KILLED: usize = 60;
const STOPPED: usize = 40;
const HOSTS: &str = "4";

/// A controller is ended within this time of its start: while it opens, and while all runs.
const LATEST: Duration = Duration::from_secs(3);

#[test]
fn nothing_is_left_of_100_controllers_that_were_killed_or_stopped() {
    let place = Place::new();
    let mut random = seed();
    let begin = Instant::now();
    let mut controllers: Vec<(Child, Duration, bool)> = Vec::new();
    for number in 0..KILLED + STOPPED {
        let controller = Command::new(place.agent())
            .args(["controller".as_ref(), place.agent().as_os_str(), HOSTS.as_ref()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let after = LATEST.mul_f64((random >> 40) as f64 / f64::from(1 << 24));
        // The start of so many takes its time.
        let due = begin.elapsed() + after;
        controllers.push((controller, due, number % 5 < 2));
    }
    controllers.sort_by_key(|(_, due, _)| *due);
    let mut stopped = Vec::new();
    for (mut controller, due, stops) in controllers {
        thread::sleep(due.saturating_sub(begin.elapsed()));
        if stops {
            signal(controller.id(), Signal::STOP);
            stopped.push(controller);
        } else {
            controller.kill().unwrap();
            controller.wait().unwrap();
        }
    }
    assert_eq!(stopped.len(), STOPPED);
    let ended = Instant::now();
    // The stopped controllers themselves are all that remains.
    let until = ended + crate::process::PATIENCE;
    let left = loop {
        let mut left = place.processes();
        left.retain(|pid, _| !stopped.iter().any(|controller| controller.id() == *pid));
        if left.is_empty() || Instant::now() > until {
            break left;
        }
        thread::sleep(Duration::from_millis(50));
    };
    println!("all gone {:.1} s after the last controller was ended", ended.elapsed().as_secs_f64());
    for mut controller in stopped {
        controller.kill().unwrap();
        controller.wait().unwrap();
    }
    assert!(left.is_empty(), "{left:?}");
    place.await_nothing_left();
}

fn seed() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let seed = u64::from(since.subsec_nanos()) | 1;
    println!("seed {seed}");
    seed
}
