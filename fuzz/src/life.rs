//! The life of a connection. The function takes any bytes and panics only when the machine is wrong.

use linerate_measure::step::{Close, Course, ID_BYTES, Life, LifePace, LifeStep, Move, Size, Text};

/// More than all bytes of a life, one by one, each with a wait.
const MOST_MOVES: u32 = 2_000_000;

/// Bytes of a seed, one after the other; zeros behind its end.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u64 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        u64::from(*first)
    }

    fn next_16(&mut self) -> u64 {
        self.next() << 8 | self.next()
    }

    fn size(&mut self) -> Size {
        let (low_bytes, more) = (self.next_16(), self.next());
        match more {
            0 => Size::Fixed(low_bytes),
            more => Size::Range { low_bytes, high_bytes: low_bytes + more },
        }
    }

    fn step(&mut self) -> LifeStep {
        match self.next() % 7 {
            0 => LifeStep::Send { bytes: self.size() },
            1 => LifeStep::Receive { bytes: self.size() },
            2 => LifeStep::Duplex { bytes: self.size() },
            3 => LifeStep::Alternate {
                bytes: self.size(),
                send_bytes: self.next() as u32,
                receive_bytes: self.next() as u32,
                sends_first: self.next().is_multiple_of(2),
            },
            4 => LifeStep::SendText { text: self.text() },
            5 => LifeStep::ReceiveText { text: self.text() },
            _ => LifeStep::Hold { time_ns: self.next() },
        }
    }

    fn text(&mut self) -> Text {
        if self.next().is_multiple_of(2) { Text::Id } else { Text::Fixed { bytes: "DONE" } }
    }

    fn life(&mut self) -> Life {
        let steps = (0..self.next() % 8).map(|_| self.step()).collect();
        let close = [Close::Graceful, Close::Reset, Close::Drawn][(self.next() % 3) as usize];
        let mut life = Life::new(steps, close);
        life.unit_bytes = (self.next().is_multiple_of(2)).then(|| self.size());
        life.pace = match self.next() % 3 {
            0 => None,
            1 => {
                Some(LifePace::Rate { bytes_per_s: self.size(), slice_ns: self.next() * 1_000_000 })
            }
            _ => Some(LifePace::Bursts { sends: self.next(), delay_ns: self.next() }),
        };
        life
    }
}

/// A life of any steps, and how much of each move is done: it ends, moves what its steps say, and waits only for a time
/// that comes.
pub fn connection_life(data: &[u8]) {
    let mut bytes = Bytes(data);
    let life = bytes.life();
    let mut course = Course::new(&life, bytes.next() as u32, bytes.next());
    let mut now_ns = 1;
    let mut received_id = None;
    for moves in 0.. {
        assert!(moves < MOST_MOVES, "a life without an end: {life:?}");
        let (sent, received) = course.moved();
        match course.poll_move(&life, now_ns) {
            Move::Over => break,
            Move::Hold(until_ns) => {
                assert!(until_ns > now_ns);
                now_ns = until_ns;
            }
            Move::SendText => {
                let left = course.text_to_send(&life).len();
                assert!((1..=ID_BYTES).contains(&left));
                course.record_text_sent(&life, part(&mut bytes, left as u64) as usize);
            }
            Move::ReceiveText(most) => {
                assert!((1..=ID_BYTES).contains(&most));
                let count = part(&mut bytes, most as u64) as usize;
                let came: Vec<u8> = (0..count).map(|_| bytes.next() as u8).collect();
                if course.record_text_received(&life, &came).is_err() {
                    return;
                }
                received_id = Some(*course.id());
            }
            Move::Transfer { send_bytes: 0, receive_bytes: 0, resumes_ns } => {
                let resumes_ns = resumes_ns.expect("a transfer of nothing that waits for nothing");
                assert!(resumes_ns > now_ns);
                now_ns = resumes_ns;
            }
            Move::Transfer { send_bytes, receive_bytes, .. } => {
                if send_bytes > 0 {
                    course.record_sent(&life, part(&mut bytes, send_bytes));
                } else {
                    course.record_received(&life, part(&mut bytes, receive_bytes));
                }
            }
        }
        let moved = course.moved();
        assert!(moved.0 >= sent && moved.1 >= received);
    }
    assert!(course.is_over(&life) && course.has_transferred(&life) && course.has_sent_all(&life));
    assert!(received_id.is_none() || received_id == Some(*course.id()) || sends_id(&life));
    check_moved(&life, course.moved());
}

/// So much of a move is done: one byte at least.
fn part(bytes: &mut Bytes<'_>, most: u64) -> u64 {
    match bytes.next() {
        0 => most,
        few => few.min(most),
    }
}

fn sends_id(life: &Life) -> bool {
    life.steps.iter().any(|step| matches!(step, LifeStep::SendText { .. }))
}

/// Both ways together have what steps of fixed sizes add up to.
fn check_moved(life: &Life, (sent, received): (u64, u64)) {
    let (mut least, mut most) = (0, 0);
    for step in &life.steps {
        let size = match step {
            LifeStep::Send { bytes } | LifeStep::Receive { bytes } => *bytes,
            LifeStep::Duplex { bytes } => {
                let (low, high) = bytes.bounds();
                (least, most) = (least + low.div_ceil(2) * 2, most + high.div_ceil(2) * 2);
                continue;
            }
            // Turns without bytes transfer nothing.
            LifeStep::Alternate { send_bytes: 0, receive_bytes: 0, .. } => continue,
            LifeStep::Alternate { bytes, .. } => *bytes,
            _ => continue,
        };
        let (low, high) = size.bounds();
        (least, most) = (least + low, most + high);
    }
    assert!((least..=most).contains(&(sent + received)), "{sent} and {received}: {life:?}");
}
