//! How a server is printed.

/// The usual way to write a host with its port: brackets around an IPv6 address.
pub fn render_host_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_address_is_rendered_in_brackets() {
        assert_eq!(render_host_port("::1", 5250), "[::1]:5250");
        assert_eq!(render_host_port("a", 1), "a:1");
    }
}
