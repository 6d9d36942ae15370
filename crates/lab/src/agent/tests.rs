//! The pair of machines over a wire in memory, under a virtual clock.

use super::*;
use crate::host::{Lines, Taken};

/// A controller and an agent, and what was done and found out.
struct Pair {
    controller: Controller,
    agent: Agent,
    now_ns: u64,
    to_agent: Lines,
    to_controller: Lines,
    /// Each line is delivered in two pieces, cut here.
    cut: usize,
    /// The line of both directions together that is lost.
    lost: Option<usize>,
    carried: usize,
    events: Vec<String>,
    actions: Vec<String>,
    /// The children that run.
    children: Vec<u32>,
    heeds_terminate: bool,
    is_cut_off: bool,
    /// By so much the agent's clock was set.
    set_by_ns: i64,
}

/// The agent's clock is ahead by this, and a line takes so long.
const AHEAD_NS: i64 = 7_000_000;
const WIRE_NS: u64 = 30_000;

fn start(task: u32, word: &str) -> StartTask {
    StartTask { task, argv: vec![word.to_owned()], ..StartTask::default() }
}

impl Pair {
    fn new() -> Self {
        let now = Moment { monotonic_ns: 1_000_000_000, utc_ns: 1_000_000_000 };
        let hello = AgentHello { sha256: "ab".repeat(32), ..AgentHello::default() };
        Self {
            controller: Controller::new(31_000_000_000, now),
            agent: Agent::new(hello, now),
            now_ns: now.monotonic_ns,
            to_agent: Lines::new(MAX_LINE_TO_AGENT),
            to_controller: Lines::new(MAX_LINE_FROM_AGENT),
            cut: 0,
            lost: None,
            carried: 0,
            events: Vec::new(),
            actions: Vec::new(),
            children: Vec::new(),
            heeds_terminate: true,
            is_cut_off: false,
            set_by_ns: 0,
        }
    }

    fn controllers_now(&self) -> Moment {
        Moment { monotonic_ns: self.now_ns, utc_ns: self.now_ns as i64 }
    }

    fn agents_now(&self) -> Moment {
        Moment { utc_ns: self.now_ns as i64 + AHEAD_NS + self.set_by_ns, ..self.controllers_now() }
    }

    /// Whether a line that is to be carried arrives.
    fn arrives(&mut self) -> bool {
        self.carried += 1;
        self.lost != Some(self.carried - 1) && !self.is_cut_off
    }

    fn pieces(&self, line: &str) -> [Vec<u8>; 2] {
        let whole = format!("{line}\n").into_bytes();
        let (first, second) = whole.split_at(self.cut.min(whole.len()));
        [first.to_vec(), second.to_vec()]
    }

    /// Carries lines until none is on its way. Whether there was any.
    fn carry(&mut self) -> bool {
        let mut any = false;
        loop {
            let mut still = false;
            while let Some(line) = self.controller.poll_output() {
                still = true;
                self.now_ns += WIRE_NS;
                if self.arrives() {
                    for piece in self.pieces(&line) {
                        self.to_agent.push(&piece);
                        let now = self.agents_now();
                        while let Some(Taken::Line(line)) = self.to_agent.take() {
                            self.agent.handle_line(line, now);
                        }
                    }
                }
            }
            self.act();
            while let Some(line) = self.agent.poll_output() {
                still = true;
                self.now_ns += WIRE_NS;
                if self.arrives() {
                    for piece in self.pieces(&line) {
                        self.to_controller.push(&piece);
                        let now = self.controllers_now();
                        while let Some(Taken::Line(line)) = self.to_controller.take() {
                            self.controller.handle_line(line, now);
                        }
                    }
                }
            }
            self.note();
            any |= still;
            if !still {
                return any;
            }
        }
    }

    /// Does what the agent wants done.
    fn act(&mut self) {
        let now = self.agents_now();
        while let Some(action) = self.agent.poll_action() {
            self.actions.push(format!("{action:?}"));
            match action {
                Action::Start(start) if start.argv == ["missing"] => {
                    self.agent.handle_started(start.task, Err("no such file".to_owned()), now);
                }
                Action::Start(StartTask { task, .. }) => {
                    self.children.push(task);
                    self.agent.handle_started(task, Ok(100 + task), now);
                    let json = br#"{"record":"started","text":"a\nb"}"#;
                    self.agent.handle_child_line(task, OutputStream::Stdout, json);
                    self.agent.handle_child_line(task, OutputStream::Stderr, b"{} \xff");
                }
                Action::Terminate { task } if self.heeds_terminate => self.end_child(task),
                Action::Kill { task } => self.end_child(task),
                _ => {}
            }
        }
    }

    fn end_child(&mut self, task: u32) {
        if let Some(at) = self.children.iter().position(|&child| child == task) {
            self.children.remove(at);
            self.agent.handle_ended(TaskEnd { task, code: Some(0), ..TaskEnd::default() });
        }
    }

    fn note(&mut self) {
        while let Some(event) = self.controller.poll_event() {
            self.events.push(match event {
                ControllerEvent::Child(child) => format!("child {}: {:?}", child.task, child.kind),
                event => format!("{event:?}"),
            });
        }
    }

    /// Lets time pass, in the machines' own steps.
    fn run_for(&mut self, length_ns: u64) {
        let end_ns = self.now_ns + length_ns;
        while self.carry() || self.now_ns < end_ns {
            let due = [self.controller.poll_timeout(), self.agent.poll_timeout()];
            let due_ns = due.into_iter().flatten().min().unwrap_or(u64::MAX);
            self.now_ns = self.now_ns.max(due_ns.min(end_ns));
            let (controllers, agents) = (self.controllers_now(), self.agents_now());
            self.controller.handle_timeout(controllers);
            self.agent.handle_timeout(agents);
            self.act();
            if self.agent.poll_end().is_some() && !self.is_cut_off {
                while let Some(line) = self.agent.poll_output() {
                    self.controller.handle_line(line.as_bytes(), controllers);
                }
                // The agent's process has exited.
                self.controller.handle_end();
            }
            self.note();
            if self.controller.is_over() && self.agent.poll_end().is_some() {
                return;
            }
        }
    }

    /// Two children, one of which is stopped and one ends with the agent; then the end.
    fn converse(&mut self) {
        self.run_for(SECOND_NS);
        self.controller.start(start(1, "one"));
        self.controller.start(start(2, "two"));
        self.controller.start(start(3, "missing"));
        self.run_for(2 * SECOND_NS);
        self.controller.write(1, "@1.5\n", true);
        self.controller.stop(1, 500);
        self.run_for(2 * SECOND_NS);
        let now = self.controllers_now();
        self.controller.bye(now);
        self.run_for(20 * SECOND_NS);
    }

    fn has(&self, text: &str) -> bool {
        self.events.iter().any(|event| event.contains(text))
    }
}

#[test]
fn a_conversation_from_hello_to_bye() {
    let mut pair = Pair::new();
    pair.converse();
    let brief: Vec<String> =
        pair.events.iter().map(|event| event.chars().take(26).collect()).collect();
    assert_eq!(
        brief,
        [
            "Opened(AgentHello { protoc",
            "ClockMeasured",
            "child 1: Started { pid: 10",
            "child 1: Line { seq: 0, js",
            "child 1: Text { stream: St",
            "child 2: Started { pid: 10",
            "child 2: Line { seq: 0, js",
            "child 2: Text { stream: St",
            "child 3: Refused(\"no such ",
            "child 1: Ended(TaskEnd { t",
            "child 2: Ended(TaskEnd { t",
            "Closed",
        ]
    );
    assert!(pair.has(r#"{"record":"started","text":"a\nb"}"#), "{:?}", pair.events);
    assert_eq!(pair.agent.poll_end(), Some(&AgentEnd::Bye));
    let writes = r#"Write { task: 1, text: "@1.5\n", end: true }"#;
    assert!(pair.actions.iter().any(|action| action == writes));
}

#[test]
fn every_cut_of_each_line_gives_the_same_conversation() {
    let mut whole = Pair::new();
    whole.converse();
    for cut in 1..400 {
        let mut pair = Pair::new();
        pair.cut = cut;
        pair.converse();
        assert_eq!((&pair.events, &pair.actions), (&whole.events, &whole.actions), "{cut}");
    }
}

#[test]
fn a_lost_line_is_noticed_and_leaves_no_child() {
    let mut whole = Pair::new();
    whole.converse();
    for lost in 0..whole.carried {
        let mut pair = Pair::new();
        pair.lost = Some(lost);
        pair.converse();
        pair.run_for(60 * SECOND_NS);
        assert!(pair.children.is_empty(), "{lost}");
        assert!(pair.agent.poll_end().is_some() && pair.controller.is_over(), "{lost}");
        // The very last lines may be lost without a difference.
        let is_same = pair.events == whole.events;
        let is_told = pair.has("Failed(") || pair.events.last() == Some(&"Closed".to_owned());
        assert!(is_same || is_told, "{lost}: {:?}", pair.events);
    }
}

#[test]
fn a_line_lost_before_the_end_is_a_failure() {
    let mut pair = Pair::new();
    pair.run_for(SECOND_NS);
    pair.lost = Some(pair.carried);
    pair.controller.start(start(1, "one"));
    pair.run_for(3 * SECOND_NS);
    assert!(pair.has("Failed(Agent { text: \"the input has"), "{:?}", pair.events);
    // And in the other direction.
    let mut pair = Pair::new();
    pair.run_for(SECOND_NS);
    pair.controller.start(start(1, "one"));
    pair.lost = Some(pair.carried + 1);
    pair.run_for(3 * SECOND_NS);
    assert!(pair.has("Failed(Nonsense"), "{:?}", pair.events);
}

#[test]
fn a_silent_controller_ends_all_children_within_eight_seconds() {
    for heeds_terminate in [true, false] {
        let mut pair = Pair::new();
        pair.run_for(SECOND_NS);
        pair.controller.start(start(1, "one"));
        pair.run_for(SECOND_NS);
        pair.heeds_terminate = heeds_terminate;
        pair.is_cut_off = true;
        let begin_ns = pair.now_ns;
        while pair.agent.poll_end().is_none() {
            pair.run_for(100_000_000);
            assert!(pair.now_ns < begin_ns + 9 * SECOND_NS);
        }
        assert!(pair.children.is_empty());
        let took_ns = pair.now_ns - begin_ns;
        // The last ping was up to a second before.
        let least_ns = if heeds_terminate { 4 } else { 7 } * SECOND_NS;
        assert!((least_ns..=least_ns + SECOND_NS + SECOND_NS / 5).contains(&took_ns), "{took_ns}");
        assert_eq!(pair.agent.poll_end(), Some(&AgentEnd::Silence { lease_ms: 5_000 }));
        assert!(pair.has("Silent") && pair.has("Failed(Silence)"), "{:?}", pair.events);
    }
}

#[test]
fn lines_that_come_after_the_lease_do_not_revive_the_agent() {
    let mut pair = Pair::new();
    pair.run_for(SECOND_NS);
    // The controller is stopped for six seconds, and its pings arrive then.
    pair.now_ns += 6 * SECOND_NS;
    let now = pair.agents_now();
    pair.agent.handle_line(br#"{"ping":{"sent_ns":1,"lines":1}}"#, now);
    assert_eq!(pair.agent.poll_end(), Some(&AgentEnd::Silence { lease_ms: 5_000 }));
}

#[test]
fn a_host_that_hangs_for_four_seconds_is_silent_and_heard_again() {
    let mut pair = Pair::new();
    pair.run_for(SECOND_NS);
    let mut pings = Vec::new();
    for _ in 0..40 {
        pair.now_ns += 100_000_000;
        let now = pair.controllers_now();
        pair.controller.handle_timeout(now);
        while let Some(line) = pair.controller.poll_output() {
            pings.push(line);
        }
        pair.note();
    }
    assert!(pair.has("Silent"), "{:?}", pair.events);
    let now = pair.agents_now();
    for ping in pings {
        pair.agent.handle_line(ping.as_bytes(), now);
    }
    pair.run_for(SECOND_NS);
    assert!(pair.has("Heard") && !pair.has("Failed"), "{:?}", pair.events);
}

#[test]
fn noise_before_the_hello_is_kept_for_the_error() {
    let mut pair = Pair::new();
    for line in ["Welcome to a\x1b[1m", "{\"a\":1}", "", "bye"] {
        let now = pair.controllers_now();
        pair.controller.handle_line(line.as_bytes(), now);
    }
    pair.controller.handle_too_long();
    pair.controller.handle_end();
    let Some(ControllerEvent::Failed(failure)) = pair.controller.poll_event() else { panic!() };
    let text = failure.to_string();
    assert!(text.contains("Welcome to a?[1m / {\"a\":1} / bye"), "{text}");
    // Noise of any length takes limited memory, and the hello that follows it counts.
    let mut pair = Pair::new();
    let now = pair.controllers_now();
    for _ in 0..10_000 {
        pair.controller.handle_line(&[b'x'; 1_000], now);
    }
    pair.run_for(SECOND_NS);
    assert!(pair.has("Opened"), "{:?}", pair.events);
}

#[test]
fn a_hello_that_does_not_come_is_a_failure() {
    let mut pair = Pair::new();
    pair.is_cut_off = true;
    pair.run_for(40 * SECOND_NS);
    assert!(pair.has("Failed(NoHello { ended: false"), "{:?}", pair.events);
    assert!(pair.agent.poll_end().is_some());
}

#[test]
fn the_clock_is_known_to_half_a_round_trip() {
    let mut pair = Pair::new();
    pair.run_for(200 * SECOND_NS);
    let offset = pair.controller.clock_offset().unwrap();
    assert!(offset.offset_ns.abs_diff(AHEAD_NS) <= offset.bound_ns, "{offset:?}");
    // The estimate begins anew each minute, so what clocks may drift apart stays small.
    assert!(offset.bound_ns <= WIRE_NS + 13_000_000, "{offset:?}");
    assert_eq!(pair.controller.round_trip_ns(), Some(2 * WIRE_NS));
    let now = pair.controllers_now();
    pair.controller.measure_clock(now);
    pair.run_for(SECOND_NS / 10);
    assert_eq!(pair.events.iter().filter(|event| *event == "ClockMeasured").count(), 2);
    assert!(pair.controller.clock_offset().unwrap().bound_ns <= WIRE_NS + 1_000);
}

#[test]
fn a_clock_that_is_set_is_measured_anew() {
    for set_by_ns in [3_000_000_000, -3_000_000_000] {
        let mut pair = Pair::new();
        pair.run_for(30 * SECOND_NS);
        pair.set_by_ns = set_by_ns;
        pair.run_for(3 * SECOND_NS);
        assert_eq!(pair.events.iter().filter(|event| *event == "ClockMeasured").count(), 2);
        let offset = pair.controller.clock_offset().unwrap();
        let truth_ns = AHEAD_NS + set_by_ns;
        assert!(offset.offset_ns.abs_diff(truth_ns) <= offset.bound_ns, "{offset:?}");
        assert!(offset.bound_ns <= WIRE_NS + 1_000_000, "{offset:?}");
    }
}

#[test]
fn nonsense_ends_both_machines_with_a_sentence() {
    for line in [
        "",
        "x",
        "{}",
        "{\"ping\":{}}",
        "{\"hello\":{\"versions\":[1],\"lease_ms\":5000}}",
        "{\"ping\":{\"sent_ns\":1,\"lines\":7}}",
        "{\"collect\":{\"request\":{\"sources\":[],\"hz\":1}}}",
        "\u{7f}",
    ] {
        let mut pair = Pair::new();
        pair.run_for(SECOND_NS);
        let now = pair.agents_now();
        pair.agent.handle_line(line.as_bytes(), now);
        pair.run_for(SECOND_NS);
        let Some(end @ AgentEnd::Nonsense { .. }) = pair.agent.poll_end() else { panic!("{line}") };
        assert!(end.to_string().ends_with("is not started by hand"), "{end}");
        assert!(pair.has("Failed(Agent"), "{line}: {:?}", pair.events);
    }
    for line in [
        "x",
        "{\"hello\":{}}",
        "{\"pong\":{\"sent_ns\":1,\"received_ns\":1,\"replied_ns\":1,\"lines\":0}}",
        "{\"started\":{\"task\":9,\"pid\":1}}",
        "{\"line\":{\"task\":9,\"seq\":0,\"json\":{}}}",
        "{\"text\":{\"task\":9,\"stream\":\"stdout\",\"text\":\"\"}}",
        "{\"ended\":{\"task\":9,\"code\":0,\"signal\":null,\"usage\":{\"user_ns\":0,\"system_ns\":0}}}",
    ] {
        let mut pair = Pair::new();
        pair.run_for(SECOND_NS);
        let now = pair.controllers_now();
        pair.controller.handle_line(line.as_bytes(), now);
        pair.run_for(SECOND_NS);
        assert!(pair.has("Failed(Nonsense"), "{line}: {:?}", pair.events);
    }
}

#[test]
fn hellos_of_other_versions_and_leases_are_refused() {
    for (hello, text) in [
        (r#"{"hello":{"versions":[2],"lease_ms":5000}}"#, "versions"),
        (r#"{"hello":{"versions":[1],"lease_ms":999}}"#, "lease of 999 ms"),
        (r#"{"hello":{"versions":[1],"lease_ms":60001}}"#, "lease of 60001 ms"),
        (r#"{"ping":{"sent_ns":1,"lines":0}}"#, "before the controller's hello"),
    ] {
        let mut pair = Pair::new();
        let now = pair.agents_now();
        pair.agent.handle_line(hello.as_bytes(), now);
        assert!(pair.agent.poll_end().unwrap().to_string().contains(text), "{hello}");
    }
    let mut pair = Pair::new();
    let hello = AgentHello { protocol: 9, ..AgentHello::default() };
    let line = serde_json::to_string(&FromAgent::Hello(hello)).unwrap();
    let now = pair.controllers_now();
    pair.controller.handle_line(line.as_bytes(), now);
    let event = pair.controller.poll_event();
    assert!(matches!(event, Some(ControllerEvent::Failed(Failure::Version { agent: 9 }))));
}

#[test]
fn orders_that_no_agent_follows_are_refused_one_by_one() {
    let mut pair = Pair::new();
    pair.run_for(SECOND_NS);
    let words = vec!["x".to_owned(); MAX_WORDS + 1];
    pair.controller.start(StartTask { task: 1, argv: words, ..StartTask::default() });
    pair.controller.start(start(2, "a\0b"));
    for task in 3..3 + MAX_TASKS as u32 {
        pair.controller.start(start(task, "x"));
    }
    pair.run_for(SECOND_NS / 2);
    assert!(pair.has("child 1: Refused") && pair.has("child 2: Refused"));
    let refused = pair.events.iter().filter(|event| event.contains(": Refused")).count();
    let started = pair.events.iter().filter(|event| event.contains(": Started")).count();
    // Two places were taken by what was asked for and refused when the last were asked for.
    assert_eq!((started, refused), (MAX_TASKS - 2, 4));
    assert!(!pair.has("Failed"));
}

#[test]
fn a_child_that_ignores_sigterm_is_killed_after_its_grace() {
    let mut pair = Pair::new();
    pair.heeds_terminate = false;
    pair.run_for(SECOND_NS);
    pair.controller.start(start(1, "one"));
    pair.run_for(SECOND_NS);
    pair.controller.stop(1, 700);
    pair.run_for(600_000_000);
    assert_eq!(pair.children, [1]);
    pair.run_for(200_000_000);
    assert!(pair.children.is_empty());
    assert!(pair.has("child 1: Ended"));
}

/// Each byte takes six in JSON: as one line the text would be longer than a controller takes.
#[test]
fn a_long_line_of_control_characters_comes_in_pieces() {
    let mut pair = Pair::new();
    pair.run_for(SECOND_NS);
    pair.controller.start(start(1, "one"));
    pair.run_for(SECOND_NS);
    let long = vec![1; MAX_LINE_FROM_AGENT / 6 + MAX_TEXT_OF_CHILD];
    pair.agent.handle_child_line(1, OutputStream::Stdout, &long);
    let mut length = 0;
    while let Some(line) = pair.agent.poll_output() {
        assert!(line.len() <= MAX_LINE_FROM_AGENT, "{}", line.len());
        pair.controller.handle_line(line.as_bytes(), pair.controllers_now());
        while let Some(event) = pair.controller.poll_event() {
            let ControllerEvent::Child(ChildEvent { kind, .. }) = event else {
                panic!("{event:?}")
            };
            let ChildEventKind::Text { text, .. } = kind else { panic!("{kind:?}") };
            length += text.len();
        }
    }
    assert_eq!(length, long.len());
}

#[test]
fn orders_that_are_longer_than_a_line_are_refused_or_come_in_pieces() {
    let mut pair = Pair::new();
    pair.run_for(SECOND_NS);
    let stdin = "\u{1}".repeat(MAX_LINE_TO_AGENT / 6);
    pair.controller.start(StartTask { stdin, ..start(1, "one") });
    pair.controller.start(start(2, "two"));
    pair.run_for(SECOND_NS);
    pair.controller.write(2, &"\u{1}".repeat(300_000), true);
    pair.controller.write(2, "", true);
    pair.run_for(SECOND_NS);
    assert!(pair.has("child 1: Refused(\"its words, environment and input"), "{:?}", pair.events);
    let ends: Vec<bool> = pair
        .actions
        .iter()
        .filter(|action| action.starts_with("Write"))
        .map(|action| action.ends_with("end: true }"))
        .collect();
    assert_eq!(ends, [false, false, true, true]);
    assert!(!pair.has("Failed"), "{:?}", pair.events);
}

#[test]
fn pieces_of_a_text_are_cut_between_characters() {
    let all = |text, most| message::pieces(text, most).collect::<Vec<_>>();
    assert_eq!(all("", 4), [""]);
    assert_eq!(all("abcd", 4), ["abcd"]);
    assert_eq!(all("abcde", 4), ["abcd", "e"]);
    assert_eq!(all("a\u{20ac}\u{20ac}b", 4), ["a\u{20ac}", "\u{20ac}b"]);
    assert_eq!(all("\u{1f600}\u{1f600}", 5), ["\u{1f600}", "\u{1f600}"]);
}
