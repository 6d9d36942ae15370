//! The way to a server through a Service: the wait for a load balancer's address, and for nodes to learn of it.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::look;
use super::trouble::{ClusterError, Trouble};
use crate::host::Way;

/// Nodes take so long to learn of a Service or of its address.
const SETTLES: Duration = Duration::from_millis(1500);

/// How often a Service without an address is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The first reminder of a wait comes after so long.
const FIRST_REMINDER: Duration = Duration::from_secs(5);

/// When a wait is told: after 5 s, and each time after twice as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reminder {
    next: Duration,
}

impl Default for Reminder {
    fn default() -> Self {
        Self { next: FIRST_REMINDER }
    }
}

impl Reminder {
    /// Whether a wait that has lasted so long is to be told now.
    pub(super) fn is_due(&mut self, waited: Duration) -> bool {
        let is_due = waited >= self.next;
        while self.next <= waited {
            self.next = self.next.saturating_mul(2);
        }
        is_due
    }
}

/// A Service that was made.
#[derive(Clone, Debug)]
pub(super) struct Service {
    name: String,
    port: u16,
    made: Instant,
    looked: Option<Instant>,
    /// Where it leads, and since when that is known.
    found: Option<((String, u16), Instant)>,
    reminder: Reminder,
}

impl Service {
    /// A Service of this name, made at this time. A load balancer will listen on the port.
    pub(super) fn new(name: &str, port: u16, made: Instant) -> Self {
        let name = name.to_owned();
        Self { name, port, made, looked: None, found: None, reminder: Reminder::default() }
    }

    /// Takes where it leads, where that is known at once.
    pub(super) fn lead_to(&mut self, address: String, port: u16, now: Instant) {
        self.found = Some(((address, port), now));
    }

    /// Whether it is time to look at it again: its address is not known yet.
    pub(super) fn wants_look(&mut self, now: Instant) -> bool {
        let is_early = |looked: Instant| now.duration_since(looked) < LOOK_EVERY;
        if self.found.is_some() || self.looked.is_some_and(is_early) {
            return false;
        }
        self.looked = Some(now);
        true
    }

    /// Takes what the cluster has of it.
    pub(super) fn take(&mut self, service: &Value, now: Instant) {
        if let Some(address) = look::balanced_address(service) {
            self.lead_to(address, self.port, now);
        }
    }

    /// The way, as far as it is known. `events` has those about the Service; it is asked only if they are needed.
    ///
    /// # Errors
    /// A load balancer has given no address within the limit.
    pub(super) fn way(
        &mut self,
        now: Instant,
        limit: Duration,
        events: impl FnOnce() -> Value,
    ) -> Result<Way, ClusterError> {
        if let Some(((address, port), since)) = &self.found {
            return Ok(match now.duration_since(*since) < SETTLES {
                true => Way::Awaited(None),
                false => Way::At(address.clone(), *port),
            });
        }
        let waited = now.duration_since(self.made);
        if waited >= limit {
            let said = self.describe(waited, limit, &events());
            return Err(ClusterError::new(Trouble::NoAddress, said));
        }
        let is_due = self.reminder.is_due(waited);
        Ok(Way::Awaited(is_due.then(|| self.describe(waited, limit, &events()))))
    }

    /// A sentence about the wait, with the cluster's last word.
    fn describe(&self, waited: Duration, limit: Duration, events: &Value) -> String {
        let said = match look::newest(events) {
            Some(told) => told.to_string(),
            None => "the cluster tells nothing about it, as one does that has no load balancer"
                .to_owned(),
        };
        let (name, waited, limit) = (&self.name, waited.as_secs(), limit.as_secs());
        format!(
            "no load balancer has given {name} an address after {waited} s of {limit} s: {said}"
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(120);

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn service(made: Instant) -> Service {
        Service::new("s-0-5250", 5250, made)
    }

    fn assigned(address: &Value) -> Value {
        json!({ "status": { "loadBalancer": { "ingress": [address] } } })
    }

    fn no_events() -> Value {
        panic!("events are not needed")
    }

    #[test]
    fn waits_are_told_after_5_s_and_then_after_twice_as_long_each_time() {
        let mut reminder = Reminder::default();
        let told: Vec<u64> = (0..=120).filter(|s| reminder.is_due(seconds(*s))).collect();
        assert_eq!(told, [5, 10, 20, 40, 80]);
        // A wait that nobody looked at for long is told once.
        let mut reminder = Reminder::default();
        assert!(reminder.is_due(seconds(100)));
        assert!(!reminder.is_due(seconds(100)));
    }

    #[test]
    fn an_address_is_used_once_nodes_know_it() {
        for (address, expected) in [
            (json!({ "ip": "192.0.2.9" }), "192.0.2.9"),
            (json!({ "hostname": "lb.example" }), "lb.example"),
        ] {
            let made = Instant::now();
            let mut service = service(made);
            assert!(service.wants_look(made));
            assert!(!service.wants_look(made + seconds(1) / 4));
            service.take(&json!({ "status": { "loadBalancer": {} } }), made);
            assert_eq!(service.way(made, LIMIT, no_events).unwrap(), Way::Awaited(None));
            let later = made + seconds(3);
            assert!(service.wants_look(later));
            service.take(&assigned(&address), later);
            assert_eq!(service.way(later, LIMIT, no_events).unwrap(), Way::Awaited(None));
            assert!(!service.wants_look(later + seconds(1)));
            // The limit is one of the address alone.
            let at = Way::At(expected.to_owned(), 5250);
            assert_eq!(service.way(later + SETTLES, seconds(1), no_events).unwrap(), at);
        }
    }

    #[test]
    fn a_port_of_a_node_needs_no_look() {
        let made = Instant::now();
        let mut service = service(made);
        service.lead_to("10.0.0.1".to_owned(), 31_000, made);
        assert!(!service.wants_look(made));
        let at = Way::At("10.0.0.1".to_owned(), 31_000);
        assert_eq!(service.way(made + SETTLES, LIMIT, no_events).unwrap(), at);
    }

    #[test]
    fn a_cluster_without_load_balancers_is_told_within_10_s() {
        let made = Instant::now();
        let mut service = service(made);
        assert_eq!(service.way(made + seconds(4), LIMIT, no_events).unwrap(), Way::Awaited(None));
        let Way::Awaited(Some(said)) =
            service.way(made + seconds(7), LIMIT, || json!({ "items": [] })).unwrap()
        else {
            panic!()
        };
        assert_eq!(
            said,
            "no load balancer has given s-0-5250 an address after 7 s of 120 s: the cluster tells \
             nothing about it, as one does that has no load balancer"
        );
        let error = service.way(made + LIMIT, LIMIT, Value::default).unwrap_err();
        assert_eq!(error.trouble, Trouble::NoAddress);
        assert!(error.said.contains("after 120 s of 120 s"), "{error}");
    }

    #[test]
    fn the_clusters_newest_word_stands_in_the_sentence() {
        let made = Instant::now();
        let event = |reason: &str, message: &str, at: &str| json!({ "reason": reason, "message": message, "lastTimestamp": at });
        let events = json!({ "items": [
            event("SyncLoadBalancerFailed", "quota exceeded.", "2026-11-26T22:08:06Z"),
            event("EnsuringLoadBalancer", "Ensuring load balancer", "2026-11-26T22:08:05Z"),
        ] });
        let error = service(made).way(made + seconds(3), seconds(2), || events).unwrap_err();
        assert!(error.said.ends_with(": SyncLoadBalancerFailed: quota exceeded"), "{error}");
    }
}
