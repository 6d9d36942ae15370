//! From a run file to the lab's plan: hosts, pairs of engines, and the command lines of each iteration.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use linerate_lab::collect::{LEAST_HZ, Request, Source};
use linerate_lab::plan::{
    HostSpec, Known, KubernetesHost, OnHostLoss, Pair, Placement, Plan, Point, Ready, Schedule,
    SshHost, TaskSpec, Topology, TopologyError, Via, Word, Work,
};
use linerate_measure::matrix::{Iteration, Setting as Value};
use linerate_measure::order::Order;
use linerate_personality::crucible::endpoint::{Endpoint, Host, TopologyKind, Transport};
use linerate_personality::crucible::iperf::{self, EngineParameters, control_port, read_options};
use linerate_personality::crucible::kube::Pod;
use linerate_personality::crucible::multiplex::multiplex;
use linerate_personality::crucible::numbers::render_numbers;
use linerate_personality::crucible::parameter::{EngineRole, Setting};
use linerate_personality::crucible::quirk::Reading;
use linerate_personality::crucible::run_file::{Benchmark, Matrix, RunFile, TestOrder};
use linerate_personality::iperf3::command_line::{UsageError, parse_command_line};

/// The name of the format that plans of this harness have.
const SCHEMA: &str = "crucible.run-file/2023.09.27";
/// What a server of iperf3 prints when it is ready.
pub(super) const LISTENING: &str = "Server listening on";
const SECOND_NS: u64 = 1_000_000_000;

/// A plan, and what each pair of engines is.
#[derive(Debug)]
pub(super) struct Planned {
    /// The plan.
    pub(super) plan: Plan,
    /// The engines of each pair, in the plan's order.
    pub(super) engines: Vec<Engines>,
    /// The parameters of each iteration, each with the place of its benchmark in the run file: two may have one name.
    pub(super) iterations: Vec<Vec<(usize, Setting)>>,
}

/// The two engines of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Engines {
    /// The place of the benchmark.
    pub(super) benchmark: usize,
    /// The client's number.
    pub(super) client: u32,
    /// The server's number.
    pub(super) server: u32,
}

/// How a plan is made of a run file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Making<'a> {
    /// The seed of a random order.
    pub(super) seed: Option<u64>,
    /// The original's program, in place of linerate's own iperf3.
    pub(super) iperf3: Option<&'a str>,
    /// Whether quirks are wanted.
    pub(super) reading: Reading,
}

/// Makes the plan of a run file.
///
/// # Errors
/// A sentence.
pub(super) fn plan(file: &RunFile, making: Making<'_>) -> Result<Planned, String> {
    let Making { seed, reading, .. } = making;
    let iterations = file
        .benchmarks
        .iter()
        .map(|benchmark| expand(benchmark, reading))
        .collect::<Result<Vec<_>, _>>()?;
    let placed = place(&file.endpoints)?;
    let engines = pair_engines(&file.benchmarks, &placed)?;
    let pairs = engines.iter().enumerate().map(|(place, pair)| placed.pair(place, *pair));
    let pairs: Vec<Pair> = pairs.collect::<Result<_, String>>()?;
    let count = iterations.first().map_or(0, Vec::len);
    if let Some(place) = iterations.iter().position(|own| own.len() != count) {
        return Err(format!(
            "benchmarks[{place}] has {} iterations and benchmarks[0] has {count}: benchmarks of one run \
             step together, so give all of them equally many",
            iterations.get(place).map_or(0, Vec::len)
        ));
    }
    let points = (0..count)
        .map(|number| {
            let own = |place: usize| iterations.get(place).and_then(|own| own.get(number));
            make_point(&file.benchmarks, (&placed, &engines, &pairs), own, making)
                .map_err(|why| format!("iteration {}: {why}", number + 1))
        })
        .collect::<Result<_, _>>()?;
    let iterations = (0..count)
        .map(|number| {
            let of_all = iterations.iter().enumerate();
            let own = of_all.filter_map(|(place, own)| Some((place, own.get(number)?)));
            own.flat_map(|(place, own)| own.iter().map(move |setting| (place, setting.clone())))
                .collect()
        })
        .collect();
    let plan = Plan {
        schema: SCHEMA.to_owned(),
        title: None,
        tags: file.tags.iter().cloned().collect(),
        hosts: placed.specs.clone(),
        pairs,
        schedule: Schedule {
            samples: file.params.samples,
            order: match file.params.order {
                TestOrder::Sample => Order::Sample,
                TestOrder::Iteration => Order::Iteration,
                TestOrder::Random => Order::Random,
            },
            seed,
            max_failures: file.params.max_failures,
            budget_ns: None,
            on_host_loss: OnHostLoss::Stop,
            with_confidence: false,
        },
        collect: collect(file),
        points,
    };
    Ok(Planned { plan, engines, iterations })
}

/// The iterations of a benchmark.
fn expand(benchmark: &Benchmark, reading: Reading) -> Result<Vec<Vec<Setting>>, String> {
    if benchmark.name != iperf::NAME {
        return Err(format!(
            "the benchmark {:?} can't be run: {} is the only one that linerate drives; for others \
             write a plan of `linerate matrix`",
            benchmark.name,
            iperf::NAME
        ));
    }
    match &benchmark.matrix {
        Matrix::Iterations(iterations) => Ok(iterations.clone()),
        Matrix::Values(matrix) => {
            multiplex(matrix, &iperf::requirements(reading)?, reading).map_err(|fault| fault.text)
        }
    }
}

/// Engines on hosts.
#[derive(Debug, Default)]
struct Placed {
    specs: BTreeMap<String, HostSpec>,
    clients: BTreeMap<u32, String>,
    servers: BTreeMap<u32, String>,
}

fn place(endpoints: &[Endpoint]) -> Result<Placed, String> {
    let mut placed = Placed::default();
    for endpoint in endpoints {
        let names = endpoint
            .hosts
            .iter()
            .map(|host| placed.add_host(host))
            .collect::<Result<Vec<_>, _>>()?;
        for (host, name) in endpoint.hosts.iter().zip(&names) {
            placed.add_engines(host, name)?;
        }
        let Some(topology) = &endpoint.topology else { continue };
        let mut hosts = names;
        let kind = match topology.kind {
            TopologyKind::Intranode => Topology::Intranode,
            TopologyKind::Internode => Topology::Internode,
            // The first machine is the one outside.
            TopologyKind::Ingress => Topology::Ingress { outside: hosts.remove(0) },
            TopologyKind::Egress => Topology::Egress { outside: hosts.remove(0) },
        };
        let (scale_out, scale_up) = (topology.scale_out, topology.scale_up);
        let pairs = Placement { topology: kind, hosts, scale_out, scale_up }
            .pairs()
            .map_err(|TopologyError(why)| why)?;
        for (number, (client, server)) in (1..).zip(pairs) {
            placed.add_engine(EngineRole::Client, number, &client)?;
            placed.add_engine(EngineRole::Server, number, &server)?;
        }
    }
    Ok(placed)
}

/// A pod as the lab's plans have it.
fn pod_of(pod: &Pod) -> Result<KubernetesHost, String> {
    let via = match &pod.via {
        None => None,
        Some(word) => Some(Via::from_name(word).ok_or_else(|| {
            let known = Via::NAMES.map(|(name, _)| name).join(", ");
            format!("via of the pod {} is {word}: there are {known}", pod.name)
        })?),
    };
    Ok(KubernetesHost {
        kubeconfig: pod.kubeconfig.clone(),
        namespace: pod.namespace.clone(),
        image: pod.image.clone(),
        via,
        host_network: pod.host_network,
        pod: pod.members.clone(),
        ..KubernetesHost::default()
    })
}

impl Placed {
    fn is_pod(&self, name: &str) -> bool {
        matches!(self.specs.get(name), Some(HostSpec::Kubernetes(_)))
    }

    fn add_host(&mut self, host: &Host) -> Result<String, String> {
        let data_address = host.address.clone();
        let (name, spec) = match &host.transport {
            Transport::Local => ("local".to_owned(), HostSpec::Local { data_address }),
            Transport::Netns(namespace) => {
                let spec = HostSpec::Netns { namespace: namespace.clone(), data_address };
                (namespace.clone(), spec)
            }
            Transport::Pod(pod) => (pod.name.clone(), HostSpec::Kubernetes(Box::new(pod_of(pod)?))),
            Transport::Ssh(address) => {
                let name = address.rsplit_once('@').map_or(address.as_str(), |(_, host)| host);
                let spec = SshHost { address: address.clone(), data_address, ..SshHost::default() };
                (name.to_owned(), HostSpec::Ssh(spec))
            }
        };
        match self.specs.get(&name) {
            Some(other) if *other != spec => Err(format!(
                "the host {name} is described twice, and not alike: give it one user and address"
            )),
            _ => {
                self.specs.insert(name.clone(), spec);
                Ok(name)
            }
        }
    }

    fn add_engines(&mut self, host: &Host, name: &str) -> Result<(), String> {
        for id in &host.clients {
            self.add_engine(EngineRole::Client, *id, name)?;
        }
        host.servers.iter().try_for_each(|id| self.add_engine(EngineRole::Server, *id, name))
    }

    fn add_engine(&mut self, role: EngineRole, id: u32, name: &str) -> Result<(), String> {
        let engines = match role {
            EngineRole::Server => &mut self.servers,
            _ => &mut self.clients,
        };
        match engines.insert(id, name.to_owned()) {
            Some(other) => Err(format!(
                "{}-{id} is placed twice, on {other} and on {name}: an engine has one place",
                role.word()
            )),
            None => Ok(()),
        }
    }

    fn pair(&self, place: usize, engines: Engines) -> Result<Pair, String> {
        let missing = || format!("client-{} has no host", engines.client);
        let client = self.clients.get(&engines.client).ok_or_else(missing)?;
        let server = self.servers.get(&engines.server).ok_or_else(missing)?;
        let address = match self.specs.get(server).map(|spec| (spec, spec.data_address())) {
            Some((_, Some(address))) => address.to_owned(),
            Some((HostSpec::Local { .. } | HostSpec::Netns { .. }, None)) if client == server => {
                "127.0.0.1".to_owned()
            }
            // The server tells it, by its interface.
            _ => String::new(),
        };
        Ok(Pair {
            number: u32::try_from(place + 1).unwrap_or(u32::MAX),
            client: client.clone(),
            server: server.clone(),
            address,
            port: control_port(engines.server),
        })
    }
}

/// Which client measures against which server: both in ascending order.
fn pair_engines(benchmarks: &[Benchmark], placed: &Placed) -> Result<Vec<Engines>, String> {
    let mut taken = BTreeSet::new();
    let mut engines = Vec::new();
    for (place, benchmark) in benchmarks.iter().enumerate() {
        let all = || placed.clients.keys().chain(placed.servers.keys()).copied();
        let ids = benchmark
            .ids
            .clone()
            .unwrap_or_else(|| all().collect::<BTreeSet<_>>().into_iter().collect());
        let at = format!("benchmarks[{place}] ({})", benchmark.name);
        if let Some(id) = ids.iter().find(|id| !taken.insert(**id)) {
            return Err(format!("{at} has the number {id}, which another benchmark has, too"));
        }
        let of = |engines: &BTreeMap<u32, String>| -> Vec<u32> {
            ids.iter().filter(|id| engines.contains_key(id)).copied().collect()
        };
        let (clients, servers) = (of(&placed.clients), of(&placed.servers));
        if clients.is_empty() || servers.is_empty() || clients.len() != servers.len() {
            let text = |ids: &[u32]| match ids {
                [] => "none".to_owned(),
                ids => render_numbers(ids),
            };
            return Err(format!(
                "{at} has the clients {} and the servers {}: endpoints have to give equally many of its \
                 numbers {}, one at least",
                text(&clients),
                text(&servers),
                render_numbers(&ids)
            ));
        }
        let pairs = clients.into_iter().zip(servers);
        engines.extend(pairs.map(|(client, server)| Engines { benchmark: place, client, server }));
    }
    let used = |id: &u32| engines.iter().any(|pair| pair.client == *id || pair.server == *id);
    let unused: Vec<u32> = placed.clients.keys().chain(placed.servers.keys()).copied().collect();
    match unused.iter().find(|id| !used(id)) {
        Some(id) => Err(format!("endpoints have the engine {id}, which no benchmark uses")),
        None => Ok(engines),
    }
}

/// The command lines of an iteration.
fn make_point<'a>(
    benchmarks: &[Benchmark],
    (placed, engines, pairs): (&Placed, &[Engines], &[Pair]),
    settings_of: impl Fn(usize) -> Option<&'a Vec<Setting>>,
    making: Making<'_>,
) -> Result<Point, String> {
    let reading = making.reading;
    let mut work = Vec::new();
    let mut expected_ns = 0;
    for (pair, hosts) in engines.iter().zip(pairs) {
        let settings = settings_of(pair.benchmark).map_or(&[][..], Vec::as_slice);
        let client = read_options(settings, EngineRole::Client, pair.client, reading)?;
        let server = read_options(settings, EngineRole::Server, pair.server, reading)?;
        check(&client, &server, pair)?;
        let tells_address = placed.is_pod(&hosts.server);
        if hosts.address.is_empty()
            && !tells_address
            && server.ifname.is_none()
            && client.remotehost.is_none()
        {
            return Err(format!(
                "the address of server-{} on {} is unknown: give the server the parameter ifname, \
                 or its host's config an \"address\"",
                pair.server, hosts.server
            ));
        }
        expected_ns = client.expected_s().saturating_mul(SECOND_NS).max(expected_ns);
        work.push(Work {
            server: engine(EngineRole::Server, pair, settings, making),
            client: engine(EngineRole::Client, pair, settings, making),
        });
    }
    let names: Vec<&str> = benchmarks.iter().map(|benchmark| benchmark.name.as_str()).collect();
    let settings = (0..benchmarks.len())
        .filter_map(settings_of)
        .flatten()
        .map(|setting| Value { name: name_of(setting), value: setting.val.clone() });
    Ok(Point {
        workload: names.join(","),
        iteration: Iteration { settings: settings.collect() },
        work,
        search: None,
        thresholds: Vec::new(),
        expected_ns,
        longest_ns: None,
    })
}

/// The name of a parameter among those of its iteration: its argument, with who gets it.
fn name_of(setting: &Setting) -> String {
    let role = match setting.role {
        EngineRole::Server => "server.",
        EngineRole::Client | EngineRole::All => "",
    };
    let ids = match (&setting.id, &setting.ids) {
        (Some(id), _) => format!("@{id}"),
        (None, Some(ids)) => format!("@{}", ids.join("+")),
        (None, None) => String::new(),
    };
    format!("{role}{}{ids}", setting.arg)
}

/// What the agent starts.
fn engine(role: EngineRole, pair: &Engines, settings: &[Setting], making: Making<'_>) -> TaskSpec {
    let id = match role {
        EngineRole::Server => pair.server,
        _ => pair.client,
    };
    let mut words: Vec<Word> =
        ["crucible", "engine", role.word(), "--id"].into_iter().map(Word::from).collect();
    words.push(id.to_string().into());
    if role == EngineRole::Client {
        words.extend(["--server-id".into(), pair.server.to_string().into()]);
        words.extend(["--address".into(), Known::Address.into()]);
    }
    if let Some(program) = making.iperf3 {
        words.extend(["--iperf3".into(), program.to_owned().into()]);
    }
    if making.reading.is_compat() {
        words.push("--compat".into());
    }
    for setting in settings.iter().filter(|setting| setting.applies(role, id)) {
        words.extend(["--param".into(), format!("{}={}", setting.arg, setting.val).into()]);
    }
    let ready = match role {
        EngineRole::Server => Ready::Text(LISTENING.to_owned()),
        _ => Ready::AtOnce,
    };
    TaskSpec::new(words, ready)
}

/// Refuses command lines that iperf3 would refuse.
fn check(
    client: &EngineParameters,
    server: &EngineParameters,
    pair: &Engines,
) -> Result<(), String> {
    let read = |words: Vec<String>| {
        parse_command_line(&words, |path: &Path| path.exists()).map(|_| ()).map_err(|error| {
            let why = match error {
                UsageError::Lexical(error) => error.to_string(),
                UsageError::Parameter(failure) => failure.to_string(),
            };
            format!("iperf3 can't take the words {:?}: {why}", words.join(" "))
        })
    };
    read(client_line(client, pair))?;
    read(server.server_words(pair.server))
}

/// The client's words, with a name in place of the server's address.
pub(super) fn client_line(options: &EngineParameters, pair: &Engines) -> Vec<String> {
    let words = options.client_words(pair.server).into_iter();
    words
        .map(|word| match word {
            iperf::Word::Text(text) => text,
            iperf::Word::Address => "SERVER".to_owned(),
        })
        .collect()
}

/// What hosts count beside the tests, by the tools that the run file names.
fn collect(file: &RunFile) -> Option<Request> {
    let hosts = || file.endpoints.iter().flat_map(|endpoint| &endpoint.hosts);
    if !hosts().any(|host| host.has_tools) {
        return None;
    }
    let tools = file.tools.clone().unwrap_or_else(|| vec!["sysstat".into(), "procstat".into()]);
    let mut sources = BTreeSet::new();
    for tool in &tools {
        let own: &[Source] = match tool.as_str() {
            "sysstat" => &[Source::Cpu, Source::Net, Source::Memory, Source::Scheduler],
            "procstat" => &[Source::Interrupts, Source::Softirqs, Source::Softnet],
            "ethtool" => &[Source::Ethtool],
            _ => &[],
        };
        sources.extend(own.iter().copied());
    }
    let sources: Vec<Source> = sources.into_iter().collect();
    let request = Request { sources, hz: LEAST_HZ, interfaces: Vec::new() };
    (!request.sources.is_empty()).then_some(request)
}
