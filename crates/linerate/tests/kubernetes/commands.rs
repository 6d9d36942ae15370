//! `kubernetes manifest`, `check`, `clean` and `image`.

use crate::cluster::Cluster;
use crate::stand_in::{Fate, Fault};

#[test]
fn manifest_prints_the_role_for_a_namespace() {
    let cluster = Cluster::new(Fate::Runs);
    let said = cluster.run(&["kubernetes", "manifest", "--namespace", "perf"]);
    assert_eq!(said.code, Some(0));
    for part in
        ["kind: Role\n", "namespace: perf\n", "resources: [pods/attach]", "enforce: restricted"]
    {
        assert!(said.stdout.contains(part), "{part}: {}", said.stdout);
    }
    assert!(cluster.server.requests().is_empty());
    for name in ["Perf", "-x", "", "a: b"] {
        let flag = format!("--namespace={name}");
        let said = cluster.run(&["kubernetes", "manifest", &flag]);
        assert_eq!(said.code, Some(2), "{name}");
        assert!(said.stderr.contains("--namespace"), "{}", said.stderr);
    }
}

#[test]
fn check_names_the_verbs_that_are_missing() {
    let cluster = Cluster::new(Fate::Runs);
    let said = cluster.run(&["kubernetes", "check"]);
    assert_eq!(said.code, Some(4));
    for part in ["v1.34.4", "missing: get pods/log", "accepted"] {
        assert!(said.stdout.contains(part), "{part}: {}", said.stdout);
    }
    cluster.server.fail("dryRun=All", Fault::Status(403, "exceeded quota: pods", ""));
    let said = cluster.run(&["kubernetes", "check", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(document["missing"][0], "get pods/log");
    assert!(document["objection"].as_str().unwrap().contains("exceeded quota: pods"));
}

#[test]
fn a_cluster_that_is_not_there_is_told() {
    let cluster = Cluster::new(Fate::Runs);
    let text = cluster.server.kubeconfig();
    let address = cluster.server.address.to_string();
    cluster.write("kubeconfig", &text.replace(&address, "127.0.0.1:9"));
    let said = cluster.run(&["kubernetes", "check"]);
    assert_eq!(said.code, Some(3));
    assert!(said.stderr.contains("API server does not answer"), "{}", said.stderr);
    let said = cluster.run(&["kubernetes", "check", "--context", "other"]);
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("its contexts are: c"), "{}", said.stderr);
}

#[test]
fn clean_needs_to_be_told_what() {
    let cluster = Cluster::new(Fate::Runs);
    assert_eq!(cluster.run(&["kubernetes", "clean"]).code, Some(2));
    assert_eq!(cluster.run(&["kubernetes", "clean", "--run", ""]).code, Some(2));
    let said = cluster.run(&["kubernetes", "clean", "--dry-run"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "nothing is left in perf\n"));
}

/// The header of a static executable.
fn static_elf() -> Vec<u8> {
    let mut elf = vec![0_u8; 64 + 56];
    elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
    (elf[18], elf[32], elf[54], elf[56]) = (62, 64, 56, 1);
    elf
}

#[test]
fn images_of_a_static_binary_are_the_same_bytes() {
    let cluster = Cluster::new(Fate::Runs);
    let binary = cluster.path("static");
    std::fs::write(&binary, static_elf()).unwrap();
    let image = |name: &str| {
        let output = cluster.path(name);
        let said = cluster.run(&[
            "image",
            "--output",
            output.to_str().unwrap(),
            "--binary",
            binary.to_str().unwrap(),
        ]);
        assert_eq!(said.code, Some(0));
        assert!(said.stdout.contains("localhost/linerate:"), "{}", said.stdout);
        std::fs::read(output).unwrap()
    };
    let (one, two) = (image("one"), image("two"));
    assert!(one == two && one.len() > 1024);

    let said = cluster.run(&["image", "--output", "x", "--binary", "/bin/sh"]);
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("crt-static"), "{}", said.stderr);
}
