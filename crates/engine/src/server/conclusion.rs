//! The last of a test, made beside the acceptor: the report of many flows takes longer than others
//! can wait to be heard.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::thread;

use linerate_wire::native::server::Server as Machine;

use crate::error::Error;
use crate::load::Load;
use crate::waker::Waker;

/// What a load came to, on its way.
pub(super) struct Conclusion(Receiver<Documents>);

/// A load's last documents, as the client gets them.
struct Documents {
    sample: Option<String>,
    report: Result<String, String>,
}

impl Conclusion {
    /// Ends a load of which every flow has ended; rings when its report is made.
    pub(super) fn begin(load: Load, now_ns: u64, waker: &Arc<Waker>) -> Result<Self, String> {
        let (tell, documents) = sync_channel(1);
        let waker = Arc::clone(waker);
        let made = thread::Builder::new().name("report".into()).spawn(move || {
            let (sample, report) = load.finish(now_ns);
            // The client may have left.
            let _left = tell.send(Documents {
                sample: sample.and_then(|sample| serde_json::to_string(&sample).ok()),
                report: serde_json::to_string(&report)
                    .map_err(|error| format!("the result can't be written as JSON: {error}")),
            });
            waker.wake();
        });
        made.map(|_goes_on_alone| Self(documents))
            .map_err(|error| format!("the result can't be made: {}", Error::no_thread(&error)))
    }

    /// Tells the client what the load came to, once that is known; `None` until then, and an error where there is
    /// nothing to tell but that.
    pub(super) fn tell(&self, machine: &mut Machine) -> Option<Result<(), String>> {
        let Documents { sample, report } = match self.0.try_recv() {
            Ok(documents) => documents,
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => {
                Documents { sample: None, report: Err("the result could not be made".to_owned()) }
            }
        };
        if let Some(sample) = sample {
            machine.sample(sample);
        }
        Some(report.map(|document| machine.result(document)))
    }
}
