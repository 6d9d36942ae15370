//! Many idle connections, and a peer that stops reading, don't delay other clients.

use std::io::Write;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};

use crate::conversation::{Conversation, connect, stream, tls_session, workload};
use crate::ends::{Server, holds_within};
use crate::resources::{Held, assert_idle};

/// Connections without a request.
const IDLE_CONNECTIONS: usize = 300;
/// So much later at most may a test come to its end because of them.
const DELAY: Duration = Duration::from_secs(1);

/// The least time of several that a small test takes.
fn small_test(server: &Server) -> Duration {
    let took = || {
        let ended = server.measure("rr --count 3");
        ended.document(0);
        ended.took
    };
    (0..3).map(|_| took()).min().unwrap()
}

#[test]
fn half_open_connections_delay_a_test_by_less_than_a_second() {
    let server = Server::start("");
    let idle = Held::by_idle(&server);
    let alone = small_test(&server);
    let running = server.start_client("stream --both --rate 20M --time 3s --interval 100ms");
    let mut greeting = Vec::new();
    tls_session(&[b"linerate"]).write_tls(&mut greeting).unwrap();
    let began = Instant::now();
    let connections: Vec<_> = (0..IDLE_CONNECTIONS)
        .map(|number| {
            let mut socket = connect(server.port);
            // Some send nothing, some begin as a client does, some as a flow does.
            let said: &[u8] = [&b""[..], &greeting[..40], b"LRD1\0\0"][number % 3];
            socket.write_all(said).unwrap();
            socket
        })
        .collect();
    let beside_idle = small_test(&server);
    assert!(beside_idle < alone + DELAY, "{beside_idle:?} where {alone:?} was enough before");
    let document = running.finish().document(0);
    assert!(document.figure("goodput_up_bps") > 15e6 && document.figure("goodput_down_bps") > 15e6);
    // They are gone by themselves, though none of them has closed.
    assert_idle(&server, idle, Duration::from_secs(6).saturating_sub(began.elapsed()) + DELAY);
    drop(connections);
}

#[test]
fn connections_beyond_the_limit_push_each_other_out() {
    let server = Server::start("");
    let idle = Held::by_idle(&server);
    // A user's programs often begin with 1,024.
    let most = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).unwrap();
    let connections: Vec<_> = (0..1_200).map(|_| connect(server.port)).collect();
    let held = Held::by(server.pid());
    assert!(held.descriptors < idle.descriptors + 700, "{held:?}");
    server.measure("rr --count 3").document(0);
    drop(connections);
    assert_idle(&server, idle, Duration::from_secs(5));
}

/// A server's memory comes with flows, not with plans: here are ten of a hundred thousand flows, of which none comes.
#[test]
fn plans_of_many_flows_over_quic_take_no_memory() {
    let server = Server::start("");
    server.measure("rr --quic --count 5").document(0);
    let idle = Held::by_idle(&server);
    let plan = workload(&stream("up"), "quic", 100_000);
    let plans: Vec<Conversation> = (0..10)
        .map(|_| {
            let mut conversation = Conversation::connect(server.port);
            conversation.greet();
            conversation.ask(&plan);
            conversation
        })
        .collect();
    let more = Held::by(server.pid()).resident_bytes.saturating_sub(idle.resident_bytes);
    assert!(more < 64 << 20, "{more} bytes for {} plans", plans.len());
    drop(plans);
    assert_idle(&server, idle, Duration::from_secs(5));
}

/// What flows took goes back to the system when they have gone. How much of it lies between pieces that are still in
/// use is chance, so that a load may be repeated; what never goes back would add up.
#[test]
fn memory_of_many_flows_goes_back_to_the_system() {
    let server = Server::start("");
    server.measure("rr --quic --count 5").document(0);
    let idle = Held::by_idle(&server);
    let grown = || Held::by(server.pid()).resident_bytes.saturating_sub(idle.resident_bytes);
    let mut peak = 0;
    let back = (0..4).any(|_| {
        let many =
            server.start_client("rr --quic --streams 20 --flows 3000 --idle-timeout 60s --time 2s");
        many.finish().document(0);
        peak = server.peak_bytes().unwrap().saturating_sub(idle.resident_bytes);
        assert!(peak > 8 << 20, "{peak} bytes at most");
        holds_within(Duration::from_secs(6), || grown() < peak / 2)
    });
    assert!(back, "{} of {peak} bytes are still held", grown());
}

#[test]
fn a_peer_that_stops_reading_does_not_delay_others() {
    let server = Server::start("");
    let idle = Held::by_idle(&server);
    let alone = small_test(&server);
    let stopped: Vec<_> =
        ["stream --down", "stream --down --tls", "stream --down --udp --rate 50M"]
            .iter()
            .map(|load| {
                server.start_client(&format!("{load} --time 30s --interval 10ms --flows 2"))
            })
            .inspect(|_| drop(server.await_record("test_started")))
            .collect();
    std::thread::sleep(Duration::from_millis(300));
    stopped.iter().for_each(|client| client.signal(Signal::STOP));
    let beside_them = small_test(&server);
    assert!(beside_them < alone + DELAY, "{beside_them:?} where {alone:?} was enough before");
    std::thread::sleep(Duration::from_secs(5));
    assert_idle(&server, idle, DELAY);
    for client in stopped {
        client.signal(Signal::CONT);
        client.finish().document(1);
    }
}
