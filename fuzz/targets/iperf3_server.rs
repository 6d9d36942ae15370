#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fuzz::iperf3::iperf3_server(data));
