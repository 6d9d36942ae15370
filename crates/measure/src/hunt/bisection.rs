//! The search of the Crucible iperf benchmark (`bitrate-range`, `max-loss-pct`), step for step.

/// A binary search over whole numbers. The ends of the range are never run, and a rate is run once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bisection {
    low: u64,
    high: u64,
}

/// What the search does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BisectionStep {
    /// Run this number.
    Run(u64),
    /// The search is over.
    Answer(u64),
}

impl Bisection {
    /// A search from one number to another, in units of the user's choice.
    pub fn new(low: u64, high: u64) -> Self {
        Self { low, high }
    }

    /// The number to run next, or the answer.
    pub fn poll_step(&self) -> BisectionStep {
        if self.high.saturating_sub(self.low) < 2 {
            return BisectionStep::Answer(self.low);
        }
        BisectionStep::Run(self.low + (self.high - self.low) / 2)
    }

    /// The number that [`Bisection::poll_step`] named was run.
    pub fn handle_verdict(&mut self, passes: bool) {
        if let BisectionStep::Run(middle) = self.poll_step() {
            *(if passes { &mut self.low } else { &mut self.high }) = middle;
        }
    }
}

/// The original's rule: `lost` of `total` keep a limit in percent. Without any, the step fails.
pub fn keeps_loss(lost: u64, total: u64, limit_percent: f64) -> bool {
    total > 0 && (lost == 0 || lost as f64 * 100.0 / total as f64 <= limit_percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(low: u64, high: u64, capacity: u64) -> (String, u64) {
        let mut search = Bisection::new(low, high);
        let mut steps = Vec::new();
        loop {
            match search.poll_step() {
                BisectionStep::Answer(answer) => return (steps.join(" "), answer),
                BisectionStep::Run(rate) => {
                    let passes = rate <= capacity;
                    steps.push(format!("{rate}{}", if passes { 'P' } else { 'F' }));
                    search.handle_verdict(passes);
                }
            }
        }
    }

    /// Sequences that the original was seen to make.
    #[test]
    fn steps_are_the_originals() {
        let found = ("225F 137P 181F 159P 170P 175F 172P 173P 174F".to_owned(), 173);
        assert_eq!(steps(50, 400, 173), found);
        let unlimited = ("150P 175P 187P 193P 196P 198P 199P".to_owned(), 199);
        assert_eq!(steps(100, 200, 1_000), unlimited);
        assert_eq!(steps(100, 200, 50).1, 100);
        assert_eq!(steps(100, 101, 1_000), (String::new(), 100));
        assert_eq!(steps(100, 102, 1_000), ("101P".to_owned(), 101));
        assert_eq!(steps(200, 100, 1_000), (String::new(), 200));
        assert_eq!(steps(u64::MAX - 2, u64::MAX, 0).1, u64::MAX - 2);
    }

    #[test]
    fn loss_is_compared_as_the_original_does() {
        assert!(!keeps_loss(0, 0, 100.0));
        assert!(keeps_loss(0, 1, 0.0));
        assert!(keeps_loss(1, 1_000, 0.1));
        assert!(!keeps_loss(1, 999, 0.1));
        assert!(keeps_loss(9, 9, 100.0));
    }
}
