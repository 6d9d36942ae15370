//! Many flows on few threads.

use crate::ends::Server;

#[test]
fn a_hundred_flows_on_two_threads() {
    let server = Server::start("");
    for words in
        ["stream --both", "stream --tls --down", "stream --udp --rate 50M", "rr", "rr --udp"]
    {
        let words = format!("{words} --flows 100 --threads 2 --time 500ms");
        let document = server.measure(&words).document(0);
        for role in ["client", "server"] {
            let report = document.report(role);
            let flows = report["flows"].as_array().unwrap();
            assert_eq!(flows.len(), if words.contains("--both") { 200 } else { 100 }, "{words}");
            assert!(flows.iter().all(|flow| flow["error"].is_null()), "{words}");
            assert_eq!(report["host"]["ran_on_cpus"].as_array().unwrap().len(), 2, "{words}");
        }
        assert!((0.01..=1.0).contains(&document.figure("fairness")), "{words}");
    }
}
