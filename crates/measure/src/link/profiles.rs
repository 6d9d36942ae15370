//! Links that have a name.
//!
//! The first five are shapes of access networks, round figures that a test can be repeated with;
//! they are no measurement of any operator's network. Those that begin with `interop` have the
//! values that quic-interop-runner gives its simulator (github.com/quic-interop/quic-interop-runner,
//! testcases; github.com/quic-interop/quic-network-simulator, sim/scenarios).

use super::{Link, LinkError};

/// A link with a name.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// What it is asked for by.
    pub name: &'static str,
    /// What it is like, in a line.
    pub meaning: &'static str,
    /// Its description.
    pub text: &'static str,
}

/// All links that have a name.
pub const PROFILES: [Profile; 12] = [
    Profile {
        name: "geo",
        meaning: "geostationary satellite: 580 ms round trip, 20 Mbit/s",
        text: "
            [both]
            delay = '290ms'
            rate = '20Mbit/s'
            queue = '1MB'
        ",
    },
    Profile {
        name: "leo",
        meaning: "low-orbit satellites: 50 ms round trip with jitter, 100 Mbit/s down, 15 up, bursts of loss",
        text: "
            [to_right]
            delay = '25ms'
            jitter = '5ms'
            distribution = 'normal'
            burst_loss = { enter = '0.05%', leave = '20%' }
            rate = '15Mbit/s'
            queue = '200kB'
            [to_left]
            delay = '25ms'
            jitter = '5ms'
            distribution = 'normal'
            burst_loss = { enter = '0.05%', leave = '20%' }
            rate = '100Mbit/s'
            queue = '1MB'
        ",
    },
    Profile {
        name: "lte",
        meaning: "mobile: 50 ms round trip with jitter, 40 Mbit/s down, 10 up, a deep queue",
        text: "
            [to_right]
            delay = '25ms'
            jitter = '8ms'
            distribution = 'normal'
            rate = '10Mbit/s'
            queue = '750kB'
            [to_left]
            delay = '25ms'
            jitter = '4ms'
            distribution = 'normal'
            rate = '40Mbit/s'
            queue = '3MB'
        ",
    },
    Profile {
        name: "wifi",
        meaning: "wireless LAN: 4 ms round trip, now and then much more, 80 Mbit/s, short bursts of loss",
        text: "
            [both]
            delay = '2ms'
            jitter = '2ms'
            distribution = 'pareto'
            burst_loss = { enter = '0.1%', leave = '50%' }
            rate = '80Mbit/s'
            queue = '500kB'
        ",
    },
    Profile {
        name: "dsl",
        meaning: "wired access: 24 ms round trip, 50 Mbit/s down, 10 up",
        text: "
            [to_right]
            delay = '12ms'
            rate = '10Mbit/s'
            queue = '150kB'
            [to_left]
            delay = '12ms'
            rate = '50Mbit/s'
            queue = '600kB'
        ",
    },
    Profile {
        name: "interop",
        meaning: "quic-interop-runner's simple-p2p: 30 ms round trip, 10 Mbit/s, 25 packets",
        text: "
            [both]
            delay = '15ms'
            rate = '10Mbit/s'
            queue = '25 packets'
        ",
    },
    Profile {
        name: "interop-longrtt",
        meaning: "its longrtt: 1.5 s round trip",
        text: "
            [both]
            delay = '750ms'
            rate = '10Mbit/s'
            queue = '25 packets'
        ",
    },
    Profile {
        name: "interop-transferloss",
        meaning: "its drop-rate of 2 %, at most 3 in a row",
        text: "
            [both]
            delay = '15ms'
            rate = '10Mbit/s'
            queue = '25 packets'
            loss = '2%'
            losses_in_a_row_max = 3
        ",
    },
    Profile {
        name: "interop-handshakeloss",
        meaning: "its drop-rate of 30 %, at most 3 in a row",
        text: "
            [both]
            delay = '15ms'
            rate = '10Mbit/s'
            queue = '25 packets'
            loss = '30%'
            losses_in_a_row_max = 3
        ",
    },
    Profile {
        name: "interop-transfercorruption",
        meaning: "its corrupt-rate of 2 % (one bit here, one byte there)",
        text: "
            [both]
            delay = '15ms'
            rate = '10Mbit/s'
            queue = '25 packets'
            corrupt = { packets = '2%', repair_checksums = true }
        ",
    },
    Profile {
        name: "interop-handshakecorruption",
        meaning: "its corrupt-rate of 30 % (one bit here, one byte there)",
        text: "
            [both]
            delay = '15ms'
            rate = '10Mbit/s'
            queue = '25 packets'
            corrupt = { packets = '30%', repair_checksums = true }
        ",
    },
    Profile {
        name: "interop-blackhole",
        meaning: "its blackhole: nothing gets through from the 5th to the 7th second",
        text: "
            [both]
            delay = '15ms'
            rate = '10Mbit/s'
            queue = '25 packets'
            [[change]]
            at = '5s'
            both = { loss = '100%' }
            [[change]]
            at = '7s'
            both = { loss = '0%' }
        ",
    },
];

/// The link of this name.
///
/// # Errors
///
/// [`LinkError`] lists the names there are.
pub fn profile(name: &str) -> Result<Link, LinkError> {
    let Some(found) = PROFILES.iter().find(|profile| profile.name == name) else {
        let names: Vec<&str> = PROFILES.iter().map(|profile| profile.name).collect();
        let asked = crate::units::quoted(name);
        return Err(LinkError(format!("there is no profile {asked}: {}", names.join(", "))));
    };
    let mut link = Link::parse(found.text, |_| Err("a profile has no files".to_owned()))?;
    link.name = Some(found.name.to_owned());
    Ok(link)
}
