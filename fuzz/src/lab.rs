//! What a controller and an agent do with lines from the other end.

use linerate_lab::agent::{
    Action, Agent, AgentHello, Controller, Moment, OutputStream, StartTask, TaskEnd,
};

/// Bytes of both directions, line by line: the first byte of a line says to which end it goes and how much time passes
/// before it, `>` and `<` those of the seeds.
pub fn agent_lines(data: &[u8]) {
    let mut now = Moment { monotonic_ns: 1, utc_ns: 1 };
    let mut agent = Agent::new(AgentHello::default(), now);
    let mut controller = Controller::new(60_000_000_000, now);
    for line in data.split(|&byte| byte == b'\n') {
        let Some((&way, line)) = line.split_first() else { continue };
        // Up to 2 s, so that leases run out.
        now.monotonic_ns += u64::from(way) * 8_000_000;
        now.utc_ns = now.utc_ns.wrapping_add(i64::from(way));
        agent.handle_timeout(now);
        controller.handle_timeout(now);
        match way % 4 {
            0 => controller.handle_line(line, now),
            1 => {
                // Orders of a controller that knows these numbers.
                let task = line.first().map_or(0, |&byte| u32::from(byte % 4));
                controller.start(StartTask { task, ..StartTask::default() });
                controller.stop(task, 5);
                controller.measure_clock(now);
            }
            2 => agent.handle_line(line, now),
            _ => agent.handle_child_line(1, OutputStream::Stdout, line),
        }
        while let Some(action) = agent.poll_action() {
            match action {
                Action::Start(start) if start.task % 3 == 0 => {
                    agent.handle_started(start.task, Err("no".to_owned()), now);
                }
                Action::Start(start) => agent.handle_started(start.task, Ok(1), now),
                Action::Kill { task } | Action::Terminate { task } => {
                    agent.handle_ended(TaskEnd { task, ..TaskEnd::default() });
                }
                Action::Write { .. } | Action::Collect { .. } => {}
            }
        }
        // All that an agent says is one line, and can be read.
        while let Some(line) = agent.poll_output() {
            assert!(!line.contains('\n'));
            assert!(serde_json::from_str::<serde_json::Value>(&line).is_ok());
        }
        while controller.poll_output().is_some() {}
        while controller.poll_event().is_some() {}
    }
}
