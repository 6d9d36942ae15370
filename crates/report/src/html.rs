//! Markup that text of others can't break.

use linerate_wire::visible::{visible, visible_line};

/// A piece of HTML. Markup is constant, and text is escaped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Html {
    text: String,
}

impl Html {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds markup of ours.
    pub fn markup(&mut self, markup: &'static str) -> &mut Self {
        self.text.push_str(markup);
        self
    }

    /// Adds a line of text: as content, or as a value between quotes. What is not visible becomes a point.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.push_escaped(&visible_line(text))
    }

    /// Adds text whose lines and tabs stay.
    pub fn lines(&mut self, text: &str) -> &mut Self {
        self.push_escaped(&visible(text))
    }

    /// Adds a number with at most two decimals; 0 in the place of what is none.
    pub fn number(&mut self, number: f64) -> &mut Self {
        self.push_number(number, 2)
    }

    /// Likewise, with at most so many decimals.
    pub(crate) fn push_number(&mut self, number: f64, decimals: usize) -> &mut Self {
        let number = if number.is_finite() { number } else { 0.0 };
        let text = format!("{number:.decimals$}");
        let short = text.trim_end_matches('0').trim_end_matches('.');
        self.text.push_str(if short == "-0" { "0" } else { short });
        self
    }

    /// Adds a piece behind.
    pub fn html(&mut self, other: &Self) -> &mut Self {
        self.text.push_str(&other.text);
        self
    }

    /// Adds letters of base64, which need no escape.
    pub(crate) fn base64(&mut self, bytes: &[u8]) -> &mut Self {
        use base64::Engine;
        base64::prelude::BASE64_STANDARD.encode_string(bytes, &mut self.text);
        self
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The bytes it has.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// As text.
    pub fn into_string(self) -> String {
        self.text
    }

    fn push_escaped(&mut self, text: &str) -> &mut Self {
        for letter in text.chars() {
            match letter {
                '<' => self.text.push_str("&lt;"),
                '>' => self.text.push_str("&gt;"),
                '&' => self.text.push_str("&amp;"),
                '"' => self.text.push_str("&quot;"),
                '\'' => self.text.push_str("&#39;"),
                letter => self.text.push(letter),
            }
        }
        self
    }
}

/// A table of names and values.
pub(crate) fn facts(rows: &[(String, String)]) -> Html {
    let mut html = Html::new();
    html.markup("<table class=\"facts\">");
    for (name, value) in rows {
        // A name that begins with blanks is a part of the figure above it.
        let part = if name.starts_with(' ') { "<tr class=\"part\"><th>" } else { "<tr><th>" };
        html.markup(part)
            .text(name.trim_start())
            .markup("</th><td>")
            .text(value)
            .markup("</td></tr>\n");
    }
    html.markup("</table>\n");
    html
}

/// A table with a head. The first column has the names of the rows.
pub(crate) fn table(head: &[String], rows: &[Vec<String>]) -> Html {
    let mut html = Html::new();
    html.markup("<div class=\"wide\"><table class=\"grid\"><thead><tr>");
    for cell in head {
        html.markup("<th>").text(cell).markup("</th>");
    }
    html.markup("</tr></thead><tbody>\n");
    for row in rows {
        let is_part = row.first().is_some_and(|name| name.starts_with(' '));
        html.markup(if is_part { "<tr class=\"part\">" } else { "<tr>" });
        for (place, cell) in row.iter().enumerate() {
            let (open, close) = if place == 0 { ("<th>", "</th>") } else { ("<td>", "</td>") };
            html.markup(open).text(cell.trim()).markup(close);
        }
        html.markup("</tr>\n");
    }
    html.markup("</tbody></table></div>\n");
    html
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_short() {
        for (number, text) in [
            (0.0, "0"),
            (-0.001, "0"),
            (100.0, "100"),
            (0.1 + 0.2, "0.3"),
            (-1.255, "-1.25"),
            (f64::NAN, "0"),
            (f64::INFINITY, "0"),
        ] {
            assert_eq!(Html::new().number(number).clone().into_string(), text);
        }
    }

    proptest! {
        #[test]
        fn text_has_no_markup(text in any::<String>()) {
            let line = Html::new().text(&text).clone().into_string();
            let lines = Html::new().lines(&text).clone().into_string();
            for html in [line, lines] {
                let has_mark = html.contains(['<', '>', '"', '\'', '\u{1b}', '\u{202e}']);
                prop_assert!(!has_mark, "{}", html);
                // Each & begins one of ours.
                for (_, behind) in html.match_indices('&').map(|(at, _)| html.split_at(at)) {
                    prop_assert!(["&lt;", "&gt;", "&amp;", "&quot;", "&#39;"].iter().any(|own| behind.starts_with(own)));
                }
            }
        }
    }
}
