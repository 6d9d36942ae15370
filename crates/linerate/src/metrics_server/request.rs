//! Requests of HTTP/1, as far as one page needs them (RFC 9112).

/// The longest request, in bytes.
const LONGEST_REQUEST: usize = 8 * 1024;

/// What a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The page.
    Page,
    /// The page's head alone.
    Head,
    /// A page that isn't there.
    Unknown,
    /// Something else than to read.
    Method,
    /// No request of HTTP/1.
    Nonsense,
    /// More than a request may have.
    TooLong,
}

/// What a client has sent so far.
#[derive(Debug, Default)]
pub(super) struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// Takes what came. Returns what is wanted, once the head of the request is whole.
    pub(super) fn handle_bytes(&mut self, bytes: &[u8]) -> Option<Wanted> {
        let room = LONGEST_REQUEST - self.bytes.len();
        self.bytes.extend(bytes.iter().take(room));
        let ends = |end: &[u8]| self.bytes.windows(end.len()).any(|window| window == end);
        if ends(b"\r\n\r\n") || ends(b"\n\n") {
            return Some(self.wanted());
        }
        (bytes.len() >= room).then_some(Wanted::TooLong)
    }

    fn wanted(&self) -> Wanted {
        let line = self.bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let mut words = line.trim_ascii().split(|byte| *byte == b' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Wanted::Nonsense;
        };
        if !version.starts_with(b"HTTP/1.") || !target.starts_with(b"/") {
            return Wanted::Nonsense;
        }
        let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
        match (method, path) {
            (b"GET", b"/metrics") => Wanted::Page,
            (b"HEAD", b"/metrics") => Wanted::Head,
            (b"GET" | b"HEAD", _) => Wanted::Unknown,
            _ => Wanted::Method,
        }
    }
}

/// An answer, after which the connection is closed.
pub(super) fn render_answer(
    status: &str,
    content_type: &str,
    body: &str,
    head_only: bool,
) -> Vec<u8> {
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    let length = body.len();
    let body = if head_only { "" } else { body };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n{allow}\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(text: &str) -> Option<Wanted> {
        Request::default().handle_bytes(text.as_bytes())
    }

    #[test]
    fn requests_say_what_is_wanted() {
        for (line, expected) in [
            ("GET /metrics HTTP/1.1", Wanted::Page),
            ("GET /metrics?name=x HTTP/1.0", Wanted::Page),
            ("HEAD /metrics HTTP/1.1", Wanted::Head),
            ("GET / HTTP/1.1", Wanted::Unknown),
            ("GET /metrics/../etc HTTP/1.1", Wanted::Unknown),
            ("POST /metrics HTTP/1.1", Wanted::Method),
            ("GET /metrics HTTP/2", Wanted::Nonsense),
            ("GET http://x/metrics HTTP/1.1", Wanted::Nonsense),
            ("GET  /metrics HTTP/1.1", Wanted::Nonsense),
            ("\0\u{1}\u{2}", Wanted::Nonsense),
            ("", Wanted::Nonsense),
        ] {
            assert_eq!(wanted(&format!("{line}\r\nHost: x\r\n\r\n")), Some(expected), "{line}");
        }
        assert_eq!(wanted("GET /metrics HTTP/1.1\n\n"), Some(Wanted::Page));
        assert_eq!(wanted("GET /metrics HTTP/1.1\r\nHost: x\r\n"), None);
    }

    #[test]
    fn a_request_may_come_byte_by_byte_and_has_an_end() {
        let mut request = Request::default();
        let text = b"GET /metrics HTTP/1.1\r\n\r\n";
        let answers: Vec<_> = text.iter().map(|byte| request.handle_bytes(&[*byte])).collect();
        assert_eq!(answers.iter().flatten().collect::<Vec<_>>(), [&Wanted::Page]);
        let mut endless = Request::default();
        let many = std::iter::repeat_with(|| endless.handle_bytes(&[b'x'; 100]));
        assert_eq!(many.take(1000).flatten().next(), Some(Wanted::TooLong));
    }

    #[test]
    fn answers_have_the_length_of_what_follows() {
        let answer =
            String::from_utf8(render_answer("200 OK", "text/plain", "body", false)).unwrap();
        assert!(answer.contains("Content-Length: 4\r\n") && answer.ends_with("\r\n\r\nbody"));
        let head = String::from_utf8(render_answer("200 OK", "text/plain", "body", true)).unwrap();
        assert!(head.contains("Content-Length: 4\r\n") && head.ends_with("\r\n\r\n"));
        let refused = render_answer("405 Method Not Allowed", "text/plain", "", false);
        assert!(String::from_utf8(refused).unwrap().contains("Allow: GET, HEAD"));
    }
}
