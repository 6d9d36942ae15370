//! What carries the bytes of a flow over a connection: chosen once, when the flow comes.

use std::sync::Arc;

use linerate_measure::Workload;
use linerate_measure::step::{BytePattern, LifeContent, Movement, Step};

use super::{Load, Spread};
use crate::error::Error;
use crate::flow::Over;
use crate::pattern::Pattern;
use crate::transport::{Negotiation, PageCache};

/// The pattern that a load with these steps sends, of which slices of up to `longest` bytes are needed.
pub(super) fn pattern_for(workload: &Workload, steps: &[Step], longest: usize) -> Arc<Pattern> {
    let content = steps.iter().find_map(|step| match step {
        Step::Connect(churn) | Step::Accept(churn) => Some(churn.life.content),
        _ => None,
    });
    match workload {
        _ if let Some(LifeContent::Pattern { pattern, .. }) = content => Arc::new(match pattern {
            BytePattern::Native => Pattern::new(longest),
            BytePattern::Count => Pattern::counting(longest),
        }),
        _ if workload.payload.variant.zero_copy => Pattern::lasting(),
        _ if workload.payload.verify => Arc::new(Pattern::new(longest)),
        _ => Pattern::beginning(longest),
    }
}

/// The file that a load sends from, where it does.
pub(super) fn file_for(
    workload: &Workload,
    pattern: &Pattern,
    longest: usize,
    spread: Spread,
) -> Result<Option<PageCache>, Error> {
    if !workload.payload.variant.splice {
        return Ok(None);
    }
    if spread.apart {
        let flows = workload.total_flows();
        return Err(Error::Host(format!(
            "{flows} flows have file tables of their own, in which there is no file to splice \
             from: leave out --splice, or ask for fewer --flows"
        )));
    }
    PageCache::of(pattern.slice(0, longest)).map(Some).map_err(|error| {
        Error::Host(format!("can't make a file in memory (memfd): {error}; leave out --splice"))
    })
}

impl Load {
    /// What carries a flow over a connection: TLS where there is something to agree on.
    pub(super) fn carriage(&self, steps: &[Step], negotiation: Option<Negotiation>) -> Over {
        if let Some(negotiation) = negotiation {
            return Over::Tls(Box::new(negotiation));
        }
        match (steps.first(), &self.file) {
            (Some(Step::Send(transfer)), file) => match (transfer.movement, file) {
                (Movement::ZeroCopy, _) => Over::ZeroCopy,
                (Movement::Splice, Some(file)) => Over::FromPageCache(file.clone()),
                _ => Over::Tcp,
            },
            (Some(Step::Receive(transfer)), _) => match transfer.movement {
                Movement::Splice => Over::IntoNowhere,
                Movement::Discard => Over::Discarding,
                Movement::Copy | Movement::ZeroCopy => Over::Awake,
            },
            _ => Over::Tcp,
        }
    }
}
