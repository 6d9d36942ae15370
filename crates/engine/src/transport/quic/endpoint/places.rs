//! The connections of an endpoint, by their places.

use super::super::connection::SharedConnection;
use super::Link;

/// A connection's place. It is taken again when the connection has closed and was forgotten, some time after its
/// last event.
#[derive(Default)]
struct Place {
    generation: u32,
    connection: Option<SharedConnection>,
}

/// Places, taken and free.
#[derive(Default)]
pub(super) struct Places {
    all: Vec<Place>,
    vacant: Vec<u32>,
}

impl Places {
    /// The next connection's.
    pub(super) fn reserve(&mut self) -> Link {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.all.push(Place::default());
            (self.all.len() - 1) as u32
        });
        let generation = self.all.get(index as usize).map_or(0, |place| place.generation);
        Link { index, generation }
    }

    /// Has a connection take the place that was reserved for it.
    pub(super) fn take(&mut self, link: Link, connection: SharedConnection) {
        if let Some(place) = self.all.get_mut(link.index as usize) {
            place.connection = Some(connection);
        }
    }

    pub(super) fn get(&self, link: Link) -> Option<&SharedConnection> {
        let place = self.all.get(link.index as usize)?;
        place.connection.as_ref().filter(|_| place.generation == link.generation)
    }

    /// The connection that has the place now, as its users know it.
    pub(super) fn at(&self, index: u32) -> Option<(Link, &SharedConnection)> {
        let place = self.all.get(index as usize)?;
        Some((Link { index, generation: place.generation }, place.connection.as_ref()?))
    }

    /// A reserved place is not taken.
    pub(super) fn release(&mut self, link: Link) {
        if let Some(place) = self.all.get_mut(link.index as usize)
            && place.connection.is_none()
        {
            place.generation = place.generation.wrapping_add(1);
            self.vacant.push(link.index);
        }
    }

    pub(super) fn forget(&mut self, index: u32) {
        if let Some(place) = self.all.get_mut(index as usize)
            && place.connection.take().is_some()
        {
            place.generation = place.generation.wrapping_add(1);
            self.vacant.push(index);
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &SharedConnection> {
        self.all.iter().filter_map(|place| place.connection.as_ref())
    }

    pub(super) fn open(&self) -> usize {
        self.all.len() - self.vacant.len()
    }
}
