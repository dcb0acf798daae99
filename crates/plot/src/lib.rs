//! Pages that show what a connection did: one HTML file each, which opens from disk without a network.
//!
//! Owns the way from events to a page: what happened becomes series of points, these are thinned out, and a template
//! with a chart library in it takes them. It must not know where events come from: the log of a connection
//! ([`Timelines::from_log`]), a qlog file, a simulated link.
//!
//! | module | owns |
//! |---|---|
//! | `series` | points in time, and how they are thinned out without hiding an extreme |
//! | `timeline` | the events of one end of a connection, and the series that are made of them |
//! | `timelines` | the courses of an end and of its paths beside the first |
//! | `from_log` | the log of a connection as such events |
//! | `page` | the page of courses in time |
//! | `stats` | medians and other quantiles |
//! | `results`, `report` | results of many runs: how they are read, and the page of their distributions |
//! | `scatter` | the page of runs as points, a figure against each parameter |
//! | `html` | what both pages have in common |
//!
//! The charts are drawn by uPlot (`assets/uplot`, MIT licence), which is part of each page.
#![forbid(unsafe_code)]

mod from_log;
mod html;
mod page;
mod report;
mod results;
mod scatter;
mod series;
mod stats;
mod timeline;
mod timelines;

pub use page::{Event, Lane, Page, Request, Run};
pub use report::report_page;
pub use results::{ResultRow, Results, ResultsError};
pub use scatter::{Parameter, PointGroup, Scatter, ScatterPoint};
pub use series::{Point, Points};
pub use stats::Summary;
pub use timeline::{SentFrameInfo, SpaceKey, Timeline};
pub use timelines::{PATHS_MAX, Timelines};
