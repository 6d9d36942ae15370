//! What the options mean: a plan of the dialect.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use linerate_engine::iperf3::{
    Authority, Credentials, Failure, Keepalive, Padding, RECEIVE_TIMEOUT, RateLimit, ServePlan,
    TestPlan,
};
use linerate_engine::resolve_host;
use linerate_measure::plan::Family;
use linerate_wire::iperf3::Code;

use linerate_personality::iperf3::options::Options;
use linerate_personality::iperf3::parameters::parameters;
use linerate_personality::iperf3::release::Release;

/// How far a client's clock may be off unless told otherwise, seconds.
const TIME_SKEW_S: u32 = 10;

/// A client's plan. `password` is asked for where a name was given.
///
/// # Errors
/// A name or file that can't be read, as the original words it.
pub fn test_plan(
    options: &Options,
    release: Release,
    password: impl FnOnce() -> Option<String>,
) -> Result<TestPlan, Failure> {
    let (host, device) = options.host_and_device();
    let mut plan = TestPlan::new(host);
    plan.port = options.port();
    plan.family = family(options);
    plan.bind = bind(options, Code::CONNECT)?;
    plan.bind_device = options.connection.bind_device.clone().or(device);
    plan.client_port = options.connection.client_port;
    plan.parameters = parameters(options, release, file_bytes);
    plan.interval = options.interval();
    plan.affinity = options.process.affinity;
    plan.file.clone_from(&options.payload.file);
    plan.connect_timeout = milliseconds(options.connection.connect_timeout_ms);
    plan.receive_timeout = receive_timeout(options);
    plan.send_timeout = milliseconds(options.connection.snd_timeout_ms);
    plan.keepalive = keepalive(options);
    if let (Some(username), Some(key)) =
        (&options.credentials.username, &options.credentials.public_key)
    {
        let wrong = || Failure::of(Code::CLIENT_AUTH);
        let public_key_pem = read_text(key).map_err(|_| wrong())?;
        let password = password().filter(|password| !password.is_empty()).ok_or_else(wrong)?;
        plan.credentials = Some(Credentials {
            username: username.clone(),
            password,
            public_key_pem,
            padding: padding(options, release),
        });
    }
    Ok(plan)
}

/// A server's plan.
///
/// # Errors
/// A name or file that can't be read, as the original words it.
pub fn serve_plan(options: &Options, release: Release) -> Result<ServePlan, Failure> {
    let rate_limit = options.rate_limit().map(|(bps, interval)| RateLimit { bps, interval });
    let authority = match (&options.server.private_key, &options.server.users) {
        (Some(key), Some(users)) => Some(Authority {
            private_key_pem: read_text(key).map_err(|_| Failure::of(Code::SERVER_AUTH))?,
            users_file: users.clone(),
            time_skew_s: options.server.time_skew_s.unwrap_or(TIME_SKEW_S),
            padding: padding(options, release),
        }),
        _ => None,
    };
    Ok(ServePlan {
        port: options.port(),
        family: family(options),
        bind: bind(options, Code::LISTEN)?,
        bind_device: options.connection.bind_device.clone(),
        interval: options.interval(),
        affinity: options.process.affinity,
        file: options.payload.file.clone(),
        one_off: options.server.one_off,
        idle_timeout: options
            .server
            .idle_timeout_s
            .map(|seconds| Duration::from_secs(seconds.into())),
        receive_timeout: receive_timeout(options),
        send_timeout: milliseconds(options.connection.snd_timeout_ms),
        keepalive: keepalive(options),
        rate_limit,
        max_duration_s: options.server.max_duration_s.filter(|seconds| *seconds > 0),
        authority,
        ..ServePlan::default()
    })
}

fn family(options: &Options) -> Option<Family> {
    options.connection.ipv6.map(|ipv6| if ipv6 { Family::Ipv6 } else { Family::Ipv4 })
}

fn milliseconds(value: Option<u32>) -> Option<Duration> {
    value.filter(|value| *value > 0).map(|value| Duration::from_millis(value.into()))
}

fn receive_timeout(options: &Options) -> Duration {
    milliseconds(options.connection.rcv_timeout_ms).unwrap_or(RECEIVE_TIMEOUT)
}

fn keepalive(options: &Options) -> Option<Keepalive> {
    options.connection.keepalive.map(|[idle_s, interval_s, count]| Keepalive {
        idle_s,
        interval_s,
        count,
    })
}

fn padding(options: &Options, release: Release) -> Padding {
    if options.credentials.pkcs1 || !release.is_new() { Padding::Pkcs1 } else { Padding::Oaep }
}

/// The address of `-B`, which may be a name, with the scope that it has.
fn bind(options: &Options, refusal: Code) -> Result<Option<SocketAddr>, Failure> {
    let Some(host) = options.connection.bind.as_deref() else { return Ok(None) };
    let unknown = |said: &str| Failure::of(refusal).because(said);
    let found = resolve_host(host, 0, family(options));
    let found = found.map_err(|_| unknown("Name or service not known"))?;
    let first = found.first().copied();
    first.map(Some).ok_or_else(|| unknown("Address family for hostname not supported"))
}

/// The size of a file.
pub(super) fn file_bytes(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().map(|facts| facts.len())
}

fn read_text(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path)
}

#[test]
fn credentials_are_padded_as_the_release_pads_them() {
    let padded = |release: Release, pkcs1: bool| {
        let mut options = Options::default();
        options.credentials.pkcs1 = pkcs1;
        padding(&options, release)
    };
    assert_eq!(padded(Release::V3_21, false), Padding::Oaep);
    assert_eq!(padded(Release::V3_21, true), Padding::Pkcs1);
    assert_eq!(padded(Release::V3_12, false), Padding::Pkcs1);
}
