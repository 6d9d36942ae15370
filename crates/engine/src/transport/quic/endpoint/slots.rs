//! The connections of an endpoint, by their slots.

use super::super::connection::SharedConnection;
use super::Link;

/// A connection's slot. It is taken again when the connection has closed and was forgotten, some time after its
/// last event.
#[derive(Default)]
struct LinkSlot {
    generation: u32,
    connection: Option<SharedConnection>,
}

/// Slots, taken and free.
#[derive(Default)]
pub(super) struct LinkSlots {
    all: Vec<LinkSlot>,
    vacant: Vec<u32>,
}

impl LinkSlots {
    /// The next connection's.
    pub(super) fn reserve(&mut self) -> Link {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.all.push(LinkSlot::default());
            (self.all.len() - 1) as u32
        });
        let generation = self.all.get(index as usize).map_or(0, |slot| slot.generation);
        Link { index, generation }
    }

    /// Has a connection take the slot that was reserved for it.
    pub(super) fn take(&mut self, link: Link, connection: SharedConnection) {
        if let Some(slot) = self.all.get_mut(link.index as usize) {
            slot.connection = Some(connection);
        }
    }

    pub(super) fn get(&self, link: Link) -> Option<&SharedConnection> {
        let slot = self.all.get(link.index as usize)?;
        slot.connection.as_ref().filter(|_| slot.generation == link.generation)
    }

    /// The connection that has the slot now, as its users know it.
    pub(super) fn at(&self, index: u32) -> Option<(Link, &SharedConnection)> {
        let slot = self.all.get(index as usize)?;
        Some((Link { index, generation: slot.generation }, slot.connection.as_ref()?))
    }

    /// A reserved slot is not taken.
    pub(super) fn release(&mut self, link: Link) {
        if let Some(slot) = self.all.get_mut(link.index as usize)
            && slot.connection.is_none()
        {
            slot.generation = slot.generation.wrapping_add(1);
            self.vacant.push(link.index);
        }
    }

    pub(super) fn forget(&mut self, index: u32) {
        if let Some(slot) = self.all.get_mut(index as usize)
            && slot.connection.take().is_some()
        {
            slot.generation = slot.generation.wrapping_add(1);
            self.vacant.push(index);
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &SharedConnection> {
        self.all.iter().filter_map(|slot| slot.connection.as_ref())
    }

    pub(super) fn open(&self) -> usize {
        self.all.len() - self.vacant.len()
    }
}
