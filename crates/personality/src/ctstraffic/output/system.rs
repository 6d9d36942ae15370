//! Errors of the system by the numbers that the original has for them.

/// What the original says of an error with this number of errno(3): its number (winsock2.h), and the words for it.
/// An error that it has no number for keeps the system's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemError {
    /// The original's number.
    pub code: i32,
    /// The system's words.
    pub words: String,
}

impl SystemError {
    /// The error with this number of errno(3).
    pub fn of(number: i32) -> Self {
        // What is said of a send that comes after the reset.
        let number = if matches!(number, EPIPE | ENOTCONN) { ECONNRESET } else { number };
        let row = CODES.iter().find(|(own, _)| *own == number);
        Self { code: row.map_or(number, |(_, code)| *code), words: words(number) }
    }
}

const EPIPE: i32 = 32;
const ENOTCONN: i32 = 107;
const ECONNRESET: i32 = 104;

/// Numbers of errno(3) on Linux, and the original's.
const CODES: &[(i32, i32)] = &[
    // EPERM, EACCES: WSAEACCES.
    (1, 10013),
    (13, 10013),
    // EINVAL: WSAEINVAL.
    (22, 10022),
    // ENFILE, EMFILE: WSAEMFILE.
    (23, 10024),
    (24, 10024),
    // EMSGSIZE: WSAEMSGSIZE.
    (90, 10040),
    // EAFNOSUPPORT: WSAEAFNOSUPPORT.
    (97, 10047),
    // EADDRINUSE: WSAEADDRINUSE.
    (98, 10048),
    // EADDRNOTAVAIL: WSAEADDRNOTAVAIL.
    (99, 10049),
    // ENETDOWN: WSAENETDOWN.
    (100, 10050),
    // ENETUNREACH: WSAENETUNREACH.
    (101, 10051),
    // ECONNABORTED: WSAECONNABORTED.
    (103, 10053),
    // ECONNRESET: WSAECONNRESET.
    (ECONNRESET, 10054),
    // ENOBUFS, ENOMEM: WSAENOBUFS.
    (105, 10055),
    (12, 10055),
    // ETIMEDOUT: WSAETIMEDOUT.
    (110, 10060),
    // ECONNREFUSED: WSAECONNREFUSED.
    (111, 10061),
    // EHOSTDOWN: WSAEHOSTDOWN.
    (112, 10064),
    // EHOSTUNREACH: WSAEHOSTUNREACH.
    (113, 10065),
];

/// What the system says: `Connection refused`.
fn words(number: i32) -> String {
    let text = std::io::Error::from_raw_os_error(number).to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_originals_numbers() {
        let of = |number| SystemError::of(number);
        assert_eq!(of(111), SystemError { code: 10061, words: "Connection refused".to_owned() });
        for number in [EPIPE, ENOTCONN, ECONNRESET] {
            assert_eq!((of(number).code, &*of(number).words), (10054, "Connection reset by peer"));
        }
        assert_eq!(of(5).code, 5);
    }
}
