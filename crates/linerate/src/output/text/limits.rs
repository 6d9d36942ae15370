//! What limited a run, in words.

use linerate_measure::limits::{Cause, Limit, Place};
use linerate_measure::units::render_bytes;
use linerate_measure::{Direction, Role, Run};

/// A smaller share of the time is not told.
const LEAST_SHARE: f64 = 0.5;

/// The lines of each direction: one where nothing is to be changed, else what stood behind it and a way out too.
pub(super) fn limit_lines(run: &Run) -> Vec<(String, String)> {
    let of_directions = || run.summary.limits.iter().filter(|limit| limit.flow.is_none());
    let several = of_directions().count() > 1;
    let mut lines = Vec::new();
    for limit in of_directions() {
        let name = match (several, limit.direction) {
            (false, _) => "limited by",
            (true, Direction::Down) => "limited by, down",
            (true, _) => "limited by, up",
        };
        // Of few intervals the share says little.
        let share = match limit.share.filter(|share| *share >= LEAST_SHARE) {
            Some(share) => format!(", {:.0} % of the time", share * 100.0),
            None => String::new(),
        };
        lines.push((name.to_owned(), format!("{}{share}", describe(limit))));
        if is_well(limit.cause) {
            continue;
        }
        let waiting = render_waiting(limit);
        lines.extend(waiting.map(|text| ("  waiting".to_owned(), text)));
        lines.extend(limit.advice.clone().map(|text| ("  way out".to_owned(), text)));
    }
    lines
}

/// Whether the network or the plan is the limit, as it should be.
fn is_well(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::OwnPacing | Cause::PathRate | Cause::PathDelay | Cause::Path | Cause::BothCpus
    )
}

/// The sender and the receiver of a direction.
fn ends(limit: &Limit) -> (&'static str, &'static str) {
    let (sender, receiver) = match limit.direction {
        Direction::Down => (Role::Server, Role::Client),
        Direction::Up | Direction::Both => (Role::Client, Role::Server),
    };
    (sender.name(), receiver.name())
}

fn describe(limit: &Limit) -> String {
    let (sender, receiver) = ends(limit);
    match limit.cause {
        Cause::OwnPacing => "the rate or schedule that was asked for".to_owned(),
        Cause::LocalCpu => format!("the {sender}'s processor"),
        Cause::SenderIdle => format!("the {sender}, which did nothing for a while"),
        Cause::SendBuffer => format!("the {sender}'s send buffer"),
        Cause::LocalQueue => format!("the queue of the {sender}'s own device"),
        Cause::ReceiveWindow => format!("the {receiver}'s receive window"),
        Cause::StartUp => "slow start: the test was too short".to_owned(),
        Cause::Loss => "losses on the path".to_owned(),
        Cause::PathRate => "the path's rate".to_owned(),
        Cause::PathDelay => "the path's delay".to_owned(),
        Cause::Path => "the path".to_owned(),
        Cause::Stalls => match limit.place {
            Place::Sender => format!("stalls of the {sender}"),
            Place::Receiver => format!("stalls of the {receiver}"),
            _ => "stalls".to_owned(),
        },
        Cause::RemoteCpu => format!("the {receiver}'s processor"),
        Cause::ReceiverSocket => format!("the {receiver}'s socket buffer"),
        Cause::ReceiverIdle => format!("the {receiver}, which did nothing for a while"),
        Cause::BothCpus => "work and wake-ups at both ends".to_owned(),
    }
}

/// What stood where, as far as it is known.
fn render_waiting(limit: &Limit) -> Option<String> {
    let (sender, receiver) = ends(limit);
    let amount = |bytes: u64| if bytes == 0 { "nothing".to_owned() } else { render_bytes(bytes) };
    let unsent = limit.evidence.notsent_bytes;
    let unread = limit.evidence.receive_queue_bytes;
    let parts: Vec<String> = [
        unsent.map(|bytes| format!("{} unsent at the {sender}", amount(bytes))),
        unread.map(|bytes| format!("{} unread at the {receiver}", amount(bytes))),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use linerate_measure::limits::LimitEvidence;
    use linerate_measure::run::Draft;
    use linerate_measure::{Outcome, Plan, Transport, Workload};

    use super::*;

    fn lines(limits: Vec<Limit>) -> Vec<String> {
        let plan = Plan::new("host", 1, Workload::stream(Direction::Both, Transport::Tcp));
        let mut run = Draft::new("1".to_owned(), plan).into_run(Outcome::Failed, 1, None);
        run.summary.limits = limits;
        limit_lines(&run).into_iter().map(|(name, text)| format!("{name}: {text}")).collect()
    }

    fn limit(place: Place, cause: Cause, direction: Direction) -> Limit {
        Limit {
            place,
            cause,
            direction,
            flow: None,
            sure: true,
            share: Some(0.94),
            evidence: LimitEvidence::default(),
            advice: None,
        }
    }

    #[test]
    fn a_limit_that_is_no_fault_has_one_line() {
        let path = limit(Place::Path, Cause::PathRate, Direction::Up);
        let of_flow = Limit { flow: Some(3), ..path.clone() };
        assert_eq!(lines(vec![path, of_flow]), ["limited by: the path's rate, 94 % of the time"]);
        assert!(lines(Vec::new()).is_empty());
    }

    #[test]
    fn each_direction_names_its_own_ends() {
        let evidence = LimitEvidence {
            notsent_bytes: Some(0),
            receive_queue_bytes: Some(1 << 20),
            ..LimitEvidence::default()
        };
        let up = Limit { evidence, ..limit(Place::Receiver, Cause::RemoteCpu, Direction::Up) };
        let down = limit(Place::ReceiveWindow, Cause::ReceiveWindow, Direction::Down);
        let down = Limit { share: None, advice: Some("more".to_owned()), ..down };
        assert_eq!(
            lines(vec![up, down]),
            [
                "limited by, up: the server's processor, 94 % of the time",
                "  waiting: nothing unsent at the client; 1.05 MB unread at the server",
                "limited by, down: the client's receive window",
                "  way out: more",
            ]
        );
    }
}
