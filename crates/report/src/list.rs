//! The page of a store: its runs.

use crate::html::Html;
use crate::matrix::Mark;
use crate::page::Page;

/// A run of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedRun {
    /// What is shown of its name.
    pub name: String,
    /// Where its page is.
    pub link: String,
    /// When it began.
    pub began: String,
    /// What began it.
    pub command: String,
    /// Its title, or empty.
    pub title: String,
    /// Its cells: how many are done, of how many.
    pub cells: String,
    /// How it stands, and in a word.
    pub mark: Mark,
    /// Likewise in words.
    pub status: String,
    /// Where two runs can be compared: the run before it in the list that has the same command.
    pub compare: Option<String>,
}

/// A page of runs, the newest first.
pub fn render_list(title: &str, runs: &[ListedRun]) -> Page {
    let mut body = Html::new();
    if runs.is_empty() {
        body.markup(
            "<p>There is no run yet. <code>linerate stream HOST --store</code> keeps one.</p>\n",
        );
        return Page { title: title.to_owned(), body, live: None };
    }
    body.markup("<div class=\"wide\"><table class=\"grid\"><thead><tr><th>run</th><th>began (UTC)</th>")
        .markup("<th>cells</th><th>status</th><th>command</th><th>title</th><th></th></tr></thead><tbody>\n");
    for run in runs {
        body.markup("<tr><th><a href=\"").text(&run.link).markup("\">").text(&run.name);
        body.markup("</a></th><td>").text(&run.began).markup("</td><td>").text(&run.cells);
        body.markup("</td><td><span class=\"tint ").markup(run.mark.class()).markup("\"></span>");
        body.text(&run.status).markup("</td><td>").text(&run.command).markup("</td><td>");
        body.text(&run.title).markup("</td><td>");
        if let Some(link) = &run.compare {
            body.markup("<a href=\"").text(link).markup("\">compare with the one before</a>");
        }
        body.markup("</td></tr>\n");
    }
    body.markup("</tbody></table></div>\n");
    Page { title: title.to_owned(), body, live: None }
}
