//! The tickets that a target gave, which all threads of a proxy use.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::Resumption;

/// Servers whose tickets are kept: there is one target.
const TARGETS: usize = 1;
/// Offers whose tickets are kept. Clients choose what is offered.
const MOST_OFFERS: usize = 32;

/// The application protocols that a client offers.
type Offer = Vec<Vec<u8>>;

/// The tickets of each offer of application protocols. Early data is of the protocol that was agreed on when the
/// ticket was given (RFC 8446, section 4.2.10).
#[derive(Clone, Default)]
pub(super) struct TargetTickets {
    /// The offer that was asked for last stands at the end.
    offers: Arc<Mutex<VecDeque<(Offer, Resumption)>>>,
}

impl TargetTickets {
    /// Where the tickets are kept that the target gives to connections with this offer. If there are too many
    /// offers, the one goes that was not asked for the longest.
    pub(super) fn of(&self, offer: &[Vec<u8>]) -> Resumption {
        let mut offers = self.offers.lock().unwrap_or_else(PoisonError::into_inner);
        let known = offers.iter().position(|(one, _)| one == offer);
        let found = known.and_then(|at| offers.remove(at));
        if found.is_none() && offers.len() >= MOST_OFFERS {
            offers.pop_front();
        }
        let new = || (offer.to_vec(), Resumption::in_memory_sessions(TARGETS));
        let found = found.unwrap_or_else(new);
        let tickets = found.1.clone();
        offers.push_back(found);
        tickets
    }

    #[cfg(test)]
    fn offers(&self) -> Vec<Offer> {
        let offers = self.offers.lock().unwrap_or_else(PoisonError::into_inner);
        offers.iter().map(|(offer, _)| offer.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offers_that_were_asked_for_last_are_kept() {
        let tickets = TargetTickets::default();
        let offer = |number: usize| vec![number.to_string().into_bytes()];
        for number in 0..MOST_OFFERS {
            tickets.of(&offer(number));
        }
        tickets.of(&offer(0));
        tickets.of(&offer(MOST_OFFERS));
        let kept = tickets.offers();
        assert_eq!(kept.len(), MOST_OFFERS);
        assert!(kept.contains(&offer(0)) && kept.contains(&offer(MOST_OFFERS)));
        assert!(!kept.contains(&offer(1)));
    }
}
