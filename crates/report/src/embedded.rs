//! The document that a page shows, in the page itself.

use std::io::{Read, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::html::Html;

/// The longest document that a page gives back, in bytes.
pub const LONGEST_DOCUMENT: u64 = 1 << 30;

/// What stands before the letters. Text of others is escaped, so the first place is the page's own.
const OPEN: &str = "<script type=\"application/gzip\" id=\"document\">";
const CLOSE: &str = "</script>";

/// Why a page has no document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExtractError {
    /// The text is no page, or one without a document.
    #[error("has no document: it is no page of `linerate report`, or one of a store")]
    Absent,
    /// What stands there is broken.
    #[error("has a document that is cut off or damaged")]
    Damaged,
    /// It is longer than [`LONGEST_DOCUMENT`].
    #[error("has a document of more than {LONGEST_DOCUMENT} bytes")]
    TooLong,
}

/// The element that holds a document: gzip (RFC 1952) in base64 (RFC 4648).
pub(crate) fn embed(document: &str) -> Html {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory doesn't fail; a document that is cut off would be found by its checksum.
    let _infallible = encoder.write_all(document.as_bytes());
    let bytes = encoder.finish().unwrap_or_default();
    let mut html = Html::new();
    html.markup(OPEN).base64(&bytes).markup(CLOSE).markup("\n");
    html
}

/// The document of a page, byte for byte.
///
/// # Errors
/// Where the page has none, or a broken one.
pub fn extract(page: &str) -> Result<String, ExtractError> {
    let (_, behind) = page.split_once(OPEN).ok_or(ExtractError::Absent)?;
    let (letters, _) = behind.split_once(CLOSE).ok_or(ExtractError::Damaged)?;
    let bytes = BASE64_STANDARD.decode(letters.trim()).map_err(|_| ExtractError::Damaged)?;
    let mut document = Vec::new();
    let mut decoder = GzDecoder::new(bytes.as_slice()).take(LONGEST_DOCUMENT + 1);
    decoder.read_to_end(&mut document).map_err(|_| ExtractError::Damaged)?;
    if document.len() as u64 > LONGEST_DOCUMENT {
        return Err(ExtractError::TooLong);
    }
    String::from_utf8(document).map_err(|_| ExtractError::Damaged)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_page_is_told() {
        let page = embed("{}").into_string();
        assert_eq!(extract(&page).unwrap(), "{}");
        assert_eq!(extract(""), Err(ExtractError::Absent));
        assert_eq!(extract("{\"schema\":\"linerate.run/1\"}"), Err(ExtractError::Absent));
        assert_eq!(extract(OPEN), Err(ExtractError::Damaged));
        assert_eq!(extract(&page.replace("H4s", "!!!")), Err(ExtractError::Damaged));
        let (half, _) = page.split_at(OPEN.len() + 24);
        assert_eq!(extract(&format!("{half}{CLOSE}")), Err(ExtractError::Damaged));
    }

    proptest! {
        #[test]
        fn a_document_comes_back_byte_for_byte(document in any::<String>()) {
            prop_assert_eq!(extract(&embed(&document).into_string()).unwrap(), document);
        }

        #[test]
        fn no_text_is_a_panic(text in any::<String>(), letters in "[A-Za-z0-9+/=]{0,80}") {
            let _any = extract(&text);
            let _any = extract(&format!("{OPEN}{letters}{CLOSE}"));
        }
    }
}
