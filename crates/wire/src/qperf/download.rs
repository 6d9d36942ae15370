//! A client's view of its stream: when the connection stood, when the first byte came, when it is over.

/// One download. Times are nanoseconds on any monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Download {
    began_ns: u64,
    /// How long it lasts from the first byte on; `None`: it is over with the first byte.
    runtime_ns: Option<u64>,
    is_established: bool,
    first_ns: Option<u64>,
    received_bytes: u64,
}

impl Download {
    /// The client begins to connect.
    pub fn new(began_ns: u64, runtime_ns: Option<u64>) -> Self {
        Self { began_ns, runtime_ns, is_established: false, first_ns: None, received_bytes: 0 }
    }

    /// The connection stands; how long that took. `None`: it stood before.
    pub fn handle_established(&mut self, now_ns: u64) -> Option<u64> {
        let is_news = !std::mem::replace(&mut self.is_established, true);
        is_news.then(|| now_ns.saturating_sub(self.began_ns))
    }

    /// Bytes have come; how long the first took from the beginning. `None`: there were others before, or there
    /// are none.
    pub fn handle_received(&mut self, bytes: u64, now_ns: u64) -> Option<u64> {
        self.received_bytes = self.received_bytes.saturating_add(bytes);
        if bytes == 0 || self.first_ns.is_some() {
            return None;
        }
        self.first_ns = Some(now_ns);
        Some(now_ns.saturating_sub(self.began_ns))
    }

    /// All bytes that have come.
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    /// When the first byte came.
    pub fn first_ns(&self) -> Option<u64> {
        self.first_ns
    }

    /// How long the first byte took from the beginning.
    pub fn first_byte_ns(&self) -> Option<u64> {
        Some(self.first_ns?.saturating_sub(self.began_ns))
    }

    /// When it is over, once that is known.
    pub fn ends_ns(&self) -> Option<u64> {
        let first_ns = self.first_ns?;
        Some(self.runtime_ns.map_or(first_ns, |runtime_ns| first_ns.saturating_add(runtime_ns)))
    }

    /// Whether it is over.
    pub fn is_over(&self, now_ns: u64) -> bool {
        self.ends_ns().is_some_and(|ends_ns| now_ns >= ends_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_time_counts_from_the_first_byte() {
        let mut download = Download::new(1_000, Some(500));
        assert_eq!((download.ends_ns(), download.is_over(u64::MAX)), (None, false));
        assert_eq!(download.handle_established(1_011), Some(11));
        assert_eq!(download.handle_established(1_012), None);
        assert_eq!(download.handle_received(0, 1_012), None);
        assert_eq!(download.handle_received(7, 1_013), Some(13));
        assert_eq!(download.handle_received(5, 1_014), None);
        assert_eq!((download.received_bytes(), download.first_ns()), (12, Some(1_013)));
        assert_eq!(download.first_byte_ns(), Some(13));
        assert_eq!((download.is_over(1_512), download.is_over(1_513)), (false, true));
    }

    #[test]
    fn without_a_run_time_the_first_byte_is_the_end() {
        let mut download = Download::new(0, None);
        download.handle_received(1, 3);
        assert_eq!(download.ends_ns(), Some(3));
        assert!(download.is_over(3));
    }
}
