//! Connections that wait in a load's places and haven't said whose they are. They make room for those that have.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::guest::{Guest, Stage};

/// Those of one of the load's loops.
pub(super) struct Strangers {
    /// Those of all loops.
    count: Arc<AtomicUsize>,
    /// The place and the number of each, whoever has waited longest first. Some have said it since, or gone.
    queue: VecDeque<(usize, u64)>,
    next_number: u64,
}

impl Strangers {
    pub(super) fn new(count: &Arc<AtomicUsize>) -> Self {
        Self { count: Arc::clone(count), queue: VecDeque::new(), next_number: 0 }
    }

    /// Notes how far the guest in this place has come, now that it waits or goes on.
    #[inline]
    pub(super) fn note(&mut self, place: usize, guest: &mut Guest) {
        let is_opening = matches!(guest.stage, Stage::Opening);
        if is_opening && guest.stranger.is_none() {
            guest.stranger = Some(self.next_number);
            self.queue.push_back((place, self.next_number));
            self.next_number += 1;
            self.count.fetch_add(1, Ordering::Relaxed);
        } else if !is_opening {
            self.leave(guest);
        }
    }

    /// The guest goes, or is none of them any more.
    #[inline]
    pub(super) fn leave(&self, guest: &mut Guest) {
        if guest.stranger.take().is_some() {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Takes the place of the one that has waited longest.
    pub(super) fn take_oldest(&mut self, guests: &[Option<Guest>]) -> Option<usize> {
        std::iter::from_fn(|| self.queue.pop_front())
            .find(|entry| is_here(entry, guests))
            .map(|(place, _)| place)
    }

    /// Forgets those that have said whose they are, or gone.
    pub(super) fn forget_others(&mut self, guests: &[Option<Guest>]) {
        self.queue.retain(|entry| is_here(entry, guests));
    }
}

fn is_here(&(place, number): &(usize, u64), guests: &[Option<Guest>]) -> bool {
    let guest = guests.get(place).and_then(Option::as_ref);
    guest.is_some_and(|guest| guest.stranger == Some(number))
}

#[cfg(test)]
mod tests {
    use socket2::{Domain, Socket, Type};

    use super::*;

    fn guest() -> Guest {
        Guest::new(Socket::new(Domain::IPV4, Type::STREAM, None).unwrap(), Stage::Opening)
    }

    #[test]
    fn whoever_has_waited_longest_goes_first_and_nobody_who_has_said_whose_it_is() {
        let count = Arc::default();
        let mut strangers = Strangers::new(&count);
        let mut guests: Vec<Option<Guest>> = (0..4).map(|_| Some(guest())).collect();
        for _ in 0..2 {
            for (place, guest) in guests.iter_mut().enumerate() {
                strangers.note(place, guest.as_mut().unwrap());
            }
        }
        assert_eq!(count.load(Ordering::Relaxed), 4);
        // One says whose it is; one goes, and another takes its place.
        let spoken = guests[1].as_mut().unwrap();
        spoken.stage = Stage::Asked(0);
        strangers.note(1, spoken);
        strangers.leave(&mut guests[0].take().unwrap());
        strangers.note(0, guests[0].insert(guest()));
        assert_eq!(count.load(Ordering::Relaxed), 3);
        strangers.forget_others(&guests);
        let order: Vec<usize> = std::iter::from_fn(|| strangers.take_oldest(&guests)).collect();
        assert_eq!(order, [2, 3, 0]);
    }
}
