//! What peers may send before it is read, and how many streams they may have open: little at first, and more as
//! it is used, out of a stock that all connections of a server share. A peer can make a server hold all that
//! it was allowed, by leaving out what comes first.

use std::collections::VecDeque;

use quinn_proto::Dir;

use super::super::connection::Connection;
use super::super::settings::{CONNECTION_WINDOW_BYTES, STREAM_WINDOW_BYTES};
use super::super::stock::{Share, Stock, kept_bytes};
use super::MultiplexedEndpoint;
use crate::transport::multiplexer::Link;

/// The most streams of a connection that a peer may have open. It is allowed few at first, since
/// each costs memory, and twice as many whenever nearly all are open.
const STREAM_LIMIT: u32 = 10_000;

/// Connections that were refused streams, of which so many are looked at in a turn.
const REFUSED_PER_TURN: usize = 16;

/// What a stream may keep besides its part of the window (`Assembler::insert` of quinn-proto): packets whole of
/// which few bytes count, up to 32 KiB, and what is known of 1,024 pieces, twice as a vector grows.
const STREAM_BYTES: u64 = (32 << 10) + 2 * 1_024 * 56;

/// What one connection may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Grant {
    window_bytes: u32,
    streams: u32,
    /// What was read since the window last grew, or might have.
    read_bytes: u64,
    /// Whether it stands among those that were refused streams.
    is_refused: bool,
}

impl Grant {
    /// So much more was read; whether that is half of the window, which may then grow.
    fn record_read(&mut self, bytes: usize) -> bool {
        self.read_bytes = self.read_bytes.saturating_add(bytes as u64);
        let is_half = self.read_bytes >= u64::from(self.window_bytes / 2);
        if is_half {
            self.read_bytes = 0;
        }
        is_half
    }

    /// How many more streams to allow the peer, which has so many open: as many as it may have, once half of
    /// these are open. A peer that opens a stream when another ends needs as many more, whose allowance is still
    /// in flight.
    fn more_streams(&self, open: u64) -> u32 {
        let is_short = open >= u64::from(self.streams / 2);
        if is_short { self.streams.min(STREAM_LIMIT.saturating_sub(self.streams)) } else { 0 }
    }

    /// How many bytes more the window should have of a connection with so many streams open: as many as it has,
    /// as far as these can use them.
    fn more_window_bytes(&self, open: u64) -> u32 {
        let usable = open.saturating_mul(STREAM_WINDOW_BYTES.into());
        let most = usable.min(CONNECTION_WINDOW_BYTES.into()) as u32;
        most.saturating_sub(self.window_bytes).min(self.window_bytes)
    }
}

/// What the connections of an endpoint may.
pub(super) struct Allowance {
    first: Grant,
    /// Without one, that is all that they get.
    stock: Option<Stock>,
    /// Those that there were no streams for.
    refused: VecDeque<Link>,
}

impl Allowance {
    /// One of connections that begin with a window and with streams.
    pub(super) fn new(window_bytes: u32, streams: u32, stock: Option<Stock>) -> Self {
        let first = Grant { window_bytes, streams, ..Grant::default() };
        Self { first, stock, refused: VecDeque::new() }
    }

    /// What each connection begins with.
    pub(super) fn first(&self) -> Grant {
        self.first
    }
}

impl MultiplexedEndpoint<'_> {
    /// One whose connections begin with this window, and get more of it and more streams from a stock.
    pub(crate) fn stocked(mut self, window_bytes: u32, stock: Stock) -> Self {
        self.allowance = Allowance::new(window_bytes, self.allowance.first.streams, Some(stock));
        self
    }

    /// Allows a peer more streams, if it has nearly all open that it may have.
    pub(super) fn grow_streams(&mut self, link: Link) {
        let Some(mut grant) = self.slot(link).map(|slot| slot.grant) else { return };
        let open = self.with(link, |connection| connection.peer_streams(Dir::Bi)).unwrap_or(0);
        let more = grant.more_streams(open);
        if more == 0 || self.allowance.stock.is_none() {
            return;
        }
        if self.take(link, u64::from(more) * STREAM_BYTES) {
            grant.streams += more;
            self.with(link, |connection| connection.set_stream_limit(Dir::Bi, grant.streams));
        } else if !grant.is_refused {
            grant.is_refused = true;
            self.allowance.refused.push_back(link);
        }
        self.record_grant(link, grant);
    }

    /// Sees whether there are streams now for the next connections that were refused them: they may have nothing to
    /// say that would ask for them again.
    pub(super) fn look_at_refused(&mut self) {
        for _ in 0..REFUSED_PER_TURN {
            let Some(link) = self.allowance.refused.pop_front() else { return };
            let Some(slot) = self.slot(link) else { continue };
            slot.grant.is_refused = false;
            self.grow_streams(link);
            if self.slot(link).is_some_and(|slot| slot.grant.is_refused) {
                return;
            }
        }
    }

    /// So much more of a connection was read: allows its peer a larger window, if that is half of it.
    pub(super) fn grow_window(&mut self, link: Link, read_bytes: usize) {
        let Some(slot) = self.slot(link) else { return };
        if !slot.grant.record_read(read_bytes) {
            return;
        }
        let mut grant = slot.grant;
        let count = |connection: &mut Connection| {
            [Dir::Bi, Dir::Uni].map(|dir| connection.peer_streams(dir))
        };
        let open = self.with(link, count).map_or(0, |[both_ways, one_way]| both_ways + one_way);
        let more = grant.more_window_bytes(open);
        if more > 0 && self.take(link, kept_bytes(more)) {
            grant.window_bytes += more;
            self.with(link, |connection| connection.set_window(grant.window_bytes));
            self.record_grant(link, grant);
        }
    }

    /// Takes so much of the stock for a connection; whether there was enough.
    fn take(&mut self, link: Link, bytes: u64) -> bool {
        let Some(stock) = self.allowance.stock.clone() else { return false };
        let grow = |connection: &mut Connection| {
            connection.share.get_or_insert_with(|| Share::none_of(stock)).grow(bytes)
        };
        self.with(link, grow).unwrap_or(false)
    }

    fn record_grant(&mut self, link: Link, grant: Grant) {
        if let Some(slot) = self.slot(link) {
            slot.grant = grant;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST_BYTES: u32 = 64 << 10;
    const FIRST: Grant =
        Grant { window_bytes: FIRST_BYTES, streams: 16, read_bytes: 0, is_refused: false };

    /// Reads so much in pieces; the window then, and how often it was looked at.
    fn read(share: &mut Share, grant: &mut Grant, bytes: usize, open: u64) -> (u32, usize) {
        let mut looks = 0;
        for _ in 0..bytes / 1_000 {
            if grant.record_read(1_000) {
                looks += 1;
                let more = grant.more_window_bytes(open);
                grant.window_bytes += if share.grow(kept_bytes(more)) { more } else { 0 };
            }
        }
        (grant.window_bytes, looks)
    }

    /// As many streams as there are for a connection whose peer opens all that it may.
    fn open_all(share: &mut Share, grant: &mut Grant) {
        let mut more = 1;
        while more > 0 {
            more = grant.more_streams(grant.streams.into());
            more = if share.grow(u64::from(more) * STREAM_BYTES) { more } else { 0 };
            grant.streams += more;
        }
    }

    #[test]
    fn a_window_grows_with_what_is_read_as_far_as_streams_can_use_it() {
        let stock = Stock::new(1 << 30);
        let (mut share, mut grant) = (Share::none_of(stock.clone()), FIRST);
        let mut read = |bytes, open| read(&mut share, &mut grant, bytes, open).0;
        assert_eq!(read(32_000, 1), FIRST_BYTES);
        assert_eq!(read(1_000, 1), 2 * FIRST_BYTES);
        assert_eq!(read(20_000_000, 1), STREAM_WINDOW_BYTES);
        assert_eq!(read(200_000_000, 3), 3 * STREAM_WINDOW_BYTES);
        assert_eq!(read(200_000_000, 99), CONNECTION_WINDOW_BYTES);
        assert_eq!(
            stock.left_bytes(),
            (1 << 30) - kept_bytes(CONNECTION_WINDOW_BYTES - FIRST_BYTES)
        );
    }

    #[test]
    fn a_window_that_can_grow_no_more_is_looked_at_once_for_each_half_of_it() {
        let (mut share, mut grant) = (Share::none_of(Stock::new(0)), FIRST);
        let (window_bytes, looks) = read(&mut share, &mut grant, 3_300_000, 9);
        assert_eq!((window_bytes, looks), (FIRST_BYTES, 100));
    }

    #[test]
    fn all_connections_together_get_what_is_in_stock_and_have_it_until_they_are_forgotten() {
        const ALL_BYTES: u64 = 1 << 30;
        let stock = Stock::new(ALL_BYTES);
        let mut all: Vec<_> = (0..100).map(|_| (Share::none_of(stock.clone()), FIRST)).collect();
        for (share, grant) in &mut all {
            read(share, grant, 20_000_000, 9);
            open_all(share, grant);
        }
        let more = |grant: &Grant| {
            kept_bytes(grant.window_bytes - FIRST_BYTES)
                + u64::from(grant.streams - 16) * STREAM_BYTES
        };
        let given: u64 = all.iter().map(|(_, grant)| more(grant)).sum();
        assert_eq!(given + stock.left_bytes(), ALL_BYTES);
        assert!(given > ALL_BYTES / 2, "{given} were given");
        // One that ended first and isn't forgotten keeps nothing that is another's.
        let (first, _) = all.remove(0);
        drop(all);
        assert_eq!(stock.left_bytes(), ALL_BYTES - first.bytes());
        assert!(first.bytes() > 0);
        drop(first);
        assert_eq!(stock.left_bytes(), ALL_BYTES);
    }

    #[test]
    fn a_connection_that_wants_all_leaves_some_for_others() {
        let stock = Stock::new(1 << 30);
        let mut greedy: Vec<_> = (0..3).map(|_| (Share::none_of(stock.clone()), FIRST)).collect();
        for (share, grant) in &mut greedy {
            read(share, grant, 200_000_000, 99);
            open_all(share, grant);
        }
        let (mut share, mut grant) = (Share::none_of(stock), FIRST);
        let (window_bytes, _) = read(&mut share, &mut grant, 20_000_000, 9);
        open_all(&mut share, &mut grant);
        assert!(window_bytes >= 4 * FIRST_BYTES && grant.streams >= 32, "{grant:?}");
    }

    #[test]
    fn streams_are_allowed_by_how_many_are_open_not_by_how_many_there_were() {
        for (open, allowed) in
            [(7, 16), (8, 32), (15, 32), (16, 64), (60, 128), (100, 256), (128, 512)]
        {
            let mut grant = FIRST;
            for count in (1..=open).chain([open; 1_000]) {
                grant.streams += grant.more_streams(count);
            }
            assert_eq!(grant.streams, allowed, "{open} are open");
        }
        let most = Grant { streams: STREAM_LIMIT, ..FIRST };
        assert_eq!(most.more_streams(STREAM_LIMIT.into()), 0);
        let nearly = Grant { streams: STREAM_LIMIT - 1, ..FIRST };
        assert_eq!(nearly.more_streams(STREAM_LIMIT.into()), 1);
    }
}
