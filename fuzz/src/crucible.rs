//! Crucible's files. Each function takes any bytes and panics only when a reader is wrong.

use linerate_personality::crucible::fault::Kind;
use linerate_personality::crucible::iperf;
use linerate_personality::crucible::multiplex::{MOST_SETTINGS, multiplex};
use linerate_personality::crucible::mv_params::{parse_mv_params, read_bench_params};
use linerate_personality::crucible::parameter::{EngineRole, render_iterations};
use linerate_personality::crucible::quirk::Reading;
use linerate_personality::crucible::requirements::{Requirements, parse_requirements};
use linerate_personality::crucible::run_file::{Matrix, parse_run_file};

/// A matrix, and behind a line of three dashes its requirements: iterations are within the limit, and what is printed
/// reads back.
pub fn crucible_matrix(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (matrix, requirements) = text.split_once("\n---\n").unwrap_or((text, ""));
    let matrix = match parse_mv_params(matrix) {
        Ok(matrix) => matrix,
        Err(fault) => {
            assert!(matches!(fault.kind, Kind::Input | Kind::Unreadable));
            return assert!(!fault.text.is_empty());
        }
    };
    let requirements = match requirements {
        "" => Requirements::default(),
        text => match parse_requirements(text) {
            Ok(requirements) => requirements,
            Err(fault) => return assert!(!fault.text.is_empty()),
        },
    };
    for reading in [Reading::Strict, Reading::Compat] {
        match multiplex(&matrix, &requirements, reading) {
            Ok(iterations) => {
                let settings: usize = iterations.iter().map(Vec::len).sum();
                assert!(settings <= MOST_SETTINGS);
                let text = render_iterations(&iterations);
                let value: serde_json::Value = serde_json::from_str(&text).unwrap();
                assert_eq!(value.as_array().map(Vec::len), Some(iterations.len()));
                if let Ok(again) = read_bench_params(&value) {
                    // A value may be empty only where a transformation made it so.
                    assert_eq!(again, iterations);
                }
            }
            Err(fault) => assert!(!fault.text.is_empty()),
        }
    }
}

/// A run file: what it has is placed, and its iterations are command lines or are told why not.
pub fn crucible_run_file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for reading in [Reading::Strict, Reading::Compat] {
        let file = match parse_run_file(text, reading) {
            Ok(file) => file,
            Err(why) => {
                assert!(!why.is_empty());
                continue;
            }
        };
        assert!(!file.benchmarks.is_empty() && !file.endpoints.is_empty());
        assert!(file.params.samples >= 1 && file.params.max_failures >= 1);
        let requirements = iperf::requirements(reading).unwrap();
        for benchmark in &file.benchmarks {
            let iterations = match &benchmark.matrix {
                Matrix::Iterations(iterations) => iterations.clone(),
                Matrix::Values(matrix) => match multiplex(matrix, &requirements, reading) {
                    Ok(iterations) => iterations,
                    Err(fault) => return assert!(!fault.text.is_empty()),
                },
            };
            for iteration in iterations.iter().take(16) {
                match iperf::read_options(iteration, EngineRole::Client, 1, reading) {
                    Ok(options) => {
                        assert!(options.client_words(1).len() >= 6);
                        let _ = options.expected_s();
                    }
                    Err(why) => assert!(!why.is_empty()),
                }
            }
        }
    }
}
