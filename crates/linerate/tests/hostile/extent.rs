//! How much is done: enough for every change, or all that is promised.

/// The environment variable that asks for all.
const VARIABLE: &str = "LINERATE_HOSTILE";

/// Whether all is asked for.
pub(crate) fn is_long() -> bool {
    match std::env::var(VARIABLE) {
        Ok(word) if word == "long" => true,
        Ok(word) => panic!("{VARIABLE}={word}: the only word is `long`"),
        Err(_) => false,
    }
}

/// One of two, by what is asked for.
pub(crate) fn extent<T>(short: T, long: T) -> T {
    if is_long() { long } else { short }
}
