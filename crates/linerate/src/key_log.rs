//! Where the secrets of connections go that no option gives a file for.

use std::env;
use std::path::PathBuf;

/// The variable that browsers and other tools read, too.
const VARIABLE: &str = "SSLKEYLOGFILE";

/// The file that the variable names; `None` where it names none.
pub(crate) fn key_log_of_environment() -> Option<PathBuf> {
    env::var_os(VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}
