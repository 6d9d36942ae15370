//! What doesn't differ between what two runs print.

use linerate::personality::iperf3::json::Json;

/// Every field of a document with the kind of its value, once, where it first stands.
pub(crate) fn fields_in_order(value: &Json, path: &str, found: &mut Vec<String>) {
    let kind = match value {
        Json::Object(inner) => {
            return inner.iter().for_each(|(name, value)| {
                fields_in_order(value, &format!("{path}.{name}"), found)
            });
        }
        Json::Array(inner) => {
            return inner
                .iter()
                .for_each(|value| fields_in_order(value, &format!("{path}[]"), found));
        }
        Json::Whole(_) | Json::Number(_) => "number",
        Json::Bool(_) => "bool",
        Json::Text(_) => "text",
        Json::Null => "null",
    };
    let field = format!("{path} {kind}");
    if !found.contains(&field) {
        found.push(field);
    }
}

/// A line of text without figures, units' sizes and moments.
pub(crate) fn line_shape(line: &str) -> String {
    for varying in ["iperf 3.", "Time: ", "Linux ", "      Cookie: ", "stamp"] {
        if let Some(rest) = line.strip_prefix(varying) {
            // Only a stamp has something behind its figure.
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            return if varying == "stamp" { line_shape(rest) } else { varying.to_owned() };
        }
    }
    let word = |word: &str| -> String {
        let unit = ["Bytes", "Bytes/sec", "bits/sec"].into_iter().find(|unit| {
            let size = word.strip_suffix(unit);
            size.is_some_and(|size| size.len() <= 1)
        });
        let mut figures = false;
        let kept = unit.unwrap_or(word).chars().filter_map(|c| {
            let figure = c.is_ascii_digit() || matches!(c, '.' | '-' | ':' | ',');
            let first = figure && !figures;
            figures = figure;
            if figure { first.then_some('#') } else { Some(c) }
        });
        kept.collect()
    };
    // A receiving original prints one head or the other, as its threads come.
    let line = line.replace("Retr  Cwnd", "");
    line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}
