//! Whether a media stream makes sense.

use super::{Checked, in_bytes, in_digits, refuse_first, within};
use crate::plan::{End, Transport, Workload, limits};
use crate::units::render_duration_ns;

/// Checks the frames of a workload, where it has any.
pub(super) fn check(workload: &Workload) -> Checked {
    let Some(media) = workload.frames() else {
        return Ok(());
    };
    refuse_first(&[
        (
            workload.transport != Transport::Udp,
            "frame rate",
            "frames of a media stream over a transport other than UDP: ask for UDP, or leave them out",
        ),
        (workload.rate.is_none(), "rate", "frames of a media stream without a rate: give one"),
        (
            !matches!(workload.end, End::Time { .. }),
            "end",
            "an end by bytes or sends with a media stream: give a time",
        ),
    ])?;
    within("frame rate", media.frames_per_s, &limits::FRAMES_PER_S, in_digits)?;
    within("buffer depth", media.buffer_depth_ns, &limits::BUFFER_DEPTH_NS, render_duration_ns)?;
    let (Some(frames), Some((datagrams, bytes))) =
        (workload.frames_of(0), workload.frame_datagrams())
    else {
        return Ok(());
    };
    let frame_bytes = datagrams.saturating_mul(u64::from(bytes));
    within("size of a frame", frame_bytes, &limits::FRAME_BYTES, in_bytes)?;
    let window = frames.window();
    within("number of buffered frames", window, &limits::FRAMES_KEPT_OF_FLOW, in_digits)?;
    let kept = window.saturating_mul(u64::from(workload.flows));
    within("number of buffered frames", kept, &limits::FRAMES_KEPT, in_digits)?;
    let kept = kept.saturating_mul(datagrams);
    within("number of buffered datagrams", kept, &limits::DATAGRAMS_KEPT, in_digits)
}
