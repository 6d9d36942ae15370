//! What limited a run, in words.

use linerate_measure::limits::Limit;
use linerate_measure::units::{render_bytes, render_duration_ns, render_rate};
use linerate_measure::{Direction, End, Plan, Rate, Run};

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
        lines.push((name.to_owned(), format!("{}{share}", limit.describe())));
        if limit.is_well() {
            continue;
        }
        let waiting = render_waiting(limit);
        lines.extend(waiting.map(|text| ("  waiting".to_owned(), text)));
        lines.extend(limit.advice.clone().map(|text| ("  way out".to_owned(), text)));
    }
    let explained = run.summary.explanation.as_ref();
    lines.extend(explained.map(|told| ("explained".to_owned(), told.sentence.clone())));
    lines
}

/// What a run is for that explains another's losses.
pub(crate) fn render_inquiry(plan: &Plan) -> String {
    let workload = &plan.workload;
    let rate = match workload.rate {
        Some(Rate::AllFlows { bps } | Rate::EachFlow { bps }) => render_rate(bps as f64),
        None => "any rate".to_owned(),
    };
    let time = match workload.end {
        End::Time { duration_ns } => format!(" for {}", render_duration_ns(duration_ns)),
        End::Bytes { .. } | End::Count { .. } => String::new(),
    };
    format!("linerate: losses limited the run: a run paced at {rate}{time} explains them\n")
}

/// What stood where, as far as it is known.
fn render_waiting(limit: &Limit) -> Option<String> {
    let (sender, receiver) = limit.ends();
    let amount = |bytes: u64| if bytes == 0 { "nothing".to_owned() } else { render_bytes(bytes) };
    let unsent = limit.evidence.notsent_bytes;
    let unread = limit.evidence.receive_queue_bytes;
    let parts: Vec<String> = [
        unsent.map(|bytes| format!("{} unsent at the {}", amount(bytes), sender.name())),
        unread.map(|bytes| format!("{} unread at the {}", amount(bytes), receiver.name())),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use linerate_measure::limits::{Cause, Inquiry, LimitEvidence, Place};
    use linerate_measure::run::Draft;
    use linerate_measure::{Outcome, Transport, Workload};

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
    fn an_explanation_stands_below_the_limits() {
        let plan = Plan::new("host", 1, Workload::stream(Direction::Up, Transport::Tcp));
        let mut run = Draft::new("1".to_owned(), plan.clone()).into_run(Outcome::Failed, 1, None);
        run.summary.limits = vec![limit(Place::Path, Cause::PathRate, Direction::Up)];
        let told = Inquiry::of(&run).explanation();
        let sentence = told.sentence.clone();
        run.summary.explanation = Some(Box::new(told));
        assert_eq!(limit_lines(&run).last(), Some(&("explained".to_owned(), sentence)));
        let workload = Workload {
            rate: Some(Rate::AllFlows { bps: 5_000_000 }),
            end: End::Time { duration_ns: 2_000_000_000 },
            ..plan.workload.clone()
        };
        assert_eq!(
            render_inquiry(&Plan { workload, ..plan }),
            "linerate: losses limited the run: a run paced at 5.00 Mbit/s for 2.00 s explains them\n"
        );
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
