//! The listener: which threads accept from it, and what accepted connections begin with.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::epoll::{self, EventData, EventFlags};
use socket2::Socket;

use super::acceptor::LISTENER;
use crate::connections::restore_listener;
use crate::error::Error;
use crate::socket::FirstWindow;

/// The TCP port of a server.
pub(super) struct Listener {
    pub(super) socket: Arc<Socket>,
    /// Whether a load takes the connections from it, and hands over what isn't its own.
    pub(super) is_left: bool,
    pub(super) first_window: FirstWindow,
    /// How many loops of those loads there are.
    pub(super) loops: Arc<AtomicU32>,
    /// Connections that such a load has handed over.
    pub(super) unclaimed: (Sender<Socket>, Receiver<Socket>),
    /// When a connection was last accepted.
    pub(super) accepted_ns: u64,
}

impl Listener {
    pub(super) fn new(socket: Socket) -> Result<Self, Error> {
        let first_window = FirstWindow::of(&socket)
            .map_err(|error| Error::Host(format!("can't read the listener's buffer: {error}")))?;
        Ok(Self {
            socket: Arc::new(socket),
            is_left: false,
            first_window,
            loops: Arc::default(),
            unclaimed: channel(),
            accepted_ns: 0,
        })
    }

    /// Leaves it to the loads that take their connections from it themselves, or takes it back.
    pub(super) fn leave_or_take(&mut self, poll: &OwnedFd, leave: bool) {
        if leave == self.is_left {
            return;
        }
        let data = EventData::new_u64(LISTENER as u64);
        let changed = if leave {
            epoll::delete(poll, self.socket.as_fd())
        } else {
            epoll::add(poll, self.socket.as_fd(), data, EventFlags::IN)
        };
        restore_listener(&self.socket);
        if changed.is_ok() {
            self.is_left = leave;
        }
    }

    /// Lets connections begin with the window that all tests want that await some.
    pub(super) fn set_first_window(&mut self, asked: impl Iterator<Item = Option<u32>>) {
        self.first_window.set(&self.socket, FirstWindow::agreed(asked));
    }
}
