//! Ends that ask again and again in place of sleeping.

use std::process::Child;
use std::time::{Duration, Instant};

use super::server_process::{Netserver, value};
use super::service::PATIENCE;

/// A hundred requests a second: an end that sleeps between them uses almost no CPU.
const PACE: &str = "-b 1 -w 10m";
/// An end that spins has run, or waited for a processor that others have, for so much of [`WHILE`].
const MUCH: Duration = Duration::from_millis(800);
/// Processor time after which a test certainly runs.
const UNDER_WAY: Duration = Duration::from_millis(300);
/// What an end that sleeps doesn't take in it.
const LITTLE: Duration = Duration::from_millis(100);
const WHILE: Duration = Duration::from_secs(1);

/// The processor time of a process so far, of /proc/PID/stat (proc(5)).
fn processor_time(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The fields behind the name, which is in brackets and may have blanks, begin with the third.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
}

/// What a process takes of the processors in [`WHILE`].
fn taken(pid: u32) -> Duration {
    let (before, began) = (processor_time(pid), Instant::now());
    std::thread::sleep(WHILE);
    (processor_time(pid) - before).div_f64(began.elapsed().as_secs_f64() / WHILE.as_secs_f64())
}

/// The time so far in which threads of a process have run or have waited for a processor (proc(5), `schedstat`).
fn runnable_time(pid: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let of_thread = |folder: std::path::PathBuf| -> u64 {
        let text = std::fs::read_to_string(folder.join("schedstat")).unwrap_or_default();
        text.split_whitespace().take(2).filter_map(|word| word.parse::<u64>().ok()).sum()
    };
    let threads = threads.flatten().map(|thread| of_thread(thread.path()));
    Duration::from_nanos(threads.sum())
}

/// Whether a process never sleeps in [`WHILE`].
fn spins(pid: u32) -> bool {
    let (before, began) = (runnable_time(pid), Instant::now());
    std::thread::sleep(WHILE);
    let runnable = runnable_time(pid).saturating_sub(before);
    runnable.div_f64(began.elapsed().as_secs_f64() / WHILE.as_secs_f64()) >= MUCH
}

/// How many tests a server's shards carry.
fn tests_under_way(server: &Netserver) -> usize {
    let threads = std::fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap();
    let names =
        threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim() == "shard").count()
}

fn wait_until(what: &str, mut has_come: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !has_come() {
        assert!(begin.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn kill(mut client: Child) {
    client.kill().unwrap();
    client.wait().unwrap();
}

#[test]
fn only_the_end_with_busy_poll_spins() {
    for test in ["TCP_RR", "UDP_RR"] {
        for (local, remote) in [("", ""), ("--busy-poll", ""), ("", "--busy-poll")] {
            let server = Netserver::start(remote);
            let client = server.start_netperf(&format!("{local} {PACE} -t {test} -l 600"));
            wait_until("it runs", || tests_under_way(&server) == 1);
            for (pid, option) in [(client.id(), local), (server.pid(), remote)] {
                match option {
                    "" => wait_until("it sleeps", || taken(pid) < LITTLE),
                    _ => wait_until("it spins", || spins(pid)),
                }
            }
            kill(client);
        }
    }
}

#[test]
fn busy_poll_spins_while_an_answer_is_awaited() {
    for test in ["TCP_RR", "UDP_RR -e 60", "TCP_RR -b 3"] {
        let (test, own) = test.split_once(" ").unwrap_or((test, ""));
        let server = Netserver::start("");
        let client = server.start_netperf(&format!("--busy-poll -t {test} -l 600 -- {own}"));
        wait_until("it runs", || processor_time(client.id()) >= UNDER_WAY);
        server.freeze();
        wait_until("it spins", || spins(client.id()));
        kill(client);
    }
}

#[test]
fn a_server_rests_when_the_client_for_which_it_spins_is_killed() {
    for test in ["TCP_RR", "UDP_RR"] {
        let server = Netserver::start("--busy-poll");
        let client = server.start_netperf(&format!("{PACE} -t {test} -l 600"));
        wait_until("it spins", || spins(server.pid()));
        kill(client);
        wait_until("it rests", || taken(server.pid()) < LITTLE);
        assert_eq!(server.netperf("-P 0 -t TCP_RR -l -200").exit_code, 0);
    }
}

#[test]
fn of_tests_at_once_no_more_spin_than_leave_a_processor() {
    let server = Netserver::start("--busy-poll");
    let count = std::thread::available_parallelism().unwrap().get() + 1;
    let begin = |_| server.start_netperf(&format!("{PACE} -t TCP_RR -l 600"));
    let clients: Vec<Child> = (0..count).map(begin).collect();
    wait_until("they run", || tests_under_way(&server) == count);
    wait_until("one spins", || spins(server.pid()));
    let most = WHILE * u32::try_from(count - 2).unwrap().max(1);
    assert!(taken(server.pid()) < most + WHILE / 2);
    clients.into_iter().for_each(kill);
}

#[test]
fn transactions_are_counted_as_without() {
    let server = Netserver::start("--busy-poll");
    for (options, own) in
        [("-t TCP_RR", ""), ("-t TCP_RR", "-b 3"), ("-t TCP_RR -k 5", ""), ("-t omni", "-d rr")]
    {
        let ended = server.netperf(&format!(
            "-P 0 {options} -l -200 --busy-poll -- {own} -k LOCAL_BYTES_SENT,REMOTE_BYTES_RECVD"
        ));
        assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""), "{options} {own}");
        let [sent, received] =
            ["LOCAL_BYTES_SENT", "REMOTE_BYTES_RECVD"].map(|key| value(&ended.stdout, key));
        assert_eq!(sent, received, "{options} {own}");
        assert!(sent.parse::<u64>().unwrap() >= 200, "{options} {own}: {sent}");
    }
}

#[test]
fn tests_without_requests_refuse_it() {
    let server = Netserver::start("");
    for test in ["TCP_STREAM", "UDP_STREAM", "TCP_CRR", "TCP_CC"] {
        let ended = server.netperf(&format!("--busy-poll -t {test}"));
        assert_eq!(ended.exit_code, 1, "{test}");
        let sentence = "netperf: --busy-poll is for requests and responses over one connection";
        assert!(ended.stderr.contains(sentence), "{test}: {}", ended.stderr);
    }
}
