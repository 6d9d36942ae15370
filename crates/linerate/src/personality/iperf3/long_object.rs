//! JSON of which there may be too much to have it all at once.

use super::json::{Fields, Json, end_object, write_fields, write_name};
use super::relayed::Relayed;

/// How an object is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// On one line, without blanks.
    Line,
    /// With tabs, as `-J` prints it.
    Pretty,
}

/// An object between whose fields stands an array that is written value by value, and perhaps a document of the other
/// end's: as trees, all of its values would take far more memory than as text.
#[derive(Default)]
pub(super) struct LongObject<'a> {
    pub(super) before: Fields,
    pub(super) name: &'static str,
    pub(super) after: Fields,
    /// A document's name and text, which stands there where it is one.
    pub(super) relayed: Option<(&'static str, &'a str)>,
    pub(super) last: Fields,
}

impl LongObject<'_> {
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
        let mut behind = "]".to_owned();
        write_fields(&mut behind, &self.after.0, true, depth);
        let relayed = self.relayed.and_then(|(name, text)| {
            let relayed = Relayed::new(text, layout, 1)?;
            write_name(&mut behind, true, name, depth);
            Some(relayed)
        });
        let mut tail = String::new();
        write_fields(&mut tail, &self.last.0, true, depth);
        end_object(&mut tail, depth);
        let values = values.enumerate().map(move |(place, value)| {
            let comma = if depth.is_some() { ", " } else { "," };
            let mut text = if place > 0 { comma.to_owned() } else { String::new() };
            value.write(&mut text, depth.map(|depth| depth + 2));
            text
        });
        let document = relayed.into_iter().flatten();
        let ends = [behind, tail].map(std::iter::once);
        let [behind, tail] = ends;
        std::iter::once(head).chain(values).chain(behind).chain(document).chain(tail)
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
                let long = LongObject { before, name: "values", after, ..LongObject::default() };
                long.pieces(values.clone().into_iter(), layout).collect()
            };
            assert_eq!(text(Layout::Line), whole.render_line());
            assert_eq!(text(Layout::Pretty), whole.render_pretty());
        }
    }
}
