//! What a server sends is another machine's word: it is measured before it is taken in, and shows
//! people nothing that their terminal would obey ([`visible_json`]).

use linerate_measure::plan::limits;
use linerate_measure::report::{EndReport, HostFacts};
use linerate_measure::sample::{Role, Sample};
use linerate_wire::visible::visible_json;

use crate::error::Error;

/// The longest report, apart from its flows and for each flow.
const REPORT_BYTES: usize = 4 << 20;
const REPORT_BYTES_PER_FLOW: usize = 8 << 10;
/// The most JSON objects in a report, likewise: one for each processor; a flow has up to seven.
const REPORT_OBJECTS: usize = 2 * limits::CPUS;
const REPORT_OBJECTS_PER_FLOW: usize = 16;

/// Reads the server's report on so many flows.
///
/// Its size is checked first: a short object in the text may become a long one in memory.
pub(super) fn read_report(text: &str, flows: u32) -> Result<EndReport, Error> {
    let unread = |why: &str| Error::Peer(format!("the server's result can't be read: {why}"));
    let flows = flows as usize;
    let objects = text.bytes().filter(|byte| *byte == b'{').count();
    let most_bytes = REPORT_BYTES.saturating_add(REPORT_BYTES_PER_FLOW.saturating_mul(flows));
    let most_objects = REPORT_OBJECTS.saturating_add(REPORT_OBJECTS_PER_FLOW.saturating_mul(flows));
    if text.len() > most_bytes || objects > most_objects {
        let bytes = text.len();
        return Err(unread(&format!("{bytes} bytes are too many for {flows} flow(s)")));
    }
    let report: EndReport =
        serde_json::from_str(&visible_json(text)).map_err(|error| unread(&error.to_string()))?;
    if report.flows.len() > flows {
        let counted = report.flows.len();
        return Err(unread(&format!("it has {counted} flows where {flows} were asked for")));
    }
    Ok(report)
}

/// Reads a description of the server's machine.
pub(super) fn read_host(text: &str) -> Option<HostFacts> {
    serde_json::from_str(&visible_json(text)).ok()
}

/// Reads a sample of the server's.
pub(super) fn read_sample(text: &str) -> Option<Sample> {
    let sample: Sample = serde_json::from_str(&visible_json(text)).ok()?;
    let processors = sample.cpu.as_ref().map_or(0, |cpu| cpu.machine.len());
    let fits = sample.flows.len() <= Sample::MAX_FLOWS && processors <= limits::CPUS;
    (sample.role == Role::Server && fits).then_some(sample)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = r#"{"version":"1","hostname":"\u001b[2Jh\u009b","kernel":"k","architecture":"a","cpus_online":1}"#;

    fn report(flows: &str, notes: &str) -> String {
        format!(
            r#"{{"role":"server","host":{HOST},"flows":[{flows}],"elapsed_ns":1,"cpu":{{"user_s":0,"system_s":0}},"notes":[{notes}]}}"#
        )
    }

    #[test]
    fn a_report_is_as_large_as_its_flows() {
        let flow = r#"{"flow":1}"#;
        assert!(read_report(&report(flow, ""), 1).is_ok());
        let many = [flow; 3];
        assert!(read_report(&report(&many.join(","), ""), 3).is_ok());
        let refused = read_report(&report(&many.join(","), ""), 2).unwrap_err().to_string();
        assert!(refused.contains("3 flows where 2"), "{refused}");
        let short = vec![flow; 100_000].join(",");
        let refused = read_report(&report(&short, ""), 1).unwrap_err().to_string();
        assert!(refused.contains("too many"), "{refused}");
        let long = vec!["\"\""; 2_000_000].join(",");
        assert!(read_report(&report(flow, &long), 1).is_err());
    }

    #[test]
    fn no_text_has_what_a_terminal_obeys() {
        let socket = r#""socket":{"local":"\u202e","peer":"\u2066","congestion":"\u001b","cipher":"\u009b",
            "send_buffer_bytes":1,"receive_buffer_bytes":1,"no_delay":true}"#;
        let flow = format!(r#"{{"flow":1,"error":"\u001b[2J",{socket}}}"#);
        let text = report(&flow, r#""\u001b]0;x\u0007","a\nb","\u202e""#);
        let shown = format!("{:?}", read_report(&text, 1).unwrap());
        assert!(!shown.contains('\\'), "Debug escapes what is not printable: {shown}");
        let unread = read_report(&text.replace("\"server\"", "\"\\u202e\""), 1).unwrap_err();
        assert!(unread.to_string().contains("variant `.`"), "{unread}");
        assert_eq!(read_host(HOST).unwrap().hostname, ".[2Jh.");
    }
}
