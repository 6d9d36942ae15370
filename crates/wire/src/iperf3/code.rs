//! Why a test failed, as a number that both ends know.

/// Why a test failed: iperf3's `i_errno`. The numbers are on the wire, the texts in scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code(pub i32);

macro_rules! codes {
    ($($name:ident = $number:literal, $system:literal, $text:literal;)*) => {
        #[allow(missing_docs, reason = "each has its text beside it")]
        impl Code {
            $(pub const $name: Code = Code($number);)*

            /// Number, text, and whether what the system said belongs behind it.
            const TABLE: &'static [(i32, &'static str, bool)] = &[$(($number, $text, $system),)*];
        }
    };
}

codes! {
    SERVER_CLIENT = 1, false, "cannot be both server and client";
    NO_ROLE = 2, false, "must either be a client (-c) or server (-s)";
    SERVER_ONLY = 3, false, "some option you are trying to set is server only";
    CLIENT_ONLY = 4, false, "some option you are trying to set is client only";
    DURATION = 5, false, "test duration valid values are 0 to 86400 seconds";
    NUM_STREAMS = 6, false, "invalid number of parallel streams (min = 1, max = 1048576)";
    BLOCK_SIZE = 7, false, "block size too large (maximum = 1048576 bytes)";
    BUFFER_SIZE = 8, false, "socket buffer size too large (maximum = 536870912 bytes)";
    INTERVAL = 9, false, "invalid report interval (min = 0.1, max = 60 seconds)";
    MSS = 10, false, "TCP MSS too large (maximum = 32767 bytes)";
    NO_SENDFILE = 11, false, "this OS does not support sendfile";
    OMIT = 12, false, "bogus value for --omit (maximum = 600 seconds)";
    UNIMPLEMENTED = 13, false, "an option you are trying to set is not implemented yet";
    FILE = 14, true, "unable to open -F file";
    BURST = 15, false, "invalid burst count (maximum = 1000)";
    END_CONDITIONS = 16, false, "only one test end condition (-t, -n, -k) may be specified";
    LOG_FILE = 17, true, "unable to open log file";
    NO_SCTP = 18, false, "no SCTP support available";
    BIND = 19, false, "--bind must be specified to use --cport";
    UDP_BLOCK_SIZE = 20, false, "block size invalid (minimum = 16 bytes, maximum = 65507 bytes)";
    BAD_TOS = 21, false, "bad TOS value (must be between 0 and 255 inclusive)";
    CLIENT_AUTH = 22, false, "you must specify a username, password, and path to a valid RSA public key";
    SERVER_AUTH = 23, false, "you must specify a path to a valid RSA private key and a user credential file";
    BAD_FORMAT = 24, false, "bad format specifier (valid formats are in the set [kmgtKMGT])";
    REVERSE_BIDIRECTIONAL = 25, false, "cannot be both reverse and bidirectional";
    BAD_PORT = 26, false, "port number must be between 1 and 65535 inclusive";
    TOTAL_RATE = 27, false, "total required bandwidth is larger than server limit";
    RATE_INTERVAL = 28, false, "invalid time interval for calculating average data rate";
    SKEW = 29, false, "skew threshold must be a positive number";
    IDLE_TIMEOUT = 30, false, "idle timeout parameter is not positive or larger than allowed limit";
    RECEIVE_TIMEOUT = 31, true, "receive timeout value is incorrect or not in range";
    REVERSE_RECEIVE_TIMEOUT = 32, true, "client receive timeout is valid only in receiving mode";
    SEND_TIMEOUT = 33, true, "send timeout value is incorrect or not in range";
    UDP_FILE = 34, false, "cannot transfer file using UDP";
    USERS_FILE = 35, false, "cannot access authorized users file";
    KEEPALIVE = 36, true, "control connection Keepalive period should be larger than the full retry period (interval * count)";
    MAX_DURATION = 37, false, "client's requested duration exceeds the server's maximum permitted limit";
    UNIT = 38, false, "invalid unit value or suffix";
    SKIP_RX_COPY = 39, false, "this OS does not support --skip-rx-copy";
    DSCP = 40, false, "bad DSCP value (numeric: 0-63 inclusive, symbolic: one of [af11-13, af21-23, af31-33, af41-43, cs1-7, ef, va, lowdelay, throughput, reliability])";
    NEW_TEST = 100, true, "unable to create a new test";
    INIT_TEST = 101, true, "test initialization failed";
    LISTEN = 102, true, "unable to start listener for connections";
    CONNECT = 103, true, "unable to connect to server - server may have stopped running or use a different port, firewall issue, etc.";
    ACCEPT = 104, true, "unable to accept connection from client";
    SEND_COOKIE = 105, true, "unable to send cookie to server";
    RECEIVE_COOKIE = 106, true, "unable to receive cookie at server";
    CONTROL_WRITE = 107, true, "unable to write to the control socket";
    CONTROL_READ = 108, true, "unable to read from the control socket";
    CONTROL_CLOSED = 109, false, "control socket has closed unexpectedly";
    MESSAGE = 110, false, "received an unknown control message (ensure other side is iperf3 and not iperf)";
    SEND_MESSAGE = 111, true, "unable to send control message - port may not be available, the other side may have stopped running, etc.";
    RECEIVE_MESSAGE = 112, true, "unable to receive control message - port may not be available, the other side may have stopped running, etc.";
    SEND_PARAMETERS = 113, true, "unable to send parameters to server";
    RECEIVE_PARAMETERS = 114, true, "unable to receive parameters from client";
    PACKAGE_RESULTS = 115, true, "unable to package results";
    SEND_RESULTS = 116, true, "unable to send results";
    RECEIVE_RESULTS = 117, true, "unable to receive results";
    SELECT = 118, true, "select failed";
    CLIENT_TERMINATED = 119, false, "the client has terminated";
    SERVER_TERMINATED = 120, false, "the server has terminated";
    ACCESS_DENIED = 121, false, "the server is busy running a test. try again later";
    SET_NO_DELAY = 122, true, "unable to set TCP/SCTP NODELAY";
    SET_MSS = 123, true, "unable to set TCP/SCTP MSS";
    SET_BUFFER = 124, true, "unable to set socket buffer size";
    TOS = 125, true, "unable to set IP TOS";
    TRAFFIC_CLASS = 126, true, "unable to set IPv6 traffic class";
    SET_FLOW_LABEL = 127, false, "unable to set IPv6 flow label";
    REUSE_ADDRESS = 128, true, "unable to reuse address on socket";
    NON_BLOCKING = 129, true, "unable to set socket to non-blocking";
    WINDOW_SIZE = 130, true, "unable to set socket window size";
    PROTOCOL = 131, false, "protocol does not exist";
    AFFINITY = 132, true, "unable to set CPU affinity";
    DAEMON = 133, true, "unable to become a daemon";
    CONGESTION = 134, false, "unable to set TCP_CONGESTION: Supplied congestion control algorithm not supported on this host";
    PID_FILE = 135, true, "unable to write PID file";
    V6_ONLY = 136, true, "Unable to set/reset IPV6_V6ONLY";
    SCTP_FRAGMENTS = 137, true, "unable to set SCTP_DISABLE_FRAGMENTS";
    SCTP_STREAMS = 138, true, "unable to set SCTP_INIT num of SCTP streams";
    SCTP_BINDX = 139, true, "unable to process sctp_bindx() parameters";
    PACING = 140, true, "unable to set socket pacing";
    BUFFER_MISMATCH = 141, false, "socket buffer size not set correctly";
    AUTHORIZATION = 142, false, "test authorization failed";
    BIND_DEVICE = 143, false, "Unable to bind-to-device (check perror, maybe permissions?)";
    NO_MESSAGE = 144, false, "idle timeout for receiving data";
    DONT_FRAGMENT = 145, false, "unable to set IP Do-Not-Fragment flag";
    BIND_DEVICE_NO_SUPPORT = 146, false, "`<ip>%<dev>` is not supported as system does not support bind to device";
    HOST_DEVICE = 147, false, "host device name (ip%<dev>) is supported (and required) only for IPv6 link-local address";
    USER_TIMEOUT = 148, true, "unable to set TCP USER_TIMEOUT";
    THREAD_CREATE = 150, true, "unable to create thread";
    THREAD_CANCEL = 151, true, "unable to cancel thread";
    THREAD_JOIN = 152, true, "unable to join thread";
    THREAD_ATTRIBUTE_INIT = 153, true, "unable to create thread attributes";
    THREAD_ATTRIBUTE_DESTROY = 154, false, "unable to destroy thread attributes";
    SET_KEEPALIVE = 155, true, "unable to set socket keepalive (SO_KEEPALIVE) option";
    SET_KEEPALIVE_IDLE = 156, true, "unable to set socket keepalive TCP period (TCP_KEEPIDLE) option";
    SET_KEEPALIVE_INTERVAL = 157, true, "unable to set/get socket keepalive TCP retry interval (TCP_KEEPINTVL) option";
    SET_KEEPALIVE_COUNT = 158, true, "unable to set/get socket keepalive TCP number of retries (TCP_KEEPCNT) option";
    THREAD_SIGNAL_MASK = 159, false, "unable to change mask of blocked signals";
    DURATION_EXPIRED = 160, true, "server test duration expired";
    CREATE_STREAM = 200, true, "unable to create a new stream";
    INIT_STREAM = 201, true, "unable to initialize stream";
    STREAM_LISTEN = 202, true, "unable to start stream listener";
    STREAM_CONNECT = 203, true, "unable to connect stream";
    STREAM_ACCEPT = 204, true, "unable to accept stream connection";
    STREAM_WRITE = 205, true, "unable to write to stream socket";
    STREAM_READ = 206, true, "unable to read from stream socket";
    STREAM_CLOSED = 207, false, "stream socket has closed unexpectedly";
    STREAM_ID = 208, false, "stream has an invalid id";
    NEW_TIMER = 300, true, "unable to create new timer";
    UPDATE_TIMER = 301, true, "unable to update timer";
}

impl Code {
    /// The number on the wire.
    pub fn number(self) -> i32 {
        self.0
    }

    /// The original's text for it, without what the system said.
    pub fn text(self) -> &'static str {
        self.entry().map_or("an error that this release has no text for", |entry| entry.1)
    }

    /// Whether what the system said belongs behind the text.
    pub fn tells_system_error(self) -> bool {
        self.entry().is_some_and(|entry| entry.2)
    }

    fn entry(self) -> Option<&'static (i32, &'static str, bool)> {
        Self::TABLE.iter().find(|entry| entry.0 == self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_one_text() {
        for (number, text, _) in Code::TABLE {
            assert_eq!(Code(*number).text(), *text);
            assert!(Code::TABLE.iter().filter(|entry| entry.0 == *number).count() == 1, "{number}");
        }
        assert_eq!(Code::ACCESS_DENIED.number(), 121);
        assert!(!Code(9999).text().is_empty());
    }
}
