//! What all pages have: head, style, script, and the document that they show.

use crate::embedded::embed;
use crate::html::Html;

const STYLE: &str = include_str!("style.css");

/// The script of all pages. The text can be read without it.
pub const SCRIPT: &str = include_str!("script.js");

/// The document that a page shows.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The name that a browser stores it under.
    pub name: &'a str,
    /// Its text. The page gives it back byte for byte.
    pub text: &'a str,
}

/// A page without its frame.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The title, also the first heading.
    pub title: String,
    /// What follows the heading.
    pub body: Html,
    /// Of a page that is served and follows a store: where changes are told, and the version that it shows.
    pub live: Option<(String, String)>,
}

impl Page {
    /// The whole page as one file. `links` stand above the heading: their text, and where they lead.
    pub fn render(&self, source: Option<Source<'_>>, links: &[(&'static str, String)]) -> String {
        let mut html = Html::new();
        html.markup("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n")
            .markup("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
            .markup("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ")
            .markup("style-src 'unsafe-inline'; script-src 'unsafe-inline'; ")
            // A page that is served asks its server whether there is something new.
            .markup(if links.is_empty() { "" } else { "connect-src 'self'; " })
            .markup("base-uri 'none'; form-action 'none'\">\n")
            .markup("<meta name=\"generator\" content=\"linerate\">\n<title>")
            .text(&self.title)
            .markup("</title>\n<style>\n")
            .markup(STYLE)
            .markup("</style>\n</head>\n<body>\n<header>\n");
        html.markup("<nav><span>linerate</span>");
        for (text, target) in links {
            html.markup("<a href=\"").text(target).markup("\">").markup(text).markup("</a>");
        }
        html.markup("<span id=\"tools\" hidden>")
            .markup("<button id=\"units\" type=\"button\" aria-pressed=\"false\">bytes</button>");
        if let Some(source) = source {
            html.markup("<button id=\"save\" type=\"button\" data-name=\"")
                .text(source.name)
                .markup("\">save the JSON</button>");
        }
        html.markup("</span></nav>\n<h1>").text(&self.title).markup("</h1>\n</header>\n");
        if let Some((events, version)) = &self.live {
            html.markup("<div data-live=\"")
                .text(events)
                .markup("\" data-version=\"")
                .text(version);
            html.markup("\"></div>\n");
        }
        html.markup("<main>\n").html(&self.body).markup("</main>\n");
        if let Some(source) = source {
            html.html(&embed(source.text));
        }
        html.markup("<script>\n").markup(SCRIPT).markup("</script>\n</body>\n</html>\n");
        html.into_string()
    }
}
