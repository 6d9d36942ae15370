//! Receiving over TCP.

use std::io;

use socket2::Socket;

use super::{Course, Now, Sink};
use crate::flow::{CALLS_PER_TURN, Drive, Local, Turn};
use crate::transport::ByteStream;

/// Receives over a connection until the test ends.
pub(in super::super) struct Receiver<S> {
    stream: S,
    course: Course,
    sink: Sink,
}

impl<S: ByteStream> Receiver<S> {
    pub(in super::super) fn new(stream: S, course: Course, sink: Sink) -> Self {
        Self { stream, course, sink }
    }

    fn advance(&mut self, local: &mut Local) -> io::Result<Turn> {
        for _ in 0..CALLS_PER_TURN {
            match self.course.now(local) {
                Now::Works { .. } | Now::Drains => {}
                Now::Waits => return Ok(Turn::Held),
                Now::Ends => return Ok(Turn::Ended),
            }
            let length = self.stream.receive(&mut local.receive_buffer)?;
            // What comes after the end isn't counted; what ends the waiting isn't either.
            let now = self.course.now(local);
            if now == Now::Ends || length == 0 {
                return Ok(Turn::Ended);
            }
            self.sink.write(local.receive_buffer.get(..length).unwrap_or_default())?;
            self.course.record_received(length, local);
        }
        Ok(Turn::Again)
    }
}

impl<S: ByteStream> Drive for Receiver<S> {
    fn turn(&mut self, local: &mut Local) -> Turn {
        loop {
            match self.advance(local) {
                Ok(Turn::Ended) => return self.course.end(None, local),
                Ok(turn) => return turn,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => match self.course.now(local) {
                        Now::Drains | Now::Ends => return self.course.end(None, local),
                        _ => return Turn::READY,
                    },
                    io::ErrorKind::Interrupted => {}
                    _ => return self.course.end(Some(error.into()), local),
                },
            }
        }
    }

    fn socket(&self) -> &Socket {
        self.stream.socket()
    }
}
