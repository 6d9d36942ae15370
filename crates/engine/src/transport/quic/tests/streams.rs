//! What ends of streams tell each other: resets, stops, limits, and how much may come.

use super::super::cause::peer_code;
use super::super::connection::StreamAbort;
use super::*;

impl Pair {
    /// Until the near end is told this.
    fn until(&mut self, is_it: impl Fn(&Event) -> bool) {
        let mut came = false;
        self.run(|near, far| {
            while let Some((_, event)) = near.poll_event() {
                came |= is_it(&event);
            }
            while far.poll_event().is_some() {}
            came
        });
    }

    /// The next stream that the near end has opened, at the far end.
    fn accepted(&mut self, far: &SharedConnection) -> StreamId {
        let mut stream = None;
        self.run(|_, _| {
            stream = far.borrow_mut().accept_stream(Dir::Bi);
            stream.is_some()
        });
        stream.unwrap()
    }
}

#[test]
fn a_reset_arrives_with_its_code_and_whatever_was_sent_before_is_gone() {
    for code in [0, 5, (1 << 62) - 1] {
        let (mut pair, near, far) = Pair::established(&Settings::default());
        let id = near.borrow_mut().open_stream(Dir::Bi).unwrap();
        near.borrow_mut().send(id, b"half").unwrap();
        near.borrow_mut().reset(id, code);
        assert_eq!(pair.accepted(&far), id);
        let mut far = far.borrow_mut();
        assert_eq!(far.read(id, 100, &mut |_| {}), StreamRead::Reset(code));
        assert_eq!(far.read(id, 100, &mut |_| {}), StreamRead::Closed);
    }
}

#[test]
fn a_reset_of_a_stream_that_is_read_tells_its_code_as_a_sockets_error_does() {
    let (mut pair, near, far) = Pair::established(&Settings::default());
    let id = near.borrow_mut().open_stream(Dir::Bi).unwrap();
    near.borrow_mut().send(id, b"half").unwrap();
    pair.accepted(&far);
    assert_eq!(far.borrow_mut().read(id, 100, &mut |_| {}), StreamRead::Bytes(4));
    assert_eq!(far.borrow_mut().read(id, 100, &mut |_| {}), StreamRead::Blocked);
    near.borrow_mut().reset(id, 17);
    let mut error = None;
    pair.run(|_, _| {
        let read = far.borrow_mut().receive(id, 100, &mut |_| {});
        error = read.err().filter(|error| error.kind() != std::io::ErrorKind::WouldBlock);
        error.is_some()
    });
    let error = error.unwrap();
    assert_eq!((error.kind(), peer_code(&error)), (std::io::ErrorKind::ConnectionReset, Some(17)));
    assert_eq!(error.to_string(), "QUIC: the peer reset the stream with code 17");
}

#[test]
fn a_stop_arrives_with_its_code_as_an_event_and_at_the_next_send() {
    let (mut pair, near, far) = Pair::established(&Settings::default());
    let id = near.borrow_mut().open_stream(Dir::Bi).unwrap();
    near.borrow_mut().send(id, b"more").unwrap();
    pair.accepted(&far);
    far.borrow_mut().stop_sending(id, 9);
    assert_eq!(far.borrow_mut().read(id, 100, &mut |_| {}), StreamRead::Closed);
    pair.until(|event| *event == Event::Stopped(id, 9));
    let error = near.borrow_mut().send(id, b"and more").unwrap_err();
    assert_eq!(error.get_ref().unwrap().downcast_ref(), Some(&StreamAbort::Stopped(9)));
    assert_eq!(peer_code(&error), Some(9));
}

#[test]
fn the_code_of_a_close_is_known_to_who_reads_and_who_sends() {
    let (mut pair, near, far) = Pair::established(&Settings::default());
    let id = near.borrow_mut().open_stream(Dir::Bi).unwrap();
    near.borrow_mut().send(id, b"half").unwrap();
    pair.accepted(&far);
    far.borrow_mut().close(77, b"");
    pair.until(|event| matches!(event, Event::Closed(_)));
    let mut near = near.borrow_mut();
    let errors = [near.send(id, b"more").err(), near.receive(id, 1, &mut |_| {}).err()];
    assert_eq!(errors.map(|error| peer_code(&error.unwrap())), [Some(77); 2]);
}

#[test]
fn more_streams_are_allowed_when_the_peer_says_so() {
    let (mut pair, near, far) = Pair::established(&Settings { streams: 1, ..Settings::default() });
    let id = near.borrow_mut().open_stream(Dir::Bi).unwrap();
    assert_eq!(near.borrow_mut().open_stream(Dir::Bi), None);
    near.borrow_mut().send(id, b"first").unwrap();
    pair.accepted(&far);
    far.borrow_mut().set_stream_limit(Dir::Bi, 5);
    pair.until(|event| *event == Event::StreamsAvailable(Dir::Bi));
    let opened = std::iter::from_fn(|| near.borrow_mut().open_stream(Dir::Bi)).count();
    assert_eq!(opened, 4);
}

#[test]
fn a_reader_that_pauses_holds_its_sender_and_no_other_stream() {
    const WINDOW_BYTES: usize = 100_000;
    let stream_window_bytes = WINDOW_BYTES as u32;
    let (mut pair, near, far) =
        Pair::established(&Settings { stream_window_bytes, ..Settings::default() });
    let block = vec![7; 4 * WINDOW_BYTES];
    let [paused, read] = [(); 2].map(|()| near.borrow_mut().open_stream(Dir::Bi).unwrap());
    let mut sent = [0; 2];
    let send = |sent: &mut [usize; 2]| {
        for (id, sent) in [paused, read].into_iter().zip(sent) {
            let rest = block.get(*sent..).unwrap_or_default();
            *sent += near.borrow_mut().send(id, rest).unwrap_or(0);
        }
    };
    // The far end reads all of one and nothing of the other.
    let mut received = 0;
    pair.run(|_, _| {
        send(&mut sent);
        while far.borrow_mut().accept_stream(Dir::Bi).is_some() {}
        if let StreamRead::Bytes(bytes) = far.borrow_mut().read(read, usize::MAX, &mut |_| {}) {
            received += bytes;
        }
        received == block.len()
    });
    let end = Instant::now() + Duration::from_millis(300);
    pair.run(|near, _| {
        while near.poll_event().is_some() {}
        Instant::now() > end
    });
    send(&mut sent);
    assert_eq!(sent, [WINDOW_BYTES, block.len()], "no credit is given for what is not read");
    // What is read makes as much room again, and no more.
    assert_eq!(far.borrow_mut().read(paused, 50_000, &mut |_| {}), StreamRead::Bytes(50_000));
    pair.until(|event| *event == Event::Writable(paused));
    send(&mut sent);
    assert_eq!(sent[0], WINDOW_BYTES + 50_000);
}
