//! How long packets get over sockets that know their route, and over those that don't.

use super::*;

/// Two sockets of loopback, connected to each other or not, and the second one's address.
fn sockets(address: &str, connected: bool) -> (Arc<Socket>, Arc<Socket>, SocketAddr) {
    let address: SocketAddr = address.parse().unwrap();
    let bound = || {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None).unwrap();
        socket.bind(&address.into()).unwrap();
        let bound = socket.local_addr().unwrap();
        (socket, bound)
    };
    let ((near, near_address), (far, far_address)) = (bound(), bound());
    if connected {
        near.connect(&far_address).unwrap();
        far.connect(&near_address).unwrap();
    }
    (Arc::new(near), Arc::new(far), far_address.as_socket().unwrap())
}

fn established(
    address: &str,
    connected: bool,
    settings: &Settings,
) -> (Pair, SharedConnection, SharedConnection) {
    let (client, server) = sides(settings);
    let (near, far, address) = sockets(address, connected);
    let mut near = Endpoint::over(near, settings, None).unwrap();
    let far = Endpoint::over(far, settings, Some(&server)).unwrap();
    let link = near.connect(0, address, "linerate", &client).unwrap();
    Pair { near, far, link }.establish()
}

fn found(one: &SharedConnection) -> u32 {
    one.borrow().status().mtu_bytes
}

#[test]
fn a_connected_socket_finds_what_a_jumbo_frame_carries() {
    let jumbo = Settings { jumbo: true, ..Settings::default() };
    for (address, most) in [("127.0.0.1:0", 8_972), ("[::1]:0", 8_952)] {
        let (mut pair, near, far) = established(address, true, &jumbo);
        pair.run(|_, _| found(&near) == most && found(&far) == most);
        assert_eq!(near.borrow().status().lost_packets, 0);
    }
}

#[test]
fn a_server_that_hears_all_addresses_finds_it_too() {
    let jumbo = Settings { jumbo: true, ..Settings::default() };
    let (client, server) = sides(&jumbo);
    let (near, far, address) = sockets("127.0.0.1:0", false);
    near.connect(&address.into()).unwrap();
    let mut near = Endpoint::over(near, &jumbo, None).unwrap();
    let far = Endpoint::over(far, &jumbo, Some(&server)).unwrap();
    let link = near.connect(0, address, "linerate", &client).unwrap();
    let (mut pair, near, far) = Pair { near, far, link }.establish();
    pair.run(|_, _| found(&near) == 8_972 && found(&far) == 8_972);
}

#[test]
fn packets_fit_an_ethernet_frame_without_a_known_route() {
    let jumbo = Settings { jumbo: true, ..Settings::default() };
    // A server asks for its peer's route; a client has its socket's.
    for (settings, connected, most) in
        [(&jumbo, false, [1_472, 8_972]), (&Settings::default(), true, [1_472; 2])]
    {
        let (mut pair, near, far) = established("127.0.0.1:0", connected, settings);
        pair.run(|_, _| [found(&near), found(&far)] == most);
        send_three_megabytes(pair, &near, &far);
        assert_eq!([found(&near), found(&far)], most);
    }
}

#[test]
fn a_length_that_was_asked_for_is_the_one_that_is_found() {
    for (mtu_bytes, mtu_most_bytes) in
        [(None, Some(2_000)), (None, Some(65_507)), (Some(65_507), None)]
    {
        let settings = Settings {
            jumbo: true,
            mtu_bytes,
            mtu_most_bytes,
            initial_window_bytes: Some(200_000),
            ..Settings::default()
        };
        let most = mtu_bytes.or(mtu_most_bytes).map(u32::from).unwrap();
        let (mut pair, near, far) = established("127.0.0.1:0", true, &settings);
        pair.run(|_, _| found(&near) == most && found(&far) == most);
    }
}
