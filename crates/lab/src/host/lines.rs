//! Bytes as they arrive to lines of limited length.

/// Bytes that have arrived and form no whole line yet.
#[derive(Debug)]
pub(crate) struct Lines {
    bytes: Vec<u8>,
    /// What of `bytes` holds no end of a line.
    searched: usize,
    begin: usize,
    most: usize,
}

/// What was taken of the bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken<'a> {
    /// A line, without its end.
    Line(&'a [u8]),
    /// So much of a line as is too long to be kept.
    TooLong(&'a [u8]),
}

impl Lines {
    /// Lines of at most so many bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), searched: 0, begin: 0, most }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.begin > 0 {
            self.bytes.drain(..self.begin);
            self.searched -= self.begin;
            self.begin = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn take(&mut self) -> Option<Taken<'_>> {
        let begin = self.begin;
        let rest = self.bytes.get(self.searched..).unwrap_or_default();
        match rest.iter().position(|&byte| byte == b'\n') {
            Some(at) if self.searched + at - begin <= self.most => {
                let end = self.searched + at;
                self.begin = end + 1;
                self.searched = end + 1;
                let line = self.bytes.get(begin..end).unwrap_or_default();
                Some(Taken::Line(line.strip_suffix(b"\r").unwrap_or(line)))
            }
            None if self.bytes.len() - begin <= self.most => {
                self.searched = self.bytes.len();
                None
            }
            _ => {
                let end = begin + self.most;
                self.begin = end;
                self.searched = end;
                Some(Taken::TooLong(self.bytes.get(begin..end).unwrap_or_default()))
            }
        }
    }

    /// What is left after the last line, when no more bytes come.
    pub(crate) fn rest(&mut self) -> &[u8] {
        let begin = std::mem::replace(&mut self.begin, self.bytes.len());
        self.searched = self.bytes.len();
        self.bytes.get(begin..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(lines: &mut Lines) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(taken) = lines.take() {
            all.push(match taken {
                Taken::Line(line) => String::from_utf8_lossy(line).into_owned(),
                Taken::TooLong(line) => format!("+{}", String::from_utf8_lossy(line)),
            });
        }
        all
    }

    #[test]
    fn every_cut_gives_the_same_lines() {
        let text = b"one\ntwo\r\n\nfour\nrest";
        for cut in 0..text.len() {
            let mut lines = Lines::new(10);
            lines.push(&text[..cut]);
            let mut all = taken(&mut lines);
            lines.push(&text[cut..]);
            all.extend(taken(&mut lines));
            assert_eq!(all, ["one", "two", "", "four"], "{cut}");
            assert_eq!(lines.rest(), b"rest");
            assert_eq!(lines.rest(), b"");
        }
    }

    #[test]
    fn a_line_that_is_too_long_comes_in_pieces() {
        let mut lines = Lines::new(4);
        lines.push(b"1234\n12345\n123456789");
        assert_eq!(taken(&mut lines), ["1234", "+1234", "5", "+1234", "+5678"]);
        assert_eq!(lines.rest(), b"9");
    }
}
