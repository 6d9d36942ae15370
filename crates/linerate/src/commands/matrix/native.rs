//! linerate's own workloads in a plan: the command lines of `serve` and of a client.

use clap::{ArgAction, CommandFactory, Parser};
use linerate_lab::plan::{Fault, HUNT, Known, Prepared, Ready, Search, TaskSpec, Word, Work};
use linerate_measure::hunt::{Goal, HuntTime, estimate};
use linerate_measure::matrix::Iteration;
use linerate_measure::threshold::{figures_of, hunted};
use linerate_measure::{End, Plan, Rate, Workload};

use super::workloads::Flag;
use crate::args::{Cli, Command};
use crate::planning::{
    goal_from_args, plans_from_connect, plans_from_media, plans_from_rr, plans_from_stream,
};

/// A command that measures with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Native {
    Stream,
    Media,
    Rr,
    Connect,
    /// Not one of [`Self::MEASURING`]: it has its own list in a plan.
    Hunt,
}

/// Flags that the matrix itself gives, or that change where a result goes.
const OF_MATRIX: [&str; 23] = [
    "port",
    "json",
    "ndjson",
    "csv",
    "output",
    "report",
    "quiet",
    "verbose",
    "dry-run",
    "repeat",
    "precision",
    "title",
    "tag",
    "start-at",
    "exclusive",
    "server-key",
    "ca",
    "insecure",
    "key",
    "help",
    "keylog",
    "store",
    "trial",
];
/// Flags of `serve` that a plan can give, after `server.`.
const OF_SERVER: [&str; 3] = ["bind-device", "busy-poll", "cpu"];
const DIRECTION: &str = "direction";
/// Parameters whose values are flags that stand alone.
const CHOICES: [(&str, &[&str]); 2] =
    [("protocol", &["tcp", "tls", "udp", "quic"]), (DIRECTION, &["up", "down", "both", "duplex"])];
/// The most trials of a hunt whose verdict counts, and how many times the plan's time one may take.
const HUNT_TRIALS: u64 = 25;
const HUNT_TRIAL_TIMES: u64 = 6;
/// What a load takes whose end is no time.
const GUESS_NS: u64 = 10_000_000_000;

/// A flag of a command, and whether a value belongs to it.
struct Offered {
    name: String,
    takes_value: bool,
}

impl Native {
    /// What `[[cells]]` can name.
    pub(super) const MEASURING: [Self; 4] = [Self::Stream, Self::Media, Self::Rr, Self::Connect];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Media => "media",
            Self::Rr => "rr",
            Self::Connect => "connect",
            Self::Hunt => HUNT,
        }
    }

    pub(super) fn of_name(name: &str) -> Option<Self> {
        Self::MEASURING.into_iter().chain([Self::Hunt]).find(|native| native.name() == name)
    }

    pub(super) fn parameters(self) -> Vec<String> {
        let flags = flags_of(self.name());
        let has = |name: &str| flags.iter().any(|flag| flag.name == name);
        let choices = CHOICES.iter().filter(|(name, words)| {
            // A hunt has `down` alone, true or false.
            words.iter().any(|word| has(word)) && (self != Self::Hunt || *name != DIRECTION)
        });
        let mut names: Vec<String> = choices.map(|(name, _)| (*name).to_owned()).collect();
        names.extend(flags.iter().map(|flag| flag.name.replace('-', "_")));
        names.extend(OF_SERVER.iter().map(|name| format!("server.{}", name.replace('-', "_"))));
        names
    }

    pub(super) fn prepare(self, iteration: &Iteration) -> Result<Prepared, Fault> {
        let (server, client) = self.words(iteration)?;
        if self == Self::Hunt {
            return prepare_hunt(server, client, iteration);
        }
        let plan = self.plan(&client, iteration)?;
        let workload = &plan.workload;
        Ok(Prepared {
            search: None,
            expected_ns: expected_ns(workload),
            longest_ns: None,
            figures: figures_of(Some(workload)),
            needs_port: false,
            work: Work {
                server: TaskSpec::new(server, Ready::Listening),
                client: TaskSpec::new(client, Ready::Armed),
            },
        })
    }

    /// The words of the server and of the client.
    fn words(self, iteration: &Iteration) -> Result<(Vec<Word>, Vec<Word>), Fault> {
        let mut server: Vec<Word> = vec!["serve".into(), "--ndjson".into(), "--port".into()];
        server.push(Known::Port.into());
        let mut client: Vec<Word> = vec![self.name().into(), "--ndjson".into(), "--port".into()];
        client.push(Known::Port.into());
        client.extend(["--server-key".into(), Known::Key.into()]);
        if self != Self::Hunt {
            client.extend(["--start-at".into(), "-".into()]);
        }
        let (of_server, of_client) = (flags_of("serve"), flags_of(self.name()));
        for setting in &iteration.settings {
            let (name, value) = (setting.name.as_str(), setting.value.as_str());
            let fault = |why| Fault { parameter: Some(setting.name.clone()), why };
            let (words, flags, name) = match name.strip_prefix("server.") {
                Some(name) => (&mut server, &of_server, name),
                None => (&mut client, &of_client, name),
            };
            if let Some((_, choices)) = CHOICES.iter().find(|(choice, _)| *choice == name) {
                let known = choices.iter().any(|choice| {
                    *choice == value && flags.iter().any(|flag| flag.name == *choice)
                });
                if !known {
                    let choices: Vec<&str> = choices.to_vec();
                    return Err(fault(format!("is {value}: write {}", choices.join(", "))));
                }
                words.push(format!("--{value}").into());
                continue;
            }
            let name = name.replace('_', "-");
            let takes_value = flags.iter().any(|flag| flag.name == name && flag.takes_value);
            match Flag::of(value, takes_value).map_err(fault)? {
                Flag::Off => {}
                Flag::Alone => words.push(format!("--{name}").into()),
                Flag::With(value) => words.push(format!("--{name}={value}").into()),
            }
        }
        // Behind `--` an address is never taken for a flag.
        client.extend(["--".into(), Known::Address.into()]);
        Ok((server, client))
    }

    /// The plan that the client would make of its words.
    fn plan(self, client: &[Word], iteration: &Iteration) -> Result<Plan, Fault> {
        let fault = |text: &str| blame(iteration, text);
        let plans = match &command_of(client, iteration)? {
            Command::Stream(args) => plans_from_stream(args),
            Command::Media(args) => plans_from_media(args),
            Command::Rr(args) => plans_from_rr(args),
            Command::Connect(args) => plans_from_connect(args),
            _ => return Err(fault("is no workload")),
        };
        let mut plans = plans.map_err(|error| fault(&error.to_string()))?;
        if plans.len() > 1 {
            let why = "has several sizes in one value: write them as a list of the plan".to_owned();
            return Err(Fault { parameter: Some("size".to_owned()), why });
        }
        let plan = plans.pop().ok_or_else(|| fault("makes no plan"))?;
        plan.check().map_err(|error| fault(&error.to_string()))?;
        Ok(plan)
    }
}

/// A search: its client makes its trials one after the other, and begins at once.
fn prepare_hunt(
    server: Vec<Word>,
    client: Vec<Word>,
    iteration: &Iteration,
) -> Result<Prepared, Fault> {
    let fault = |text: &str| blame(iteration, text);
    let Command::Hunt(args) = command_of(&client, iteration)? else {
        return Err(fault("is no hunt"));
    };
    let (goal, plan) = goal_from_args(&args).map_err(|error| fault(&error.to_string()))?;
    let HuntTime { shortest_ns, longest_ns } = estimate(&goal);
    let of_hunt = |goal: &Goal| Search {
        goal: goal.clone(),
        workload: plan.workload.clone(),
        trial: TaskSpec::new(trial_words(&client), Ready::Armed),
    };
    Ok(Prepared {
        search: Some(Box::new(of_hunt(&goal))),
        // Most rates are neither near the lowest nor near the highest.
        expected_ns: (shortest_ns as f64 * longest_ns as f64).sqrt() as u64,
        longest_ns: Some(longest_ns.max(most_ns(&goal))),
        figures: vec![hunted(goal.unit).name.to_owned()],
        needs_port: false,
        work: Work {
            server: TaskSpec::new(server, Ready::Listening),
            client: TaskSpec::new(client, Ready::AtOnce),
        },
    })
}

/// The words of a client that makes one trial and waits for its start, from those of a hunt.
fn trial_words(hunt: &[Word]) -> Vec<Word> {
    let mut words: Vec<Word> = hunt.to_vec();
    let one: [Word; 4] = ["--start-at".into(), "-".into(), "--trial".into(), Known::Trial.into()];
    // Behind the name of the command.
    drop(words.splice(1..1, one));
    words
}

/// The longest that the trials of a hunt take.
fn most_ns(goal: &Goal) -> u64 {
    goal.trial_ns.saturating_mul(HUNT_TRIALS * HUNT_TRIAL_TIMES)
}

/// The command that the words of a client are, with an address and a key in their places.
fn command_of(client: &[Word], iteration: &Iteration) -> Result<Command, Fault> {
    let reached = linerate_lab::plan::Reached {
        address: "127.0.0.1".to_owned(),
        port: linerate_measure::plan::DEFAULT_PORT,
        key: "0".repeat(64),
        trial: String::new(),
    };
    let words = client.iter().map(|word| word.complete(&reached));
    let words = std::iter::once("linerate".to_owned()).chain(words);
    let cli = Cli::try_parse_from(words).map_err(|error| blame(iteration, &sentence(&error)))?;
    Ok(cli.command)
}

/// A fault of the parameter whose flag a text names.
fn blame(iteration: &Iteration, text: &str) -> Fault {
    let named = |name: &str| text.contains(&format!("--{}", name.replace('_', "-")));
    let blamed = iteration.settings.iter().find(|one| named(&one.name));
    Fault { parameter: blamed.map(|one| one.name.clone()), why: text.to_owned() }
}

/// The flags of a command that a plan can give.
fn flags_of(command: &str) -> Vec<Offered> {
    let cli = Cli::command();
    let Some(command) = cli.find_subcommand(command) else { return Vec::new() };
    let is_server = command.get_name() == "serve";
    let flags = command.get_arguments().filter_map(|argument| {
        let name = argument.get_long()?;
        let is_offered =
            if is_server { OF_SERVER.contains(&name) } else { !OF_MATRIX.contains(&name) };
        let takes_value = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
        is_offered.then(|| Offered { name: name.to_owned(), takes_value })
    });
    flags.collect()
}

/// What clap says, without its frame.
fn sentence(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage"));
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let text = lines.join(" ");
    text.strip_prefix("error: ").unwrap_or(&text).to_owned()
}

fn expected_ns(workload: &Workload) -> u64 {
    let rate_bps = workload.rate.map(|rate| match rate {
        Rate::AllFlows { bps } => bps,
        Rate::EachFlow { bps } => bps.saturating_mul(u64::from(workload.flows)),
    });
    let load_ns = match (workload.end, rate_bps) {
        (End::Time { duration_ns }, _) => duration_ns,
        (End::Bytes { bytes }, Some(bps)) if bps > 0 => {
            let ns = u128::from(bytes) * 8_000_000_000 / u128::from(bps);
            u64::try_from(ns).unwrap_or(u64::MAX)
        }
        _ => GUESS_NS,
    };
    load_ns.saturating_add(workload.omit_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_parameter_of_a_cell_says_where_a_result_goes() {
        for native in Native::MEASURING.into_iter().chain([Native::Hunt]) {
            let names = native.parameters();
            for name in ["json", "output", "report", "store"] {
                assert!(!names.iter().any(|known| known == name), "{}: {name}", native.name());
            }
        }
    }
}
