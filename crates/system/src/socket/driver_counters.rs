//! Counters that a network interface's driver keeps (linux/ethtool.h).

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

const SIOCETHTOOL: libc::Ioctl = 0x8946;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
/// The set of names of statistics.
const ETH_SS_STATS: u32 = 1;
/// The length of a name (ETH_GSTRING_LEN).
const NAME_BYTES: usize = 32;

/// Most counters of an interface that are read. A driver with one queue for each of 256 processors has some 15,000.
const MOST_COUNTERS: usize = 16_384;
/// The kernel writes as many as the driver has, whatever room it was given. The room is four times what is allowed: a
/// driver would have to grow by that factor between two calls.
const ROOM: usize = 4 * MOST_COUNTERS;
/// Numbers of 64 bits before the counters.
const HEADER_WORDS: usize = 1;

/// The counters of one interface's driver.
#[derive(Debug)]
pub struct DriverCounters {
    socket: OwnedFd,
    request: [u8; libc::IFNAMSIZ],
    names: Vec<String>,
    /// The header and the counters, as the kernel writes them.
    buffer: Vec<u64>,
}

impl DriverCounters {
    /// Asks the driver of an interface of this thread's network namespace for the names of its counters.
    ///
    /// # Errors
    ///
    /// What the system said: ENODEV without such an interface, EOPNOTSUPP where its driver counts nothing.
    pub fn open(interface: &str) -> io::Result<Self> {
        let mut request = [0; libc::IFNAMSIZ];
        // One byte stays zero and ends the name.
        if interface.is_empty() || interface.len() >= request.len() {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        request[..interface.len()].copy_from_slice(interface.as_bytes());
        let socket =
            socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        let buffer = vec![0; HEADER_WORDS + ROOM];
        let mut counters = Self { socket, request, names: Vec::new(), buffer };
        counters.read_names()?;
        Ok(counters)
    }

    /// The names of the counters.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Reads all counters with one call. Returns them in the order of the names, and whether the names are others than
    /// before.
    ///
    /// # Errors
    ///
    /// What the system said.
    pub fn read(&mut self) -> io::Result<(&[u64], bool)> {
        let mut count = self.ask_counters()?;
        let changed = count != self.names.len();
        if changed {
            self.read_names()?;
            count = self.ask_counters()?;
        }
        let count = count.min(self.names.len());
        Ok((&self.buffer[HEADER_WORDS..HEADER_WORDS + count], changed))
    }

    /// Has the kernel write the counters into the buffer. Returns how many it wrote.
    fn ask_counters(&mut self) -> io::Result<usize> {
        // struct ethtool_stats: the command and the count, then the counters.
        self.buffer[0] = two_words(ETHTOOL_GSTATS, self.names.len() as u32);
        self.call()?;
        Ok(words_of(self.buffer[0])[1] as usize)
    }

    fn read_names(&mut self) -> io::Result<()> {
        // struct ethtool_sset_info: the command, a word that is reserved, a mask of sets, then the length of each.
        self.buffer[0] = two_words(ETHTOOL_GSSET_INFO, 0);
        self.buffer[1] = 1 << ETH_SS_STATS;
        self.buffer[2] = 0;
        self.call()?;
        let count = words_of(self.buffer[2])[0] as usize;
        if self.buffer[1] == 0 || count == 0 {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        if count > MOST_COUNTERS {
            return Err(io::Error::other(format!(
                "its driver has {count} counters, and at most {MOST_COUNTERS} are read"
            )));
        }
        // struct ethtool_gstrings: the command, the set and the count, then names of 32 bytes.
        self.buffer[0] = two_words(ETHTOOL_GSTRINGS, ETH_SS_STATS);
        self.buffer[1] = two_words(count as u32, 0);
        self.call()?;
        let bytes: Vec<u8> = self
            .buffer
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .take(12 + count * NAME_BYTES)
            .collect();
        let written = (words_of(self.buffer[1])[0] as usize).min(count);
        self.names = bytes[12..].chunks_exact(NAME_BYTES).take(written).map(name_of).collect();
        Ok(())
    }

    /// The one call of ethtool, with the buffer as its argument.
    fn call(&mut self) -> io::Result<()> {
        // SAFETY: a request of all zero bytes is valid: an empty name and a null pointer.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(self.request) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = self.buffer.as_mut_ptr().cast();
        // SAFETY: the pointer is to a request that outlives the call, of the type that SIOCETHTOOL reads; the descriptor
        // is open. What the request points to outlives the call, is aligned for numbers of 64 bits, and has room for
        // four times as many counters, or twice as many names, as a driver may have (see `ROOM`).
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// Two numbers of 32 bits as they stand in memory.
fn two_words(first: u32, second: u32) -> u64 {
    let [a, b, c, d] = first.to_ne_bytes();
    let [e, f, g, h] = second.to_ne_bytes();
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

fn words_of(number: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = number.to_ne_bytes();
    [u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h])]
}

/// A name of 32 bytes, which a zero byte may end.
fn name_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_at_a_zero_byte() {
        let mut bytes = [0_u8; NAME_BYTES];
        bytes[..11].copy_from_slice(b"rx0_packets");
        assert_eq!(name_of(&bytes), "rx0_packets");
        assert_eq!(name_of(&[b'x'; NAME_BYTES]).len(), NAME_BYTES);
    }

    #[test]
    fn interfaces_without_counters_are_told() {
        let no_such = DriverCounters::open("nosuchinterface").unwrap_err();
        assert_eq!(no_such.raw_os_error(), Some(libc::ENODEV));
        assert_eq!(DriverCounters::open("").unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert!(DriverCounters::open("an-interface-with-a-long-name").is_err());
        // The loopback interface has no driver that counts.
        assert_eq!(DriverCounters::open("lo").unwrap_err().raw_os_error(), Some(libc::EOPNOTSUPP));
    }
}
