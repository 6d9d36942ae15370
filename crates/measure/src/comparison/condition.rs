//! Conditions on a difference, as `--fail-if` has them.

use std::fmt;

use super::estimate::FigureRatio;
use super::figures::{COMPARED, Compared};

/// A difference that is not accepted: `goodput < -2%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Condition {
    compared: &'static Compared,
    is_below: bool,
    percent: f64,
}

impl Condition {
    /// Reads one: a figure, `<` or `>`, and a change of B's figure against A's in percent.
    ///
    /// # Errors
    ///
    /// What is wrong with the text, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        let at = text
            .find(['<', '>'])
            .ok_or_else(|| format!("{text:?} has neither < nor >: goodput < -2%"))?;
        let (name, rest) = text.split_at(at);
        let (name, is_below) = (name.trim(), rest.starts_with('<'));
        let compared = Compared::called(name).ok_or_else(|| {
            let names: Vec<&str> = COMPARED.iter().map(|one| one.short_name).collect();
            format!("{name:?} is no figure that is compared: {}", names.join(", "))
        })?;
        let number = rest.get(1..).unwrap_or_default().trim();
        let without_sign = number.strip_suffix('%').map(str::trim_end);
        let percent = without_sign
            .and_then(|number| number.parse::<f64>().ok())
            .filter(|value| value.is_finite());
        let percent =
            percent.ok_or_else(|| format!("{number:?} is no change in percent: -2%, 0.5%"))?;
        if percent <= -100.0 {
            return Err(format!("no figure falls by {number}: a change is above -100%"));
        }
        Ok(Self { compared, is_below, percent })
    }

    /// The figure that it is about.
    pub fn compared(&self) -> &'static Compared {
        self.compared
    }

    /// Whether it holds with the whole interval; `None`: the figure was not measured, or has no interval.
    pub fn holds(&self, estimates: &[FigureRatio]) -> Option<bool> {
        let name = self.compared.name();
        let estimate = estimates.iter().find(|one| one.name == name)?;
        let percent_of = |ratio: f64| (ratio - 1.0) * 100.0;
        let (low, high) = (percent_of(estimate.low?), percent_of(estimate.high?));
        Some(if self.is_below { high < self.percent } else { low > self.percent })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_below { '<' } else { '>' };
        write!(f, "{} {sign} {}%", self.compared.short_name, self.percent)
    }
}

#[cfg(test)]
mod tests {
    use super::super::estimate::{Finding, Method};
    use super::*;

    fn estimate(low: f64, high: f64) -> FigureRatio {
        FigureRatio {
            name: "goodput_bps".to_owned(),
            a: 1.0,
            b: 1.0,
            ratio: 1.0,
            low: Some(low),
            high: Some(high),
            confidence: 0.95,
            method: Method::MedianOfPairs,
            pairs: 15,
            smallest_seen: None,
            verdict: Finding::NoDifferenceSeen,
        }
    }

    #[test]
    fn a_condition_holds_with_the_whole_interval() {
        let slower = Condition::parse("goodput<-2 %").unwrap();
        assert_eq!(slower.to_string(), "goodput < -2%");
        assert_eq!(slower.holds(&[estimate(0.90, 0.97)]), Some(true));
        assert_eq!(slower.holds(&[estimate(0.90, 0.985)]), Some(false));
        let faster = Condition::parse("goodput_bps > 1.5%").unwrap();
        assert_eq!(faster.holds(&[estimate(1.02, 1.10)]), Some(true));
        assert_eq!(faster.holds(&[estimate(1.01, 1.10)]), Some(false));
        assert_eq!(Condition::parse("p99 > 10%").unwrap().holds(&[estimate(1.0, 2.0)]), None);
        assert_eq!(slower.holds(&[FigureRatio { low: None, ..estimate(0.5, 0.5) }]), None);
    }

    #[test]
    fn a_wrong_condition_is_told() {
        for (text, part) in [
            ("goodput", "neither < nor >"),
            ("speed < -2%", "\"speed\" is no figure that is compared: goodput, transactions, "),
            ("goodput < 2", "\"2\" is no change in percent"),
            ("goodput < two%", "no change in percent"),
            ("goodput < inf%", "no change in percent"),
            ("goodput < -100%", "above -100%"),
            ("< -2%", "\"\" is no figure"),
            ("goodput >", "\"\" is no change"),
        ] {
            let error = Condition::parse(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
