//! What a proxy brings over satellite links, as `benches/pep` judges it.

use std::process::Command;

use super::{alone_in_network, skip};

#[test]
fn a_proxy_beside_the_server_brings_what_was_published_over_satellite_links() {
    if Command::new("python3").arg("--version").output().is_err() {
        return skip("python3 is not installed");
    }
    alone_in_network(|_| {
        let program = env!("CARGO_BIN_EXE_linerate");
        let output = Command::new("python3")
            .args(["benches/pep", "--check", "--time", "20", "--linerate", program])
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
            .output()
            .unwrap();
        let [said, failed] =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        assert!(output.status.success(), "{said}{failed}");
        assert_eq!(said.matches("met: ").count() + said.matches("no verdict").count(), 3, "{said}");
    });
}
