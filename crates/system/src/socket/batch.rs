//! Several datagrams with one system call, for kernels and paths without segmentation offload.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::packet::Control;

/// The most datagrams of one call.
const MOST: usize = 64;
/// The most trains of datagrams that one call receives.
pub const MOST_TRAINS: usize = 16;

/// Sends the datagrams that lie one behind the other in `bytes`, `datagram_bytes` each, on a
/// connected socket (sendmmsg(2)). Returns how many the kernel took, at least one.
pub fn send_batch(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    datagram_bytes: usize,
) -> io::Result<usize> {
    let mut vectors = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; MOST];
    let mut messages = [EMPTY; MOST];
    let mut count = 0;
    for (datagram, (vector, message)) in
        bytes.chunks_exact(datagram_bytes).zip(vectors.iter_mut().zip(&mut messages))
    {
        vector.iov_base = datagram.as_ptr().cast_mut().cast();
        vector.iov_len = datagram.len();
        message.msg_hdr.msg_iov = vector;
        message.msg_hdr.msg_iovlen = 1;
        count += 1;
    }
    // SAFETY: the first `count` messages each point to one vector, and that to a slice of `bytes`;
    // all outlive the call, and the kernel only reads the bytes of what it sends.
    let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), count, 0) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Receives up to as many datagrams as fit into `into` at `slot_bytes` each (recvmmsg(2) with
/// MSG_WAITFORONE), the n-th at `n * slot_bytes`; their lengths go into `lengths`. Returns how many
/// came.
pub fn receive_batch(
    socket: BorrowedFd<'_>,
    into: &mut [u8],
    slot_bytes: usize,
    lengths: &mut [usize; MOST],
) -> io::Result<usize> {
    let mut vectors = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; MOST];
    let mut messages = [EMPTY; MOST];
    let mut count = 0;
    for (slot, (vector, message)) in
        into.chunks_exact_mut(slot_bytes).zip(vectors.iter_mut().zip(&mut messages))
    {
        vector.iov_base = slot.as_mut_ptr().cast();
        vector.iov_len = slot.len();
        message.msg_hdr.msg_iov = vector;
        message.msg_hdr.msg_iovlen = 1;
        count += 1;
    }
    // SAFETY: the first `count` messages each point to one vector, and that to its own part of
    // `into`; all outlive the call. No time-out is passed.
    let received = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr(),
            count,
            libc::MSG_WAITFORONE,
            std::ptr::null_mut(),
        )
    };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    for (length, message) in lengths.iter_mut().zip(&messages[..received]) {
        *length = message.msg_len as usize;
    }
    Ok(received)
}

/// Datagrams of one size that the kernel merged, or a single one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceivedTrain {
    /// Bytes of all.
    pub length: usize,
    /// Bytes of each but the last, which may have fewer. A single datagram has this length.
    pub segment_bytes: usize,
}

/// Receives up to as many trains as fit into `into` at `slot_bytes` each (recvmmsg(2) with MSG_WAITFORONE, on a socket
/// with UDP_GRO of udp(7)), the n-th at `n * slot_bytes`. Returns how many came.
pub fn receive_trains(
    socket: BorrowedFd<'_>,
    into: &mut [u8],
    slot_bytes: usize,
    trains: &mut [ReceivedTrain; MOST_TRAINS],
) -> io::Result<usize> {
    let mut vectors = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; MOST_TRAINS];
    let mut controls = [const { Control::new() }; MOST_TRAINS];
    let mut messages = [EMPTY; MOST_TRAINS];
    let mut count = 0;
    let parts = vectors.iter_mut().zip(&mut controls).zip(&mut messages);
    for (slot, ((vector, control), message)) in into.chunks_exact_mut(slot_bytes).zip(parts) {
        vector.iov_base = slot.as_mut_ptr().cast();
        vector.iov_len = slot.len();
        message.msg_hdr.msg_iov = vector;
        message.msg_hdr.msg_iovlen = 1;
        message.msg_hdr.msg_control = control.bytes.as_mut_ptr().cast();
        message.msg_hdr.msg_controllen = control.bytes.len();
        count += 1;
    }
    // SAFETY: the first `count` messages each point to one vector, and that to its own part of `into`, and to a control
    // buffer of their own with its true length; all outlive the call. No time-out is passed.
    let received = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr(),
            count,
            libc::MSG_WAITFORONE,
            std::ptr::null_mut(),
        )
    };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    let came = messages[..received].iter().zip(&mut controls);
    for (train, (message, control)) in trains.iter_mut().zip(came) {
        let length = message.msg_len as usize;
        control.length = message.msg_hdr.msg_controllen.min(control.bytes.len());
        let segment_bytes = control.gro_segment_bytes().unwrap_or(length);
        *train = ReceivedTrain { length, segment_bytes };
    }
    Ok(received)
}

const EMPTY: libc::mmsghdr = libc::mmsghdr {
    // SAFETY: a message header of all zero bytes is valid: null pointers with zero lengths.
    msg_hdr: unsafe { std::mem::zeroed() },
    msg_len: 0,
};

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn trains_arrive_with_the_length_of_their_datagrams() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        super::super::enable_receive_offload(receiver.as_fd()).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        sender.send(&[]).unwrap();
        super::super::set_send_segment(sender.as_fd(), 100).unwrap();
        sender.send(&[7; 250]).unwrap();
        super::super::set_send_segment(sender.as_fd(), 0).unwrap();
        sender.send(&[8; 30]).unwrap();
        let (mut into, mut trains) = (vec![0; 4 * 1000], [ReceivedTrain::default(); MOST_TRAINS]);
        let (mut lengths, mut bytes) = (Vec::new(), Vec::new());
        while bytes.len() < 280 {
            let count = receive_trains(receiver.as_fd(), &mut into, 1000, &mut trains).unwrap();
            for (slot, train) in into.chunks_exact(1000).zip(&trains[..count]) {
                let came = &slot[..train.length];
                bytes.extend_from_slice(came);
                lengths.extend(came.chunks(train.segment_bytes.max(1)).map(<[u8]>::len));
            }
        }
        assert_eq!(lengths, [100, 100, 50, 30]);
        assert_eq!(bytes, [&[7; 250][..], &[8; 30][..]].concat());
    }

    #[test]
    fn a_batch_arrives_as_it_was_sent() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        let bytes: Vec<u8> = (0..100).collect();
        assert_eq!(send_batch(sender.as_fd(), &bytes, 10).unwrap(), 10);
        let (mut into, mut lengths) = (vec![0; 64 * 20], [0; MOST]);
        let mut got = Vec::new();
        while got.len() < 100 {
            let count = receive_batch(receiver.as_fd(), &mut into, 20, &mut lengths).unwrap();
            for (slot, length) in into.chunks_exact(20).zip(&lengths[..count]) {
                got.extend_from_slice(&slot[..*length]);
            }
        }
        assert_eq!(got, bytes);
    }
}
