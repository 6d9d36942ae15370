//! Requests of HTTP/1, as far as pages that are only read need them (RFC 9112).

/// The longest request, in bytes.
const LONGEST_REQUEST: usize = 8 * 1024;

/// A request to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// Whether the head of the answer is enough.
    pub(crate) head_only: bool,
    /// What is asked for, without its query: `/metrics`.
    pub(crate) path: String,
    /// The query, or empty.
    pub(crate) query: String,
    /// Whom the client takes the server for: a name or an address, with a port where it isn't 80.
    pub(crate) host: String,
}

/// Why a request has no answer of the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Something else than to read.
    Method,
    /// No request of HTTP/1.
    Nonsense,
    /// More than a request may have.
    TooLong,
}

/// What a client has sent so far.
#[derive(Debug, Default)]
pub(super) struct Reading {
    bytes: Vec<u8>,
}

impl Reading {
    /// Takes what came. Returns what is wanted, once the head of the request is whole.
    pub(super) fn handle_bytes(&mut self, bytes: &[u8]) -> Option<Result<Request, Refusal>> {
        let room = LONGEST_REQUEST - self.bytes.len();
        self.bytes.extend(bytes.iter().take(room));
        let ends = |end: &[u8]| self.bytes.windows(end.len()).any(|window| window == end);
        if ends(b"\r\n\r\n") || ends(b"\n\n") {
            return Some(read_request(&String::from_utf8_lossy(&self.bytes)));
        }
        (bytes.len() >= room).then_some(Err(Refusal::TooLong))
    }
}

fn read_request(text: &str) -> Result<Request, Refusal> {
    let mut lines = text.lines();
    let mut words = lines.next().unwrap_or_default().trim().split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Refusal::Nonsense);
    };
    if !version.starts_with("HTTP/1.") || !target.starts_with('/') {
        return Err(Refusal::Nonsense);
    }
    let head_only = match method {
        "GET" => false,
        "HEAD" => true,
        _ => return Err(Refusal::Method),
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let field = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim().to_owned())
    };
    let host = lines.take_while(|line| !line.is_empty()).find_map(field).unwrap_or_default();
    Ok(Request { head_only, path: path.to_owned(), query: query.to_owned(), host })
}

/// An answer, after which the connection is closed. To a request for its head it has no body.
pub(crate) fn render_answer(
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
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

/// The content type of sentences.
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";

/// The answer to what is no request to read.
pub(super) fn render_refusal(refusal: Refusal) -> Vec<u8> {
    let (status, text) = match refusal {
        Refusal::Method => ("405 Method Not Allowed", "this page can only be read\n"),
        Refusal::Nonsense => ("400 Bad Request", "this is no request of HTTP/1\n"),
        Refusal::TooLong => ("431 Request Header Fields Too Large", "the request is too long\n"),
    };
    render_answer(status, TEXT, text, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Result<Request, Refusal>> {
        Reading::default().handle_bytes(text.as_bytes())
    }

    #[test]
    fn requests_say_what_is_wanted() {
        let wanted = |head_only, path: &str, query: &str| {
            let (path, query, host) = (path.to_owned(), query.to_owned(), "x:1".to_owned());
            Ok(Request { head_only, path, query, host })
        };
        for (line, expected) in [
            ("GET /metrics HTTP/1.1", wanted(false, "/metrics", "")),
            ("GET /metrics?name=x?y HTTP/1.0", wanted(false, "/metrics", "name=x?y")),
            ("HEAD / HTTP/1.1", wanted(true, "/", "")),
            ("GET /metrics/../etc HTTP/1.1", wanted(false, "/metrics/../etc", "")),
            ("POST /metrics HTTP/1.1", Err(Refusal::Method)),
            ("GET /metrics HTTP/2", Err(Refusal::Nonsense)),
            ("GET http://x/metrics HTTP/1.1", Err(Refusal::Nonsense)),
            ("GET  /metrics HTTP/1.1", Err(Refusal::Nonsense)),
            ("\0\u{1}\u{2}", Err(Refusal::Nonsense)),
            ("", Err(Refusal::Nonsense)),
        ] {
            let text = format!("{line}\r\nAccept: host: y\r\nhOsT:  x:1 \r\n\r\n");
            assert_eq!(read(&text), Some(expected), "{line}");
        }
        assert!(read("GET /metrics HTTP/1.1\n\n").unwrap().unwrap().host.is_empty());
        assert_eq!(read("GET /metrics HTTP/1.1\r\nHost: x\r\n"), None);
    }

    #[test]
    fn a_request_may_come_byte_by_byte_and_has_an_end() {
        let mut request = Reading::default();
        let text = b"GET /metrics HTTP/1.1\r\n\r\n";
        let answers: Vec<_> = text.iter().map(|byte| request.handle_bytes(&[*byte])).collect();
        assert_eq!(answers.iter().flatten().count(), 1);
        assert!(answers.last().unwrap().is_some());
        let mut endless = Reading::default();
        let many = std::iter::repeat_with(|| endless.handle_bytes(&[b'x'; 100]));
        assert_eq!(many.take(1000).flatten().next(), Some(Err(Refusal::TooLong)));
    }

    #[test]
    fn answers_have_the_length_of_what_follows() {
        let answer =
            String::from_utf8(render_answer("200 OK", "text/plain", "body", false)).unwrap();
        assert!(answer.contains("Content-Length: 4\r\n") && answer.ends_with("\r\n\r\nbody"));
        let head = String::from_utf8(render_answer("200 OK", "text/plain", "body", true)).unwrap();
        assert!(head.contains("Content-Length: 4\r\n") && head.ends_with("\r\n\r\n"));
        let refused = String::from_utf8(render_refusal(Refusal::Method)).unwrap();
        assert!(refused.starts_with("HTTP/1.1 405 ") && refused.contains("Allow: GET, HEAD"));
    }
}
