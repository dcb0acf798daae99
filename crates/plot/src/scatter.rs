//! The page of many runs as points: a figure against each of the parameters that the runs differ in.

use serde::Serialize;

use crate::html;

const SCRIPT: &str = include_str!("../assets/scatter.js");

/// What a page of points shows.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Scatter {
    /// The heading.
    pub title: String,
    /// A sentence below it.
    pub subtitle: String,
    /// The name of the figure, which all charts have upwards, on a logarithmic axis.
    pub figure: String,
    /// What the figure is drawn against.
    pub parameters: Vec<Parameter>,
    /// The colours of points.
    pub groups: Vec<PointGroup>,
    /// The heads of a table below the charts; the first one stands at the left.
    pub table_head: Vec<String>,
    /// Its rows.
    pub table: Vec<Vec<String>>,
}

/// Something that runs differ in.
#[derive(Debug, Clone, Serialize)]
pub struct Parameter {
    /// Its name, with a unit.
    pub name: String,
    /// Whether its axis is logarithmic; its values are positive then.
    pub logarithmic: bool,
}

/// Points of one colour.
#[derive(Debug, Clone, Serialize)]
pub struct PointGroup {
    /// What they have in common.
    pub name: String,
    /// The points.
    pub points: Vec<ScatterPoint>,
}

/// A run.
#[derive(Debug, Clone, Serialize)]
pub struct ScatterPoint {
    /// What it is, in a line.
    pub name: String,
    /// The figure. It is positive.
    pub value: f64,
    /// The parameters, in the order of the page.
    pub at: Vec<f64>,
}

impl Scatter {
    /// The page as a file of its own.
    pub fn html(&self) -> String {
        html::page(&self.title, self, SCRIPT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_holds_its_points_and_needs_nothing_from_elsewhere() {
        let point = ScatterPoint { name: "link </script> 3".to_owned(), value: 1.5, at: vec![20.0, 0.0] };
        let page = Scatter {
            title: "Links".to_owned(),
            figure: "ratio".to_owned(),
            groups: vec![PointGroup { name: "bbr".to_owned(), points: vec![point] }],
            ..Scatter::default()
        };
        let html = page.html();
        assert!(html.contains("link \\u003c/script> 3"));
        for reference in ["src=", "href=", "@import", "url(", "fetch("] {
            assert!(!html.contains(reference), "{reference}");
        }
    }
}
