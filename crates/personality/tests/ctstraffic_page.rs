//! The page of ctsTraffic has every option, with the text of its help.

#![allow(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use linerate_personality::ctstraffic::flags::{OWN_TABLE, TABLE};

#[test]
fn every_option_has_its_row() {
    let path = format!("{}/../../docs/compat/ctstraffic.md", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(path).unwrap();
    let escape = |text: &str| text.replace('|', "\\|");
    for flag in TABLE {
        let row =
            format!("| `-{}` | `{}` | {} |\n", flag.name, escape(flag.value), escape(flag.help));
        assert!(page.contains(&row), "{row}");
    }
    for flag in OWN_TABLE {
        let value = if flag.value.is_empty() { "" } else { &format!("`{}`", flag.value) };
        let row = format!("| `{}` | {value} | {} |\n", flag.name, escape(flag.help));
        assert!(page.contains(&row), "{row}");
    }
}
