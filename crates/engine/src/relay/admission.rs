//! How many clients a proxy has, in all and from one origin.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::acceptor::Origin;

/// The clients of all threads. It is locked when one comes and when one goes.
pub(super) struct Admission {
    most: u32,
    most_of_origin: u32,
    clients: Mutex<Clients>,
}

#[derive(Default)]
struct Clients {
    count: u32,
    by_origin: HashMap<Origin, u32>,
}

/// A limit that refuses a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many clients in all.
    Clients(u32),
    /// So many clients from one address, or from one network (/64) of IPv6.
    OfAddress(u32),
}

/// A client that counts among the others, until it is dropped.
pub(super) struct Admitted {
    admission: Arc<Admission>,
    origin: Origin,
}

impl Admission {
    pub(super) fn new(most: u32, most_of_origin: u32) -> Self {
        Self { most, most_of_origin, clients: Mutex::default() }
    }

    fn clients(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits a client.
    ///
    /// # Errors
    ///
    /// The limit that refuses it.
    pub(super) fn admit(self: &Arc<Self>, client: SocketAddr) -> Result<Admitted, Limit> {
        let origin = Origin::of(client);
        let mut clients = self.clients();
        if clients.count >= self.most {
            return Err(Limit::Clients(self.most));
        }
        let of_origin = clients.by_origin.entry(origin).or_default();
        if *of_origin >= self.most_of_origin {
            return Err(Limit::OfAddress(self.most_of_origin));
        }
        *of_origin += 1;
        clients.count += 1;
        Ok(Admitted { admission: Arc::clone(self), origin })
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut clients = self.admission.clients();
        clients.count = clients.count.saturating_sub(1);
        if let Some(of_origin) = clients.by_origin.get_mut(&self.origin) {
            *of_origin -= 1;
            if *of_origin == 0 {
                clients.by_origin.remove(&self.origin);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_counted_in_all_and_by_origin_until_they_go() {
        let admission = Arc::new(Admission::new(3, 2));
        let from = |address: &str| SocketAddr::new(address.parse().unwrap(), 1);
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(from);
        let first = admission.admit(one).unwrap();
        let _second = admission.admit(one).unwrap();
        assert!(admission.admit(one).is_err_and(|limit| limit == Limit::OfAddress(2)));
        let third = admission.admit(other).unwrap();
        assert!(admission.admit(other).is_err_and(|limit| limit == Limit::Clients(3)));
        drop(first);
        let _fourth = admission.admit(one).unwrap();
        drop(third);
        assert!(admission.admit(one).is_err());
        assert!(admission.admit(other).is_ok());
    }
}
