//! The listener: which threads accept from it, and what accepted connections begin with.

use std::os::fd::AsFd;

use rustix::event::epoll::{self, EventData, EventFlags};

use super::acceptor::{Acceptor, Incoming, LISTENER};
use super::test::Test;
use crate::connections::restore_listener;
use crate::socket::FirstWindow;

impl Acceptor {
    /// Leaves the listener to the loads that take their connections from it themselves, as long as
    /// there is one.
    pub(super) fn leave_or_take_listener(&mut self) {
        let takes_its_own = |number: &usize| match self.clients.kept(*number) {
            Some(Incoming::Control(control)) => control.test.as_ref().is_some_and(Test::accepts),
            _ => false,
        };
        let leave = self.tests.values().any(takes_its_own);
        if leave == self.listener_is_left {
            return;
        }
        let data = EventData::new_u64(LISTENER as u64);
        let changed = if leave {
            epoll::delete(&self.poll, self.listener.as_fd())
        } else {
            epoll::add(&self.poll, self.listener.as_fd(), data, EventFlags::IN)
        };
        restore_listener(&self.listener);
        if changed.is_ok() {
            self.listener_is_left = leave;
        }
    }

    /// Lets connections begin with the window that all tests want that await some.
    pub(super) fn set_first_window(&mut self) {
        let asked = self.awaiting_tests().map(|test| test.workload().socket.window_bytes);
        self.first_window.set(&self.listener, FirstWindow::agreed(asked));
    }

    /// The tests that await connections.
    pub(super) fn awaiting_tests(&self) -> impl Iterator<Item = &Test> {
        let tests = self.tests.values().filter_map(|number| match self.clients.kept(*number) {
            Some(Incoming::Control(control)) => control.test.as_ref(),
            _ => None,
        });
        tests.filter(|test| test.awaits_connections())
    }
}
