//! Lists of processors, as they are typed.

/// Processors to pin threads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cpus {
    /// These, in this order.
    List(Vec<u32>),
    /// Those of the NUMA node that this network interface hangs on.
    Near(String),
}

/// The most processors that a list may name: more than Linux supports on any machine.
const LIST_LENGTH_MAX: usize = 8192;

impl Cpus {
    /// Parses `0,2-5` (numbers and ranges, in the order given) or `numa:INTERFACE`.
    ///
    /// # Errors
    /// Shows the text and the grammar.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(interface) = text.strip_prefix("numa:") {
            return match interface {
                "" => Err("'numa:' lacks the interface: give one, such as numa:eth0".to_owned()),
                name => Ok(Self::Near(name.to_owned())),
            };
        }
        let wrong = || {
            format!(
                "'{text}' is no list of processors: give numbers and ranges such as 0,2-5, or numa:eth0"
            )
        };
        let mut cpus = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| match text.parse::<u32>() {
                Ok(cpu) if (cpu as usize) < LIST_LENGTH_MAX => Ok(cpu),
                _ => Err(wrong()),
            };
            let (first, last) = (number(first)?, number(last)?);
            if first > last || cpus.len() > LIST_LENGTH_MAX {
                return Err(wrong());
            }
            cpus.extend(first..=last);
        }
        Ok(Self::List(cpus))
    }

    /// The processors' numbers.
    ///
    /// # Errors
    /// Where the interface isn't there or its node can't be told.
    pub fn resolve(&self) -> Result<Vec<u32>, linerate_engine::error::Error> {
        match self {
            Self::List(cpus) => Ok(cpus.clone()),
            Self::Near(interface) => linerate_engine::cpus_near(interface),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_ranges_and_interfaces() {
        for (text, cpus) in [
            ("0", Cpus::List(vec![0])),
            ("0,2-5", Cpus::List(vec![0, 2, 3, 4, 5])),
            ("3,1", Cpus::List(vec![3, 1])),
            ("numa:eth0", Cpus::Near("eth0".to_owned())),
        ] {
            assert_eq!(Cpus::parse(text).unwrap(), cpus, "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", ",", "1,", "a", "-1", "5-2", "1-", "numa:", "8192", "0-4294967295", "1.5"]
        {
            assert!(Cpus::parse(text).is_err(), "{text:?}");
        }
        let long = vec!["0-8191"; 1000].join(",");
        assert!(Cpus::parse(&long).is_err());
    }
}
