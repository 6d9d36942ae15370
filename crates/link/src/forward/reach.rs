//! What of a description is within a forwarder's reach: it has payload, not packets.

use linerate_measure::link::{Change, Direction, Jitter, Link};

use super::ForwarderOptions;

/// The link with another direction in each direction's place.
fn with_directions(link: &Link, of: impl Fn(&Direction) -> Direction) -> Link {
    let change = |change: &Change| Change {
        at_ns: change.at_ns,
        to_right: change.to_right.as_ref().map(&of),
        to_left: change.to_left.as_ref().map(&of),
    };
    Link {
        to_right: of(&link.to_right),
        to_left: of(&link.to_left),
        changes: link.changes.iter().map(change).collect(),
        ..link.clone()
    }
}

/// What can be done to datagrams between sockets: there are no headers to mark.
pub(super) fn for_datagrams(link: &Link) -> Link {
    with_directions(link, |direction| Direction { mark_at: None, ..direction.clone() })
}

/// What can be done to a stream of bytes: all of it arrives once, and in order.
pub(super) fn for_streams(link: &Link) -> Link {
    with_directions(link, |direction| Direction {
        loss: 0.0,
        losses_in_a_row_max: None,
        burst_loss: None,
        reorder: None,
        duplicate: 0.0,
        mark_at: None,
        jitter: direction.jitter.map(|jitter| Jitter { may_reorder: false, ..jitter }),
        ..direction.clone()
    })
}

/// What the description asks for in vain.
pub(super) fn not_emulated(link: &Link, options: ForwarderOptions) -> Vec<String> {
    let changed = link.changes.iter().flat_map(|change| [&change.to_right, &change.to_left]);
    let all: Vec<&Direction> =
        [&link.to_right, &link.to_left].into_iter().chain(changed.flatten()).collect();
    let any = |of: fn(&Direction) -> bool| all.iter().any(|direction| of(direction));
    let asks = [
        ("loss", any(|direction| direction.loss > 0.0 || direction.burst_loss.is_some())),
        (
            "reordering",
            any(|direction| {
                direction.reorder.is_some()
                    || direction.jitter.is_some_and(|jitter| jitter.may_reorder)
            }),
        ),
        ("duplication", any(|direction| direction.duplicate > 0.0)),
    ];
    let mut missing = Vec::new();
    if options.tcp {
        let asked = asks.iter().filter(|(_, asked)| *asked);
        missing
            .extend(asked.map(|(name, _)| {
                format!("{name} for TCP: a relay has its bytes, not its packets")
            }));
        missing.push("for TCP: the delay of the handshake, and drops of a full queue (it makes the sender wait)".to_owned());
    }
    if any(|direction| direction.mark_at.is_some()) {
        missing.push("ECN marks: a relay has no headers".to_owned());
    }
    if options.udp && options.tcp {
        missing.push("one rate for UDP and TCP together: each has its own".to_owned());
    }
    missing
}
