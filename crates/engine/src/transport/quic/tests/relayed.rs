//! Two endpoints and a path between them that does what it likes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::Socket;

use super::super::coalesced::packets_in;
use super::super::{Endpoint, Event, Extras, Link, Settings, SharedConnection};
use super::{sides_with, socket};

/// One way between two endpoints, which may lose, repeat and reorder by a generator of its own.
pub(super) struct Path {
    from: Arc<Socket>,
    loses: bool,
    held: Vec<Vec<u8>>,
    pub(super) seen: Vec<u8>,
    pub(super) counts: Passed,
    state: u64,
}

/// Packets by what the path did to them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Passed {
    /// Handed on, whatever they had become.
    pub(super) packets: u64,
    pub(super) lost: u64,
    pub(super) repeated: u64,
    pub(super) late: u64,
    pub(super) wrong: u64,
}

impl Path {
    fn new(from: &Arc<Socket>, loses: bool, state: u64) -> Self {
        let (held, seen, counts) = (Vec::new(), Vec::new(), Passed::default());
        Self { from: Arc::clone(from), loses, held, seen, counts, state }
    }

    fn throw(&mut self, below: u64) -> u64 {
        linerate_measure::random::next_word(&mut self.state) % below
    }

    fn pass(&mut self, via: &Socket, to: SocketAddr) {
        let mut datagram = vec![0; 2_000];
        let flags = rustix::net::RecvFlags::DONTWAIT;
        while let Ok((length, _)) = rustix::net::recv(&*self.from, datagram.as_mut_slice(), flags) {
            let datagram = &datagram[..length];
            self.seen.extend(datagram);
            let packets = packets_in(datagram);
            match self.throw(100) {
                0..5 if self.loses => {
                    self.counts.lost += packets;
                    continue;
                }
                5..8 if self.loses => {
                    self.counts.repeated += packets;
                    self.held.push(datagram.to_vec());
                }
                8..15 if self.loses => {
                    self.counts.late += packets;
                    self.held.push(datagram.to_vec());
                    continue;
                }
                15..18 if self.loses => {
                    let mut wrong = datagram.to_vec();
                    let at = self.throw(wrong.len() as u64) as usize;
                    wrong[at] ^= 0x10;
                    self.counts.wrong += packets;
                    self.counts.packets += packets;
                    via.send_to(&wrong, &to.into()).unwrap();
                    continue;
                }
                _ => {}
            }
            self.counts.packets += packets;
            via.send_to(datagram, &to.into()).unwrap();
        }
        if !self.held.is_empty() && self.throw(3) == 0 {
            let late = self.held.swap_remove(0);
            self.counts.packets += packets_in(&late);
            via.send_to(&late, &to.into()).unwrap();
        }
    }
}

/// Two endpoints and what is between them.
pub(super) struct Relayed {
    pub(super) near: Endpoint,
    pub(super) far: Endpoint,
    pub(super) link: Link,
    pub(super) up: Path,
    pub(super) down: Path,
    addresses: (SocketAddr, SocketAddr),
}

impl Relayed {
    pub(super) fn new(settings: &Settings, extras: (Extras, Extras), loses: bool) -> Self {
        let settings = Settings { offload: false, ..settings.clone() };
        let (client, server) = sides_with(&settings, extras);
        let ((near, near_address), (far, far_address)) = (socket(), socket());
        let ((left, left_address), (right, right_address)) = (socket(), socket());
        near.connect(&left_address.into()).unwrap();
        far.connect(&right_address.into()).unwrap();
        let mut near = Endpoint::over(near, &settings, None).unwrap().counting(true);
        let far = Endpoint::over(far, &settings, Some(&server)).unwrap().counting(true);
        let link = near.connect(0, left_address, "linerate", &client).unwrap();
        let (up, down) = (Path::new(&left, loses, 1), Path::new(&right, loses, 2));
        Self { near, far, link, up, down, addresses: (near_address, far_address) }
    }

    /// Takes in what was handed on and has not been read.
    pub(super) fn settle(&mut self) {
        for _ in 0..100 {
            self.near.turn().unwrap();
            self.far.turn().unwrap();
        }
    }

    /// Until `done` says so, which sees the client's end, whether it is established, and the
    /// server's; 40 s at most.
    pub(super) fn run(
        &mut self,
        mut done: impl FnMut((&SharedConnection, bool), &SharedConnection) -> bool,
    ) {
        let near = self.near.connection(self.link).unwrap().clone();
        let (mut far, mut established) = (None, false);
        let end = Instant::now() + Duration::from_secs(40);
        loop {
            assert!(Instant::now() < end, "nothing came of it");
            self.near.turn().unwrap();
            self.far.turn().unwrap();
            self.up.pass(&self.down.from, self.addresses.1);
            self.down.pass(&self.up.from, self.addresses.0);
            while let Some((_, event)) = self.near.poll_event() {
                established |= event == Event::Established;
            }
            while let Some((link, event)) = self.far.poll_event() {
                if event == Event::Accepted {
                    far = self.far.connection(link).cloned();
                }
            }
            if let Some(far) = &far
                && done((&near, established), far)
            {
                return;
            }
        }
    }
}
