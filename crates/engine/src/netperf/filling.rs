//! Buffers as netperf's options say: filled from a file, written to and read beside the transfer.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use linerate_wire::netperf::test::Dirt as Told;

use super::job::{Job, Task};
use super::plan::{EndPlan, TestKind, TestPlan};
use super::timing::{TimedFlow, stream_flow};
use crate::buffers::{Buffers, Dirt};
use crate::error::Error;
use crate::flow::{MakeFlow, PlainFlow};
use crate::transport::{FromPageCache, PageCache, Ring, Tcp, Timed, Udp};

/// So much of a fill file is used, as much as all buffers of a ring have.
const MOST_BYTES: u64 = 4 << 20;

/// This end's buffers.
///
/// # Errors
///
/// When the fill file can't be read, or is empty.
pub(super) fn buffers(plan: &TestPlan) -> Result<Buffers, Error> {
    // A file that is sent is not read.
    let path = plan.local.fill_file.as_deref().filter(|_| plan.kind != TestKind::SendFile);
    let content = path.map(|path| read(Path::new(path))).transpose()?;
    Ok(Buffers { content: content.map(Arc::new), dirt: dirt(told(&plan.local)) })
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let mut content = Vec::new();
    let all = File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut content));
    all.map_err(|error| unusable(path, &error))?;
    if content.is_empty() {
        return Err(unusable(path, &std::io::Error::other("it is empty")));
    }
    Ok(content)
}

fn unusable(path: &Path, error: &std::io::Error) -> Error {
    let path = path.display();
    Error::Plan(format!("the fill file {path} can't be used ({error}): give another one with -F"))
}

/// An end's dirt as the request to the server has it.
pub(super) fn told(end: &EndPlan) -> Told {
    let bytes = |of: fn(super::plan::Dirt) -> u32| end.dirt.map(of);
    Told {
        send_bytes: bytes(|dirt| dirt.dirty_bytes),
        receive_bytes: bytes(|dirt| dirt.dirty_bytes),
        clean_bytes: bytes(|dirt| dirt.clean_bytes),
    }
}

pub(super) fn dirt(told: Told) -> Dirt {
    let bytes = |bytes: Option<u32>| bytes.unwrap_or(0) as usize;
    Dirt {
        send_bytes: bytes(told.send_bytes),
        receive_bytes: bytes(told.receive_bytes),
        clean_bytes: bytes(told.clean_bytes),
    }
}

/// The file that TCP_SENDFILE sends, where one is named.
///
/// # Errors
///
/// When it can't be opened, or is empty.
pub(super) fn file_flow(plan: &TestPlan) -> Result<Option<MakeFlow>, Error> {
    let times_calls = plan.times_calls;
    let Some(path) = &plan.file else { return Ok(None) };
    let file = PageCache::open(path).map_err(|error| unusable(path, &error))?;
    Ok(Some(Box::new(move |socket, shared, steps| {
        stream_flow(FromPageCache::new(Tcp(socket), file), shared, steps, times_calls)
    })))
}

/// Makes a flow of datagrams as netperf has them, which say nothing of themselves.
pub(super) fn plain_flow(job: &Job) -> MakeFlow {
    let (buffers, times_calls) = (job.buffers.clone(), job.times_calls);
    Box::new(move |socket, shared, steps| {
        let path = Udp::new(socket, true);
        if !times_calls {
            return Box::new(PlainFlow::new(path, shared, buffers, steps));
        }
        TimedFlow::over(|times| {
            Box::new(PlainFlow::new(Timed::new(path, times), shared, buffers, steps))
        })
    })
}

/// Makes a flow whose buffers are other than they always are; `None` where they aren't.
pub(super) fn ring_flow(job: &Job) -> Option<MakeFlow> {
    let (buffers, width) = (job.buffers.clone(), job.send_width.max(1) as usize);
    // Connections that come and go have sockets of their own.
    if buffers.are_plain() || job.task == Task::Connections {
        return None;
    }
    let (unit_bytes, times_calls) = (job.send_bytes() as usize, job.times_calls);
    Some(Box::new(move |socket, shared, steps| {
        let ring = Ring::new(socket, &buffers, unit_bytes, width);
        stream_flow(ring, shared, steps, times_calls)
    }))
}
