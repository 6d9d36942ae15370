//! Which addresses the control and the data connection have.

use std::net::SocketAddr;

use linerate_measure::plan::Family;

use super::super::planning::Work;
use super::super::reading::{Read, read};
use super::super::resolve::choose_ends;
use super::fixture::{request, words};

#[test]
fn the_control_connection_has_options_of_its_own() {
    let line = "-H host,6 -p 1,2 -L other -Z secret -t UUID";
    let Read::Work(control, Work::Uuid(_), notes) = read("netperf", &words(line)) else {
        panic!("{line}");
    };
    assert_eq!(control.local.as_deref(), Some("other"));
    let control = control.plan;
    assert_eq!((control.host.as_str(), control.port, control.local_port), ("host", 1, 2));
    assert_eq!(control.passphrase.as_deref(), Some("secret"));
    assert_eq!(control.family, Some(Family::Ipv6));
    assert!(notes.is_empty());
}

#[test]
fn over_ipv6_the_host_is_its_loopback_unless_one_is_named() {
    for (line, host) in [
        ("-6", "::1"),
        ("-L ::1,6", "::1"),
        ("-H ,6", "::1"),
        ("-6 -H host", "host"),
        ("-4", "localhost"),
        ("", "localhost"),
        ("-- -6", "localhost"),
    ] {
        let Read::Work(control, Work::Test(asked), _) = read("netperf", &words(line)) else {
            panic!("{line}");
        };
        assert_eq!((&*control.plan.host, &*asked.names.remote), (host, host), "{line}");
    }
}

#[test]
fn localhost_is_an_ipv4_address_unless_something_is_told() {
    for (line, family, told) in [
        ("", Some(Family::Ipv4), None),
        ("-p 5 -- -H host -L other", Some(Family::Ipv4), None),
        ("-- -6", Some(Family::Ipv4), None),
        ("-H host", None, None),
        ("-L host", None, None),
        ("-6", Some(Family::Ipv6), Some(Family::Ipv6)),
        ("-H ,4", Some(Family::Ipv4), Some(Family::Ipv4)),
    ] {
        let Read::Work(control, ..) = read("netperf", &words(line)) else { panic!("{line}") };
        assert_eq!((control.plan.family, control.told_family), (family, told), "{line}");
    }
}

#[test]
fn the_local_address_is_of_a_family_that_the_host_has_too() {
    let (a4, b4, c6, d6, e6) =
        ("10.0.0.1:0", "10.0.0.2:0", "[2001:db8::3]:0", "[2001:db8::4]:0", "[fe80::5%2]:0");
    let found = |addresses: &[&str]| -> Vec<SocketAddr> {
        addresses.iter().map(|address| address.parse().unwrap()).collect()
    };
    for (locals, remotes, local, remote) in [
        (&[c6, a4][..], &[b4][..], Some(a4), b4),
        (&[c6, a4], &[b4, d6], Some(c6), d6),
        (&[c6, a4], &[d6, e6, b4], Some(c6), d6),
        (&[a4, b4, c6], &[d6], Some(c6), d6),
        (&[e6], &[b4, d6], Some(e6), d6),
        (&[], &[d6, b4], None, d6),
        // None can reach the other: what is said names both.
        (&[c6, d6], &[b4, a4], Some(c6), b4),
    ] {
        let wanted = (local.map(|local| local.parse().unwrap()), remote.parse().unwrap());
        assert_eq!(choose_ends(&found(locals), &found(remotes)), Some(wanted), "{locals:?}");
    }
    assert_eq!(choose_ends(&found(&[a4]), &[]), None);
}

#[test]
fn data_leave_from_the_control_connections_address_where_they_go_to_its_host() {
    for (line, local) in [
        ("-L a -H b", Some("a")),
        ("-L a -H b -- -H c", None),
        ("-L a -H b -- -H c -L d", Some("d")),
        ("-L a -H b -- -L d", Some("d")),
        ("-L a -- -H ,6", Some("a")),
    ] {
        assert_eq!(request(line).names.local.as_deref(), local, "{line}");
    }
}

#[test]
fn a_mask_says_which_bits_of_an_address_stay() {
    let names = request("-- -H 10.1.0.0/16,4 -L ::1/128").names;
    assert_eq!((names.remote.as_str(), names.remote_bits), ("10.1.0.0", Some(16)));
    assert_eq!((names.local.as_deref(), names.local_bits), (Some("::1"), Some(128)));
    let names = request("-- -H host").names;
    assert_eq!((names.remote.as_str(), names.remote_bits), ("host", None));
}
