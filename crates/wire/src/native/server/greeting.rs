//! Whether a client that greets may go on.

use std::hint::black_box;

use crate::native::VERSIONS;
use crate::native::hex::parse_hex;
use crate::native::message::{ClientHello, RefusalCause};

/// The newest version that both speak, of a client that holds the server's key.
///
/// # Errors
///
/// When it doesn't: the cause, and a sentence for the client's user.
pub(super) fn check_greeting(
    hello: &ClientHello,
    expected_proof: Option<&[u8; 32]>,
) -> Result<u16, (RefusalCause, String)> {
    let both = VERSIONS.into_iter().rev().find(|version| hello.versions.contains(version));
    let Some(version) = both else {
        let theirs: Vec<String> = hello.versions.iter().map(u16::to_string).collect();
        let text = format!(
            "the server speaks the versions {} of the protocol, the client {}: update the older of \
             the two",
            VERSIONS.map(|version| version.to_string()).join(", "),
            theirs.join(", ")
        );
        return Err((RefusalCause::Version, text));
    };
    let refused = |text: &str| Err((RefusalCause::Key, text.to_owned()));
    match (expected_proof, hello.proof.as_deref().map(parse_hex::<32>)) {
        (None, _) => Ok(version),
        (Some(expected), Some(Some(shown))) if same_in_constant_time(&shown, expected) => {
            Ok(version)
        }
        (Some(_), Some(_)) => refused("the client's key is not this server's"),
        (Some(_), None) => {
            refused("this server requires a key, and the client has none: give it with --key FILE")
        }
    }
}

/// Looks at all bytes wherever the first difference is, so that the time it takes tells nothing.
fn same_in_constant_time(a: &[u8; 32], b: &[u8; 32]) -> bool {
    let difference = a.iter().zip(b).fold(0, |difference, (a, b)| black_box(difference | (a ^ b)));
    difference == 0
}
