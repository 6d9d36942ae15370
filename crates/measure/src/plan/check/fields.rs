//! Where the field stands that an error of a plan names.

use crate::plan::{Kind, PlanError, Workload};

/// Names of fields in errors, and the fields of a plan's document.
const PATHS: &[(&str, &str)] = &[
    ("schema", "schema"),
    ("host", "host"),
    ("port", "port"),
    ("title", "title"),
    ("tags", "tags"),
    ("processors", "local.cpus"),
    ("local addresses", "local.binds"),
    ("source port", "local.source_ports"),
    ("network device", "local.bind_device"),
    ("key log", "local.key_log"),
    ("qlog", "local.qlog"),
    ("number of flows", "workload.flows"),
    ("number of flows over QUIC", "workload.flows"),
    ("connections at once", "workload.flows"),
    ("number of threads", "workload.threads"),
    ("measured time", "workload.end.duration_ns"),
    ("end", "workload.end"),
    ("warm-up", "workload.omit_ns"),
    ("interval", "workload.interval_ns"),
    ("transport", "workload.transport"),
    ("rate", "workload.rate"),
    ("size of a frame", "workload.rate"),
    ("verification", "workload.verify"),
    ("duplex", "workload.duplex"),
    ("busy polling", "workload.busy_poll"),
    ("variant", "workload.variant"),
    ("size of a send", "workload.kind.send_bytes"),
    ("request size", "workload.kind.request_bytes"),
    ("response size", "workload.kind.response_bytes"),
    ("time-out", "workload.kind.timeout_ns"),
    ("outstanding requests", "workload.kind.outstanding"),
    ("number of active flows", "workload.kind.active_flows"),
    ("requests per second", "workload.kind.schedule.per_s"),
    ("close", "workload.kind.close"),
    ("time of holding", "workload.kind.hold_ns"),
    ("bytes of a transfer", "workload.kind.transfer.bytes"),
    ("buffer of a transfer", "workload.kind.transfer.buffer_bytes"),
    ("bytes of a push", "workload.kind.transfer.push_bytes"),
    ("bytes of a pull", "workload.kind.transfer.pull_bytes"),
    ("frame rate", "workload.kind.media.frames_per_s"),
    ("buffer depth", "workload.kind.media.buffer_depth_ns"),
    ("number of buffered frames", "workload.kind.media.buffer_depth_ns"),
    ("number of buffered datagrams", "workload.kind.media.buffer_depth_ns"),
    ("no offload", "workload.socket.no_offload"),
    ("no delay", "workload.socket.no_delay"),
    ("congestion control", "workload.socket.congestion"),
    ("DSCP", "workload.socket.dscp"),
    ("MSS", "workload.socket.mss_bytes"),
    ("window", "workload.socket.window_bytes"),
    ("streams of a connection", "workload.quic.streams"),
    ("initial window", "workload.quic.initial_window_bytes"),
    ("window of a stream", "workload.quic.stream_window_bytes"),
    ("window of a connection", "workload.quic.connection_window_bytes"),
    ("windows of all connections", "workload.quic.connection_window_bytes"),
    ("QUIC packet", "workload.quic.mtu_bytes"),
    ("longest QUIC packet", "workload.quic.mtu_most_bytes"),
    ("packets without acknowledgement", "workload.quic.ack_packets"),
    ("packets out of order", "workload.quic.ack_reordering"),
    ("delay of acknowledgements", "workload.quic.ack_delay_ns"),
    ("idle time-out", "workload.quic.idle_ns"),
    ("rate of packets", "workload.quic.pacing"),
    ("no ECN", "workload.quic.no_ecn"),
    ("QUIC version", "workload.quic.version"),
    ("datagrams", "workload.quic.datagrams"),
    ("streams of one direction", "workload.quic.unidirectional"),
    ("options of QUIC", "workload.quic"),
    ("handshake", "workload.tls.handshake"),
    ("cipher", "workload.tls.cipher"),
    ("ALPN", "workload.tls.alpn"),
];

impl PlanError {
    /// The field of the plan's document that the error is about, with dots between names: `workload.flows`.
    /// The error is of a plan with this workload.
    pub fn path(&self, workload: &Workload) -> Option<&'static str> {
        let name = match (self.field?, &workload.kind) {
            ("datagram size", Kind::Stream { .. }) => "size of a send",
            (
                "datagram size",
                Kind::Rr { request_bytes, response_bytes, .. }
                | Kind::Connect { request_bytes, response_bytes, .. },
            ) => match response_bytes > request_bytes {
                true => "response size",
                false => "request size",
            },
            (name, _) => name,
        };
        PATHS.iter().find(|(field, _)| *field == name).map(|(_, path)| *path)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::schema::{self, unknown_fields::unknown_fields};
    use crate::{Direction, Transport};

    /// A document with this field alone, and the kind of load that has it.
    fn document_with(path: &str, kind: &str) -> Value {
        let leaf = match path {
            "workload.kind" => json!({ "name": kind }),
            _ => Value::Null,
        };
        path.rsplit('.').fold(leaf, |value, name| match (name, value) {
            ("kind", Value::Object(mut fields)) => {
                fields.insert("name".to_owned(), kind.into());
                json!({ name: fields })
            }
            (name, value) => json!({ name: value }),
        })
    }

    #[test]
    fn paths_are_fields_of_the_schema() {
        let schema = schema::plan();
        for (name, path) in PATHS {
            let is_known =
                |kind: &&str| unknown_fields(&schema, &document_with(path, kind)).is_empty();
            assert!(["stream", "rr", "connect"].iter().any(is_known), "{name}: {path}");
        }
        let unknown = unknown_fields(&schema, &document_with("workload.kind.sends", "stream"));
        assert_eq!(unknown.len(), 1);
    }

    #[test]
    fn path_of_a_size_depends_on_the_kind() {
        let path = |workload: &Workload| workload.check().unwrap_err().path(workload);
        let mut stream = Workload::stream(Direction::Up, Transport::Udp);
        let Kind::Stream { send_bytes, .. } = &mut stream.kind else { panic!() };
        *send_bytes = 1;
        assert_eq!(path(&stream), Some("workload.kind.send_bytes"));
        let mut rr = Workload::rr(Transport::Quic);
        rr.use_quic_datagrams();
        let Kind::Rr { response_bytes, .. } = &mut rr.kind else { panic!() };
        *response_bytes = 50_000;
        assert_eq!(path(&rr), Some("workload.kind.response_bytes"));
        assert_eq!(path(&Workload { flows: 0, ..rr }), Some("workload.flows"));
    }
}
