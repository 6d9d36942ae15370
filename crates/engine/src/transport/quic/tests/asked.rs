//! What an endpoint is asked to do otherwise, it does.

use linerate_measure::{Pacing, QuicVersion};

use super::super::{Acknowledging, ConnectionIds, Mark};
use super::*;

#[test]
fn bytes_arrive_whatever_is_asked_for() {
    let slow = Duration::from_millis(5);
    let acks = Acknowledging { packets: Some(20), delay: Some(slow), reordering: Some(0) };
    let mark = Mark::new(b"mark");
    for settings in [
        Settings { pacing: Pacing::Off, ..Settings::default() },
        Settings { pacing: Pacing::Off, congestion: Congestion::Bbr, ..Settings::default() },
        Settings { pacing: Pacing::Rate { bps: 400_000_000 }, ..Settings::default() },
        Settings { version: QuicVersion::Draft29.into(), acks, ..Settings::default() },
        Settings {
            ids: ConnectionIds { server: Some(7), mark, ..ConnectionIds::default() },
            ..Settings::default()
        },
        Settings {
            ids: ConnectionIds { empty: true, ..ConnectionIds::default() },
            ..Settings::default()
        },
    ] {
        let (pair, near, far) = Pair::established(&settings);
        send_three_megabytes(pair, &near, &far);
        let status = near.borrow().status();
        assert!(status.in_flight_bytes.is_some() && status.cwnd_bytes < 1 << 40, "{status:?}");
        assert!(status.received_datagrams > Some(0), "{status:?}");
        assert!(status.received_acks > Some(0), "{status:?}");
    }
}

#[test]
fn a_rate_is_never_exceeded() {
    let begin = Instant::now();
    let pacing = Pacing::Rate { bps: 40_000_000 };
    let (pair, near, far) = Pair::established(&Settings { pacing, ..Settings::default() });
    send_three_megabytes(pair, &near, &far);
    let elapsed = begin.elapsed();
    // 3 MB at 5 MB/s, less what may be made up for.
    assert!(elapsed > Duration::from_millis(580), "{elapsed:?}");
    assert!(near.borrow().status().lost_packets < 100);
}

#[test]
fn acknowledged_bytes_of_a_stream_are_known_before_its_end() {
    let window = 100_000;
    let settings = Settings { stream_window_bytes: window, ..Settings::default() };
    let (mut pair, near, far) = Pair::established(&settings);
    let block = bytes::Bytes::from(vec![1_u8; 30_000]);
    let id = near.borrow_mut().open_stream(Dir::Bi).unwrap();
    assert_eq!(near.borrow_mut().delivered_bytes(id), None);
    let (mut taken, mut stream, mut read) = (0_u64, None, 0_u64);
    // The far end reads the first 50,000 bytes and no more.
    pair.run(|near_end, far_end| {
        while near_end.poll_event().is_some() {}
        while far_end.poll_event().is_some() {}
        let mut near = near.borrow_mut();
        if let Ok(bytes) = near.send_watched(id, block.clone()) {
            taken += bytes as u64;
        }
        let delivered = near.delivered_bytes(id).unwrap();
        assert!(delivered <= taken);
        let mut far = far.borrow_mut();
        stream = stream.or_else(|| far.accept_stream(Dir::Bi));
        if let Some(id) = stream
            && read < 50_000
            && let StreamRead::Bytes(bytes) = far.read(id, 50_000 - read as usize, &mut |_| {})
        {
            read += bytes as u64;
        }
        // All that there was room for has arrived.
        read == 50_000 && taken > u64::from(window) && delivered == taken
    });
    let mut near = near.borrow_mut();
    near.reset(id, 0);
    assert_eq!(near.delivered_bytes(id), Some(taken));
    near.forget_delivery(id);
    assert_eq!(near.delivered_bytes(id), None);
}

#[test]
fn all_streams_of_a_connection_share_its_window() {
    let settings = Settings { connection_window_bytes: 50_000, ..Settings::default() };
    let (mut pair, near, far) = Pair::established(&settings);
    for taken in [30_000, 20_000] {
        let id = near.borrow_mut().open_stream(Dir::Bi).unwrap();
        assert_eq!(near.borrow_mut().send(id, &[1; 30_000]).unwrap(), taken);
    }
    let end = Instant::now() + Duration::from_millis(200);
    pair.run(|near_end, far_end| {
        while near_end.poll_event().is_some() {}
        while far_end.poll_event().is_some() {}
        Instant::now() > end
    });
    // What has come while nothing was read.
    let mut far = far.borrow_mut();
    let ids = std::iter::from_fn(|| far.accept_stream(Dir::Bi)).collect::<Vec<_>>();
    let read = ids.iter().map(|id| far.receive(*id, 1 << 20, &mut |_| {}).unwrap().0);
    assert_eq!((ids.len(), read.sum::<usize>()), (2, 50_000));
}

#[test]
fn the_version_and_the_mark_stand_in_the_packets() {
    let mark = Mark::new(&[0xc1, 0xb1, 0x12, 0x34]);
    let ids = ConnectionIds { mark, ..ConnectionIds::default() };
    let settings = Settings { version: QuicVersion::Draft29.into(), ids, ..Settings::default() };
    let mut pair = Relayed::new(&settings, (Extras::default(), Extras::default()), false);
    pair.run(|(_, established), _| established);
    let seen = &pair.up.seen;
    assert_eq!(seen[1..6], [0xff, 0, 0, 29, 20]);
    assert_eq!(seen[8..12], [0xc1, 0xb1, 0x12, 0x34]);
}

#[test]
fn a_server_answers_a_close_with_one_of_the_transports() {
    let clear = || Extras { clear_packets: true, ..Extras::default() };
    let mut pair = Relayed::new(&Settings::default(), (clear(), clear()), false);
    let mut turns_after = 0;
    pair.run(|(near, established), far| {
        if established {
            near.borrow_mut().close(0, b"");
        }
        turns_after += u32::from(far.borrow().lost.is_some());
        turns_after > 20
    });
    // No error, of no frame, for no reason (RFC 9000, sections 10.2.2 and 19.19).
    assert!(pair.down.seen.ends_with(&[0x1c, 0, 0, 0]), "{:?}", pair.down.seen.last_chunk::<8>());
}

#[test]
fn ends_with_different_marks_do_not_agree() {
    let marked = |bytes: &[u8]| Settings {
        ids: ConnectionIds { mark: Mark::new(bytes), ..ConnectionIds::default() },
        ..Settings::default()
    };
    for (ours, theirs) in [(marked(b"ab"), marked(b"abc")), (marked(b"ab"), Settings::default())] {
        for (client_says, server_says) in [(&ours, &theirs), (&theirs, &ours)] {
            let (client, _) = sides(client_says);
            let (_, server) = sides(server_says);
            let ((near, _), (far, address)) = (socket(), socket());
            let mut near = Endpoint::over(near, client_says, None).unwrap();
            let far = Endpoint::over(far, server_says, Some(&server)).unwrap();
            let link = near.connect(0, address, "linerate", &client).unwrap();
            let mut pair = Pair { near, far, link };
            let mut closed = false;
            pair.run(|near, far| {
                while let Some((_, event)) = near.poll_event() {
                    closed |= matches!(event, Event::Closed(_));
                }
                while far.poll_event().is_some() {}
                closed
            });
        }
    }
}

#[test]
fn a_log_has_every_packet_and_its_name_when_it_is_whole() {
    let home = std::env::temp_dir().join(format!("linerate-qlog-{}", std::process::id()));
    let settings = Settings::default();
    let (client, server) = sides(&settings);
    let client = client.with_logs(&home).unwrap();
    let ((near, _), (far, address)) = (socket(), socket());
    let mut near = Endpoint::over(near, &settings, None).unwrap();
    let far = Endpoint::over(far, &settings, Some(&server)).unwrap();
    let link = near.connect(0, address, "linerate", &client).unwrap();
    let (pair, near, far) = Pair { near, far, link }.establish();
    let names = || std::fs::read_dir(&home).unwrap().map(|entry| entry.unwrap().path());
    assert!(names().all(|path| path.extension().unwrap() == "part"));
    send_three_megabytes(pair, &near, &far);
    let sent_packets = near.borrow().status().sent_packets;
    near.borrow_mut().close(3, b"done");
    drop(near);
    let paths: Vec<_> = names().collect();
    let [path] = &paths[..] else { panic!("{paths:?}") };
    assert!(path.to_str().unwrap().ends_with("_client.sqlog"), "{path:?}");
    let text = std::fs::read_to_string(path).unwrap();
    std::fs::remove_dir_all(&home).unwrap();
    let mut count = std::collections::BTreeMap::<String, u64>::new();
    let mut stream_bytes = 0;
    for record in text.split('\x1e').skip(1) {
        let record: serde_json::Value = serde_json::from_str(record).unwrap();
        let name = record["name"].as_str().unwrap_or("beginning");
        *count.entry(name.to_owned()).or_default() += 1;
        if name == "transport:packet_sent" {
            let frames = record["data"]["frames"].as_array().unwrap();
            let of_stream = frames.iter().filter(|frame| frame["frame_type"] == "stream");
            stream_bytes += of_stream.map(|frame| frame["length"].as_u64().unwrap()).sum::<u64>();
        }
        assert!(!record.to_string().contains("unknown"), "{record}");
    }
    assert_eq!((count["beginning"], count["connectivity:connection_started"]), (1, 1));
    assert!(count["transport:packet_sent"] >= sent_packets, "{count:?}");
    assert!(count["transport:packet_received"] > 10, "{count:?}");
    assert!(count["recovery:metrics_updated"] > 1, "{count:?}");
    assert!(stream_bytes >= 3_000_000, "{stream_bytes}");
}
