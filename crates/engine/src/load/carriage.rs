//! What carries the bytes of a flow over a connection: chosen once, when the flow comes.

use std::sync::Arc;

use linerate_measure::Workload;
use linerate_wire::step::{Movement, Step};

use super::Load;
use crate::error::Error;
use crate::flow::{Drive, FlowShared, StreamFlow};
use crate::pattern::Pattern;
use crate::transport::{Discarding, FromPageCache, IntoNowhere, PageCache, Tcp, Tls, ZeroCopy};

/// The pattern that a load sends, of which slices of up to `longest` bytes are needed.
pub(super) fn pattern_for(workload: &Workload, longest: usize) -> Arc<Pattern> {
    match workload {
        _ if workload.variant.zero_copy => Pattern::lasting(),
        _ if workload.verify => Arc::new(Pattern::new(longest)),
        _ => Arc::new(Pattern::beginning(longest)),
    }
}

/// The file that a load sends from, where it does.
pub(super) fn file_for(
    workload: &Workload,
    pattern: &Pattern,
    longest: usize,
) -> Result<Option<PageCache>, Error> {
    if !workload.variant.splice {
        return Ok(None);
    }
    PageCache::of(pattern.slice(0, longest)).map(Some).map_err(|error| {
        Error::Host(format!("can't make a file in memory (memfd): {error}; leave out --splice"))
    })
}

impl Load {
    /// A flow over a connection, under TLS where a session is given.
    pub(super) fn carry(
        &self,
        shared: Arc<FlowShared>,
        steps: Vec<Step>,
        session: Option<rustls::Connection>,
    ) -> Box<dyn Drive> {
        let socket = Arc::clone(&shared.socket);
        if let Some(session) = session {
            return Box::new(StreamFlow::new(Tls::new(socket, session), shared, steps));
        }
        let movement = match steps.first() {
            Some(Step::Send(transfer)) => (true, transfer.movement),
            Some(Step::Receive(transfer)) => (false, transfer.movement),
            _ => (false, Movement::Copy),
        };
        match (movement, &self.file) {
            ((true, Movement::ZeroCopy), _) => {
                Box::new(StreamFlow::new(ZeroCopy::new(socket), shared, steps))
            }
            ((true, Movement::Splice), Some(file)) => {
                let stream = FromPageCache::new(Tcp(socket), file.clone());
                Box::new(StreamFlow::new(stream, shared, steps))
            }
            ((false, Movement::Splice), _) => {
                Box::new(StreamFlow::new(IntoNowhere(Tcp(socket)), shared, steps))
            }
            ((false, Movement::Discard), _) => {
                Box::new(StreamFlow::new(Discarding(Tcp(socket)), shared, steps))
            }
            _ => Box::new(StreamFlow::new(Tcp(socket), shared, steps)),
        }
    }
}
