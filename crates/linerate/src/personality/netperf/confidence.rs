//! Whether repeated results agree well enough: netperf's confidence intervals (`-I`, `-i`).

use linerate_measure::confidence::student;

/// How often a test is repeated, and when it is enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Schedule {
    /// Iterations at least.
    pub least: u32,
    /// Iterations at most.
    pub most: u32,
    /// What is asked of the results; absent: nothing.
    pub demand: Option<Demand>,
}

/// How well results must agree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Demand {
    /// 95 or 99 percent.
    pub level_percent: u32,
    /// Full width of the interval, as a part of the mean.
    pub width: f64,
    /// Whether agreement of the result is enough, whatever the processors did.
    pub result_only: bool,
}

/// What came out of the repetitions. A width is the interval's full width in percent of the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Agreement {
    /// Iterations done.
    pub iterations: u32,
    /// What was asked.
    pub demand: Option<Demand>,
    /// Whether it was reached.
    pub reached: bool,
    /// Width for the result.
    pub result_percent: f64,
    /// Width for the local processors' use; zero where it was not measured.
    pub local_cpu_percent: f64,
    /// Width for the remote processors' use, likewise.
    pub remote_cpu_percent: f64,
}

/// One figure over all iterations so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Mean {
    count: u32,
    sum: f64,
    sum_of_squares: f64,
}

impl Mean {
    pub(super) fn record(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.sum_of_squares += value * value;
    }

    /// The mean, where there is one.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }

    /// Full width of the confidence interval as a part of the mean, by Student's distribution; zero
    /// for a constant, and for what was never measured.
    fn width(&self, level_percent: u32) -> f64 {
        let Some(mean) = self.mean() else { return 0.0 };
        let variance = (self.sum_of_squares / f64::from(self.count) - mean * mean).max(0.0);
        if variance == 0.0 {
            return 0.0;
        }
        if self.count < 2 || mean == 0.0 {
            return f64::INFINITY;
        }
        let freedom = self.count - 1;
        2.0 * student(level_percent, freedom) * (variance / f64::from(freedom)).sqrt() / mean
    }
}

/// The figures that must agree.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Repetitions {
    pub(super) result: Mean,
    pub(super) local_cpu: Mean,
    pub(super) remote_cpu: Mean,
}

impl Repetitions {
    /// Where the results stand after so many iterations.
    pub(super) fn agreement(&self, schedule: &Schedule) -> Agreement {
        let iterations = self.result.count;
        let Some(demand) = schedule.demand else {
            return Agreement {
                iterations,
                demand: None,
                reached: true,
                result_percent: 0.0,
                local_cpu_percent: 0.0,
                remote_cpu_percent: 0.0,
            };
        };
        let width = |figure: &Mean| figure.width(demand.level_percent);
        let (result, local, remote) =
            (width(&self.result), width(&self.local_cpu), width(&self.remote_cpu));
        let widest = if demand.result_only { result } else { result.max(local).max(remote) };
        Agreement {
            iterations,
            demand: Some(demand),
            reached: iterations >= 2 && widest <= demand.width,
            result_percent: result * 100.0,
            local_cpu_percent: local * 100.0,
            remote_cpu_percent: remote * 100.0,
        }
    }
}

impl Schedule {
    /// Whether another iteration is due.
    pub(super) fn goes_on(&self, agreement: &Agreement) -> bool {
        let done = agreement.iterations;
        done < self.least || (done < self.most && !agreement.reached)
    }
}

/// What is printed where the demand was not met.
pub(super) fn render_warning(agreement: &Agreement, schedule: &Schedule) -> String {
    if agreement.reached || schedule.most <= 1 {
        return String::new();
    }
    format!(
        "!!! WARNING\n\
         !!! Desired confidence was not achieved within the specified iterations.\n\
         !!! This implies that there was variability in the test environment that\n\
         !!! must be investigated before going further.\n\
         !!! Confidence intervals: Throughput      : {:4.3}%\n\
         !!!                       Local CPU util  : {:4.3}%\n\
         !!!                       Remote CPU util : {:4.3}%\n\n",
        agreement.result_percent, agreement.local_cpu_percent, agreement.remote_cpu_percent
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(width: f64, result_only: bool) -> Schedule {
        let demand = Demand { level_percent: 95, width, result_only };
        Schedule { least: 3, most: 5, demand: Some(demand) }
    }

    fn after(results: &[f64], cpu: &[f64]) -> Repetitions {
        let mut all = Repetitions::default();
        results.iter().for_each(|value| all.result.record(*value));
        cpu.iter().for_each(|value| all.local_cpu.record(*value));
        all
    }

    #[test]
    fn the_width_is_students_interval() {
        // Mean 10, standard error sqrt(2/3 / 2) = 0.57735, t(95 %, 2) = 4.303.
        let agreement = after(&[9.0, 10.0, 11.0], &[]).agreement(&schedule(0.05, false));
        let expected = 2.0 * 4.303 * (2.0_f64 / 3.0 / 2.0).sqrt() / 10.0 * 100.0;
        assert!((agreement.result_percent - expected).abs() < 1e-9);
        assert!(!agreement.reached);
        assert_eq!(agreement.remote_cpu_percent, 0.0);
    }

    #[test]
    fn iterations_go_on_until_results_agree_or_there_are_enough() {
        let strict = schedule(0.05, false);
        let goes_on = |all: &Repetitions| strict.goes_on(&all.agreement(&strict));
        assert!(goes_on(&after(&[10.0, 10.0], &[])), "three at least");
        assert!(!goes_on(&after(&[10.0, 10.0, 10.0], &[])));
        assert!(goes_on(&after(&[9.0, 10.0, 11.0], &[])));
        assert!(!goes_on(&after(&[9.0, 10.0, 11.0, 9.0, 10.0], &[])), "five at most");
        let uneven_cpu = after(&[10.0; 3], &[1.0, 2.0, 3.0]);
        assert!(goes_on(&uneven_cpu));
        let lenient = schedule(0.05, true);
        assert!(!lenient.goes_on(&uneven_cpu.agreement(&lenient)));
    }

    #[test]
    fn the_warning_tells_the_widths() {
        let strict = schedule(0.05, false);
        let agreement = after(&[9.0, 10.0, 11.0], &[]).agreement(&strict);
        let text = render_warning(&agreement, &strict);
        assert!(text.starts_with("!!! WARNING\n") && text.ends_with("0.000%\n\n"), "{text}");
        assert!(text.contains("Throughput      : 49.687%"), "{text}");
    }
}
