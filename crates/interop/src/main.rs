//! The program `linerate`, for the tests of this package.

use std::process::ExitCode;

fn main() -> ExitCode {
    linerate::main_with(std::env::args_os())
}
