//! JSON of which there may be too much to have it all at once.

use super::json::{Fields, Json, end_object, write_fields, write_name};

/// How an object is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// On one line, without blanks.
    Line,
    /// With tabs, as `-J` prints it.
    Pretty,
}

/// An object between whose fields stands an array that is written value by value: as trees, all of its values would
/// take far more memory than as text.
pub(super) struct LongObject {
    pub(super) before: Fields,
    pub(super) name: &'static str,
    pub(super) after: Fields,
}

impl LongObject {
    /// The text, in pieces.
    pub(super) fn pieces(
        self,
        values: impl Iterator<Item = Json>,
        layout: Layout,
    ) -> impl Iterator<Item = String> {
        let depth = (layout == Layout::Pretty).then_some(0);
        let mut head = "{".to_owned();
        write_fields(&mut head, &self.before.0, false, depth);
        write_name(&mut head, !self.before.0.is_empty(), self.name, depth);
        head.push('[');
        let mut tail = "]".to_owned();
        write_fields(&mut tail, &self.after.0, true, depth);
        end_object(&mut tail, depth);
        let values = values.enumerate().map(move |(place, value)| {
            let comma = if depth.is_some() { ", " } else { "," };
            let mut text = if place > 0 { comma.to_owned() } else { String::new() };
            value.write(&mut text, depth.map(|depth| depth + 2));
            text
        });
        std::iter::once(head).chain(values).chain(std::iter::once(tail))
    }
}

#[test]
fn an_object_in_pieces_is_the_object() {
    let one = |number: u64| Json::from(Fields::new().with("number", number));
    for count in 0..3 {
        let values: Vec<Json> = (0..count).map(one).collect();
        for before in [Fields::new(), Fields::new().with("start", one(5))] {
            let after = Fields::new().with("end", Vec::new());
            let whole = before.clone().with("values", values.clone()).and(after.clone());
            let whole = Json::from(whole);
            let text = |layout| -> String {
                let (before, after) = (before.clone(), after.clone());
                let long = LongObject { before, name: "values", after };
                long.pieces(values.clone().into_iter(), layout).collect()
            };
            assert_eq!(text(Layout::Line), whole.render_line());
            assert_eq!(text(Layout::Pretty), whole.render_pretty());
        }
    }
}
