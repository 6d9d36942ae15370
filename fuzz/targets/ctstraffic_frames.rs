#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fuzz::ctstraffic::ctstraffic_frames(data));
