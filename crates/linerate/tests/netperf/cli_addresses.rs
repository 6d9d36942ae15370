//! Addresses that aren't the ones which the kernel would choose.

use crate::skipped::skip;
use std::io::Read as _;
use std::net::{Ipv6Addr, TcpListener};

use super::server_process::{Netserver, netperf, value};

fn figure(stdout: &str, name: &str) -> f64 {
    value(stdout, name).parse().unwrap()
}

/// An address that can't be used (yet): the kernel has seen it twice, or is still looking
/// (IFA_F_DADFAILED, IFA_F_TENTATIVE).
const UNUSABLE: u32 = 0x08 | 0x40;

/// A link-local address of this machine, with its interface.
fn link_local() -> Option<String> {
    let table = std::fs::read_to_string("/proc/net/if_inet6").ok()?;
    table.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [address, _, _, "20", flags, interface] = words[..] else { return None };
        if u32::from_str_radix(flags, 16).ok()? & UNUSABLE != 0 {
            return None;
        }
        let address = Ipv6Addr::from(u128::from_str_radix(address, 16).ok()?);
        Some(format!("{address}%{interface}"))
    })
}

fn skip_without_link_local() {
    skip("no interface of this machine has a link-local address");
}

#[test]
fn a_netserver_without_a_port_of_its_own_has_one_for_all_its_addresses() {
    let server = Netserver::start_at("", "");
    for family in ["-4 -H 127.0.0.1", "-6 -H ::1"] {
        if family.starts_with("-6") && TcpListener::bind("[::1]:0").is_err() {
            // This machine has IPv4 alone.
            continue;
        }
        let ended = netperf(&format!("{family} -p {} -P 0 -t TCP_RR -l -10", server.port));
        assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""), "{family}");
    }
}

#[test]
fn datagrams_reach_a_server_at_any_of_its_addresses() {
    // On all addresses, as is usual: whichever of them is asked answers.
    let server = Netserver::start_at("-4", "");
    let to = format!("-H 127.0.0.2 -4 -p {} -P 0 -l 1", server.port);
    let ended = netperf(&format!("{to} -t UDP_RR -- -k THROUGHPUT,DEST_ADDR"));
    assert_eq!(ended.exit_code, 0, "{}", ended.stderr);
    assert!(figure(&ended.stdout, "THROUGHPUT") > 10.0, "{}", ended.stdout);
    assert_eq!(value(&ended.stdout, "DEST_ADDR"), "127.0.0.2");
    let counts = "LOCAL_SEND_CALLS,REMOTE_RECV_CALLS";
    for routing in ["-R 1", ""] {
        let ended = netperf(&format!("{to} -t UDP_STREAM -- -m 1000 {routing} -k {counts}"));
        assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""));
        let received = figure(&ended.stdout, "REMOTE_RECV_CALLS");
        assert!(received > 10.0, "{}", ended.stdout);
        assert!(figure(&ended.stdout, "LOCAL_SEND_CALLS") >= received, "{}", ended.stdout);
    }
    let ended = netperf(&format!("{to} -t omni -- -T udp -d recv -m ,1000 -k LOCAL_RECV_CALLS"));
    assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""));
    assert!(figure(&ended.stdout, "LOCAL_RECV_CALLS") > 10.0, "{}", ended.stdout);
}

#[test]
fn data_to_another_address_does_not_leave_from_the_control_connections() {
    let server = Netserver::start_at("", "");
    let control = format!("-L 127.0.0.3 -H 127.0.0.1 -p {} -t TCP_RR -l -10", server.port);
    let shown = "-k SOURCE_ADDR,DEST_ADDR";
    let ended = netperf(&format!("{control} -P 0 -- {shown}"));
    assert_eq!(value(&ended.stdout, "SOURCE_ADDR"), "127.0.0.3", "{}", ended.stderr);
    let ended = netperf(&format!("{control} -- -H 127.0.0.2 {shown}"));
    assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""));
    assert!(ended.stdout.contains(" from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 127.0.0.2 "));
    assert_ne!(value(&ended.stdout, "SOURCE_ADDR"), "127.0.0.3");
    assert_eq!(value(&ended.stdout, "DEST_ADDR"), "127.0.0.2");
    if TcpListener::bind("[::1]:0").is_err() {
        // This machine has IPv4 alone.
        return;
    }
    let ended = netperf(&format!("{control} -- -H ::1,6 {shown}"));
    assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""), "{}", ended.stdout);
    assert!(ended.stdout.contains(" from ::0 (::) port 0 AF_INET6 to ::1 (::1) "));
    assert_eq!(value(&ended.stdout, "DEST_ADDR"), "::1");
}

#[test]
fn a_local_address_that_reaches_none_of_the_hosts_is_told_as_such() {
    let ended = netperf("-L ::1 -H 127.0.0.1 -p 1");
    assert_eq!(ended.exit_code, 255);
    assert!(ended.stdout.starts_with("establish control: are you sure"), "{}", ended.stdout);
    assert!(ended.stderr.contains("no address of the requested family"), "{}", ended.stderr);
}

#[test]
fn a_data_host_that_is_not_found_is_told_as_the_original_tells_it() {
    let server = Netserver::start("");
    for (words, family) in [("-H no.invalid", 2), ("-6 -H no.invalid", 10), ("-L no.invalid", 0)] {
        let ended = server.netperf(&format!("-- {words}"));
        assert_eq!((ended.exit_code, ended.stderr.as_str()), (255, ""));
        let told =
            format!("complete_addrinfo: could not resolve 'no.invalid' port '0' af {family}\n");
        assert!(ended.stdout.starts_with(&told), "{}", ended.stdout);
    }
}

#[test]
fn datagrams_of_other_addresses_are_served_where_the_server_is_told_so() {
    for (options, is_served) in [("", false), ("--other-addresses", true)] {
        let server = Netserver::start(options);
        for test in ["UDP_RR -l 1", "UDP_STREAM -l 1", "omni -l 1 -- -T udp -d recv"] {
            let own = if test.contains("--") { "" } else { "--" };
            let figures = "-m 1000,1000 -k LOCAL_BYTES_RECVD,REMOTE_BYTES_RECVD";
            let ended = server.netperf(&format!("-P 0 -t {test} {own} -L 127.0.0.2 {figures}"));
            let told = format!("{options} {test}: {}{}", ended.stdout, ended.stderr);
            if is_served {
                assert_eq!(ended.exit_code, 0, "{told}");
                let received = ["LOCAL_BYTES_RECVD", "REMOTE_BYTES_RECVD"];
                let bytes: f64 = received.iter().map(|name| figure(&ended.stdout, name)).sum();
                assert!(bytes > 10.0, "{told}");
            } else {
                assert_ne!(ended.exit_code, 0, "{told}");
                assert!(told.contains("remote error 13"), "{told}");
            }
        }
    }
}

#[test]
fn without_a_host_the_server_is_at_the_ipv4_loopback() {
    let server = Netserver::start_at("", "");
    let ended = netperf(&format!("-p {} -t TCP_RR -l -10 -- -k DEST_ADDR", server.port));
    assert_eq!((ended.exit_code, ended.stderr.as_str()), (0, ""), "{}", ended.stdout);
    assert!(ended.stdout.contains(" AF_INET to localhost () port 0 AF_INET "), "{}", ended.stdout);
    assert_eq!(value(&ended.stdout, "DEST_ADDR"), "127.0.0.1");
}

#[test]
fn data_goes_over_the_interface_that_a_link_local_address_names() {
    let Some(host) = link_local() else { return skip_without_link_local() };
    let server = Netserver::start_at("-6", "");
    for (test, rest) in [
        ("TCP_STREAM", ""),
        ("TCP_STREAM", "-H {host} -L {host}"),
        ("TCP_CRR", ""),
        ("UDP_RR", ""),
        ("UDP_STREAM", "-m 1000"),
        ("omni", "-T udp -d recv"),
    ] {
        let rest = rest.replace("{host}", &host);
        let ended = netperf(&format!(
            "-H {host} -L {host} -6 -p {} -P 0 -l 1 -t {test} -- {rest} -k THROUGHPUT",
            server.port
        ));
        assert_eq!(ended.exit_code, 0, "{test}: {}", ended.stderr);
        assert!(figure(&ended.stdout, "THROUGHPUT") > 0.0, "{test}: {}", ended.stdout);
    }
}

#[test]
fn a_link_local_address_is_one_of_its_interface_without_a_control_connection_too() {
    let Some(host) = link_local() else { return skip_without_link_local() };
    let server = Netserver::start_at(&format!("-L {host} -6"), "");
    let rr = format!("-H {host} -6 -p {} -P 0 -t TCP_RR -l -20 -- -k THROUGHPUT", server.port);
    let ended = netperf(&rr);
    assert_eq!(ended.exit_code, 0, "{}{}", ended.stdout, ended.stderr);
    for (before, behind) in [(&*host, None), ("::1", Some(&*host))] {
        let listener = TcpListener::bind((&*host, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = std::thread::spawn(move || {
            let mut all = Vec::new();
            listener.accept().unwrap().0.read_to_end(&mut all).unwrap();
            all.len()
        });
        let behind = behind.map(|host| format!("-H {host}")).unwrap_or_default();
        let ended =
            netperf(&format!("-N -H {before} -6 -P 0 -l -1000 -- -m 100 -P ,{port} {behind}"));
        assert_eq!(ended.exit_code, 0, "{before}: {}", ended.stderr);
        assert_eq!(received.join().unwrap(), 1000);
    }
}
