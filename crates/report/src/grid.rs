//! The values of a point between hosts: a host by host table with both directions in one cell.

use std::collections::BTreeMap;

use linerate_measure::comparison::median;

use crate::html::Html;
use crate::matrix::{MatrixPage, MatrixRow, heat_of};

/// A table has at most so many hosts.
const MOST_HOSTS: usize = 32;
/// The tables of a page have at most so many values together. Each stands in two cells.
const MOST_VALUES: usize = 2_000;

/// What a pair of hosts came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PairValue {
    /// The pair's number, from 1.
    pub number: u32,
    /// The client's host.
    pub client: String,
    /// The server's host.
    pub server: String,
    /// The mean of its samples.
    pub value: Option<f64>,
}

/// The pairs between two hosts in one direction.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    number: u32,
    sum: f64,
    count: u32,
}

impl Link {
    fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }
}

/// The values of a point by the places of hosts.
struct Grid<'a> {
    hosts: Vec<&'a str>,
    links: BTreeMap<(usize, usize), Link>,
}

impl<'a> Grid<'a> {
    /// That of a point; `None` where its pairs don't differ in their hosts.
    fn of(row: &'a MatrixRow) -> Option<Self> {
        let mut hosts: Vec<&str> = Vec::new();
        let mut links: BTreeMap<(usize, usize), Link> = BTreeMap::new();
        for pair in &row.pairs {
            let mut place = |host: &'a str| {
                hosts.iter().position(|known| *known == host).unwrap_or_else(|| {
                    hosts.push(host);
                    hosts.len() - 1
                })
            };
            let between = (place(&pair.client), place(&pair.server));
            let link =
                links.entry(between).or_insert(Link { number: pair.number, ..Link::default() });
            if let Some(value) = pair.value.filter(|value| value.is_finite()) {
                link.sum += value;
                link.count += 1;
            }
        }
        let is_across = links.keys().any(|(client, server)| client != server);
        (is_across && links.len() > 1).then_some(Self { hosts, links })
    }

    fn median(&self) -> Option<f64> {
        median(&self.links.values().filter_map(Link::mean).collect::<Vec<_>>())
    }
}

/// The tables of all points whose pairs differ in their hosts; empty: there is none. `numbers` are those of the rows.
pub(crate) fn render_grids<'a>(
    matrix: &MatrixPage,
    rows: impl Iterator<Item = (usize, &'a MatrixRow)>,
) -> Html {
    let mut html = Html::new();
    let (mut values, mut left_out) = (0, 0);
    for (number, row) in rows {
        let Some(grid) = Grid::of(row) else { continue };
        if values + grid.links.len() > MOST_VALUES || grid.hosts.len() > MOST_HOSTS {
            left_out += 1;
            continue;
        }
        values += grid.links.len();
        html.markup("<figure><figcaption>").text(&caption(matrix, row)).markup("</figcaption>");
        html.html(&render_grid(matrix, row, number, &grid)).markup("</figure>\n");
    }
    if html.is_empty() && left_out == 0 {
        return html;
    }
    let mut whole = Html::new();
    whole.markup("<h2>Between hosts</h2>\n<p class=\"soft\">&rarr; has the client on the host of the row and the ")
        .markup("server on that of the column, &larr; the other way. Coloured by the ratio to the median of the ")
        .markup("table, as the points are.</p>\n");
    whole.html(&html);
    if left_out > 0 {
        let text = format!(
            "{left_out} tables are left out: a table has at most {MOST_HOSTS} hosts, and those of a page \
             {MOST_VALUES} values together. The document has all of them."
        );
        whole.markup("<p class=\"soft\">").text(&text).markup("</p>\n");
    }
    whole
}

/// The parameters of the point, its metric and the unit.
fn caption(matrix: &MatrixPage, row: &MatrixRow) -> String {
    let named = matrix.parameters.iter().zip(&row.parameters);
    let known = named.filter(|(_, value)| !value.is_empty());
    let mut parts: Vec<String> = known.map(|(name, value)| format!("{name} {value}")).collect();
    parts.push(match row.unit.as_str() {
        "" => row.metric.clone(),
        unit => format!("{} in {unit}", row.metric),
    });
    parts.join(", ")
}

fn render_grid(matrix: &MatrixPage, row: &MatrixRow, number: usize, grid: &Grid<'_>) -> Html {
    let mut html = Html::new();
    html.markup("<div class=\"wide\"><table class=\"hosts\"><thead><tr><td></td>");
    for host in &grid.hosts {
        html.markup("<th scope=\"col\">").text(host).markup("</th>");
    }
    html.markup("</tr></thead><tbody>\n");
    let median = grid.median();
    for (client, name) in grid.hosts.iter().enumerate() {
        html.markup("<tr><th scope=\"row\">").text(name).markup("</th>");
        for server in 0..grid.hosts.len() {
            html.markup("<td>");
            let directions = match client == server {
                true => &[((client, server), "")][..],
                false => &[((client, server), "&rarr; "), ((server, client), "&larr; ")][..],
            };
            for (between, arrow) in directions {
                let Some(link) = grid.links.get(between) else { continue };
                let mean = link.mean();
                html.markup("<a class=\"heat ");
                html.markup(heat_of(mean, median, row.more_is_better)).markup("\" href=\"");
                match (&matrix.served_at, row.position) {
                    (Some(at), Some(position)) => {
                        html.text(&format!("{at}/{position}/{}", link.number));
                    }
                    _ => drop(html.text(&format!("#p{number}"))),
                }
                html.markup("\">").markup(arrow);
                html.text(&mean.map_or_else(|| "-".to_owned(), short)).markup("</a>");
            }
            html.markup("</td>");
        }
        html.markup("</tr>\n");
    }
    html.markup("</tbody></table></div>");
    html
}

/// A number with three significant digits.
fn short(value: f64) -> String {
    /// A number that is smaller still has fewer.
    const MOST_DECIMALS: f64 = 6.0;
    let magnitude = if value == 0.0 { 0.0 } else { value.abs().log10().floor() };
    let decimals = (2.0 - magnitude).clamp(0.0, MOST_DECIMALS) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::render_matrix;

    /// A point whose pairs are these: client, server, value.
    fn row(pairs: &[(&str, &str, f64)]) -> MatrixRow {
        let pair = |(number, (client, server, value)): (u32, &(&str, &str, f64))| PairValue {
            number,
            client: (*client).to_owned(),
            server: (*server).to_owned(),
            value: Some(*value),
        };
        MatrixRow {
            parameters: vec!["tcp".to_owned()],
            metric: "linerate::rx-Gbps".to_owned(),
            unit: "Gbit/s".to_owned(),
            more_is_better: Some(true),
            position: Some(4),
            pairs: (1..).zip(pairs).map(pair).collect(),
            ..MatrixRow::default()
        }
    }

    fn page(rows: Vec<MatrixRow>, served_at: Option<&str>) -> String {
        let matrix = MatrixPage {
            rows,
            parameters: vec!["protocol".to_owned()],
            served_at: served_at.map(str::to_owned),
            ..MatrixPage::default()
        };
        render_matrix(&matrix).body.into_string()
    }

    const MESH: [(&str, &str, f64); 6] = [
        ("a", "b", 9.41),
        ("a", "c", 9.4),
        ("b", "a", 9.39),
        ("b", "c", 4.7),
        ("c", "a", 9.4),
        ("c", "b", 12.0),
    ];

    #[test]
    fn a_cell_has_both_directions_and_leads_to_their_runs() {
        let html = page(vec![row(&MESH)], Some("/run/x"));
        assert!(html.contains("protocol tcp, linerate::rx-Gbps in Gbit/s"), "{html}");
        let cells = "<tr><th scope=\"row\">b</th>\
             <td><a class=\"heat \" href=\"/run/x/4/3\">&rarr; 9.39</a>\
             <a class=\"heat \" href=\"/run/x/4/1\">&larr; 9.41</a></td><td></td>\
             <td><a class=\"heat down2\" href=\"/run/x/4/4\">&rarr; 4.70</a>\
             <a class=\"heat up2\" href=\"/run/x/4/6\">&larr; 12.0</a></td></tr>";
        assert!(html.contains(cells), "{html}");
        // Each value stands in the rows of both hosts.
        assert_eq!(html.matches("class=\"heat ").count() - 1, 2 * MESH.len());
        let file = page(vec![row(&MESH)], None);
        assert!(file.contains("href=\"#p1\"") && file.contains("<tr id=\"p1\">"), "{file}");
    }

    #[test]
    fn pairs_of_the_same_hosts_have_their_mean() {
        let html = page(vec![row(&[("a", "b", 1.0), ("a", "b", 2.0), ("b", "b", 3.0)])], None);
        assert!(html.contains("&rarr; 1.50") && html.contains("\">3.00</a>"), "{html}");
        let mut unmeasured = row(&MESH);
        unmeasured.pairs[0].value = None;
        unmeasured.pairs[1].value = Some(f64::NAN);
        assert_eq!(page(vec![unmeasured], None).matches("rr; -</a>").count(), 4);
    }

    #[test]
    fn points_without_pairs_of_other_hosts_have_no_table() {
        for pairs in [&[][..], &[("a", "b", 1.0)], &[("a", "a", 1.0), ("b", "b", 2.0)]] {
            assert!(!page(vec![row(pairs)], None).contains("Between hosts"), "{pairs:?}");
        }
    }

    #[test]
    fn tables_keep_their_budget_and_tell_what_they_leave_out() {
        let names: Vec<String> = (0..MOST_HOSTS + 1).map(|host| format!("host-{host}")).collect();
        let mesh = |count: usize| {
            let pairs = (0..count * count).map(|at| (at / count, at % count));
            let pairs = pairs.filter(|(client, server)| client != server);
            let pairs =
                pairs.map(|(client, server)| (names[client].as_str(), names[server].as_str(), 1.0));
            row(&pairs.collect::<Vec<_>>())
        };
        let whole = page(vec![mesh(MOST_HOSTS), mesh(20)], Some("/run/0123456789"));
        assert!(!whole.contains("left out"));
        assert!(whole.len() < 300_000, "{} bytes", whole.len());
        let large = mesh(MOST_HOSTS);
        let rows = vec![mesh(MOST_HOSTS + 1), mesh(2), large.clone(), large.clone(), large];
        assert!(page(rows, None).contains("2 tables are left out"));
    }

    #[test]
    fn numbers_have_three_digits() {
        for (value, text) in [
            (941.2, "941"),
            (94.12, "94.1"),
            (9.412, "9.41"),
            (0.9412, "0.941"),
            (0.002, "0.00200"),
            (0.0, "0.00"),
        ] {
            assert_eq!(short(value), text);
        }
    }
}
