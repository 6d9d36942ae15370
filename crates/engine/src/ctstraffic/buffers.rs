//! The socket buffers that the kernel grants.

use socket2::{Domain, Socket, Type};

use super::media_plan::MediaSockets;
use super::tcp_plan::TcpSockets;

impl TcpSockets {
    /// A sentence for each buffer that is smaller than was asked.
    pub(super) fn shortfalls(&self) -> Vec<String> {
        shortfalls(Type::STREAM, self.receive_buffer_bytes, self.send_buffer_bytes)
    }
}

impl MediaSockets {
    /// A sentence for each buffer that is smaller than was asked.
    pub(super) fn shortfalls(&self) -> Vec<String> {
        shortfalls(Type::DGRAM, self.receive_buffer_bytes, self.send_buffer_bytes)
    }
}

/// Asks a socket of its own: all get the same.
fn shortfalls(kind: Type, receive: Option<u32>, send: Option<u32>) -> Vec<String> {
    let Ok(socket) = Socket::new(Domain::IPV4, kind, None) else { return Vec::new() };
    let received = receive.and_then(|bytes| {
        socket.set_recv_buffer_size(bytes as usize).ok()?;
        sentence("-RecvBufValue", "rmem_max", bytes, socket.recv_buffer_size().ok()?)
    });
    let sent = send.and_then(|bytes| {
        socket.set_send_buffer_size(bytes as usize).ok()?;
        sentence("-SendBufValue", "wmem_max", bytes, socket.send_buffer_size().ok()?)
    });
    received.into_iter().chain(sent).collect()
}

/// `granted` is what the kernel tells: twice the value, for what it adds to each packet (socket(7)).
fn sentence(option: &str, limit: &str, asked: u32, granted: usize) -> Option<String> {
    let granted = granted / 2;
    (granted < asked as usize).then(|| {
        format!(
            "{option}: sockets get buffers of {granted} bytes, not {asked}: raise net.core.{limit} \
             to at least {asked}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_that_are_capped_are_told() {
        let most = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap();
        let most: u32 = most.trim().parse().unwrap();
        let asked = most.saturating_add(most / 2);
        for kind in [Type::STREAM, Type::DGRAM] {
            assert_eq!(
                shortfalls(kind, Some(asked), Some(4096)),
                [format!(
                    "-RecvBufValue: sockets get buffers of {most} bytes, not {asked}: raise \
                     net.core.rmem_max to at least {asked}"
                )]
            );
            assert!(shortfalls(kind, Some(most), None).is_empty());
        }
    }
}
