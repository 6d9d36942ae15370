//! The program `linerate`: everything is in the library of the same name.

use std::process::ExitCode;

fn main() -> ExitCode {
    linerate::main_with(std::env::args_os())
}
