//! At most so many handshakes at a time.

use std::sync::{Condvar, Mutex, PoisonError};

/// Lets a limited number of threads through at a time.
#[derive(Debug)]
pub(crate) struct Gate {
    /// How many may pass; none when the gate is closed.
    free: Mutex<Option<usize>>,
    freed: Condvar,
}

/// A place behind the gate, given back when dropped.
#[derive(Debug)]
pub(crate) struct Pass<'gate>(&'gate Gate);

impl Gate {
    pub(crate) fn new(places: usize) -> Self {
        Self { free: Mutex::new(Some(places)), freed: Condvar::new() }
    }

    /// Waits for a place; none when the gate was closed.
    pub(crate) fn pass(&self) -> Option<Pass<'_>> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self
            .freed
            .wait_while(free, |free| *free == Some(0))
            .unwrap_or_else(PoisonError::into_inner);
        *free.as_mut()? -= 1;
        Some(Pass(self))
    }

    /// Sends those away that wait and those that will come.
    pub(crate) fn close(&self) {
        *self.free.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.freed.notify_all();
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if let Some(free) = self.0.free.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            *free += 1;
        }
        self.0.freed.notify_one();
    }
}
