//! Values that many options take alike.

use super::fixture::request;

#[test]
fn minus_1_is_the_default_of_the_original() {
    for line in [
        "-b -1 -w -1 -n -1 -k -1 -K -1 -o -1 -O -1 -T -1,-1 -y -1 -Y -1",
        "-b 5 -w 5 -n 5 -k 5 -K 5 -o 5 -O 5 -T 0,0 -y 5 -Y 5 \
         -b -1,-1 -w -1,-1 -n -1 -k -1 -K -1 -o -1 -O -1 -T -1 -y -1 -Y -1",
        "-- -s -1 -S -1 -m -1,-1 -M -1,-1 -r -1 -b -1 -G -1 -l -1 -q -1 -R -1 -e -1 -p -1 -j -1 -w -1",
        "-- -s 5 -S 5 -m 5,5 -M 5,5 -r 5 -b 5 -G 5 -l 5 -q 5 -R 0 -e 5 -p 5,6 \
         -s -1 -S -1 -m -1,-1 -M -1,-1 -r -1 -b -1 -G -1 -l -1 -q -1 -R -1 -e -1 -p -1",
    ] {
        for test in ["-t UDP_RR ", "-t TCP_STREAM ", "-t TCP_CRR "] {
            assert_eq!(request(&(test.to_owned() + line)).plan, request(test).plan, "{test}{line}");
        }
    }
    let asked = request("-t TCP_CRR -T -1,2 -- -s -1,7 -S 8,-1 -p -1,7000 -r 5,-1");
    let (local, remote) = (&asked.plan.local, &asked.plan.remote);
    assert_eq!((local.bind_cpu, asked.server_cpu), (None, Some(2)));
    assert_eq!((local.send_buffer_bytes, local.receive_buffer_bytes), (None, Some(7)));
    assert_eq!((remote.send_buffer_bytes, remote.receive_buffer_bytes), (Some(8), None));
    assert_eq!(asked.plan.source_ports, Some((5000, 7000)));
    assert_eq!((asked.plan.request_bytes, asked.plan.response_bytes), (5, 1));
}

#[test]
fn sizes_may_be_told_in_bytes() {
    let asked = request("-- -G 1460b -m 8192b,64KB -s 1MB");
    assert_eq!(asked.plan.options.mss_bytes, Some(1460));
    let (local, remote) = (&asked.plan.local, &asked.plan.remote);
    assert_eq!((local.send_bytes, remote.send_bytes), (Some(8192), Some(65_536)));
    assert_eq!(local.send_buffer_bytes, Some(1 << 20));
}
