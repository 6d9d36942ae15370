#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| linerate_fuzz::command_line::qperf_options(data));
