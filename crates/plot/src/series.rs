//! Points in time, and how they are thinned out.

use fulmar_base::Instant;

/// A value at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Nanoseconds since the beginning of the clock.
    pub at: u64,
    /// The value, in the unit of its series.
    pub value: u64,
}

/// Points in the order of their time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Points(Vec<Point>);

impl Points {
    /// Adds a point. One that lies before the last is taken for as late as that: files of others need not be in order.
    pub fn push(&mut self, at: Instant, value: u64) {
        let at = self.0.last().map_or(0, |last| last.at).max(at.as_nanos());
        self.0.push(Point { at, value });
    }

    /// Adds a point if its value is another than that of the last.
    pub fn push_change(&mut self, at: Instant, value: u64) {
        if self.0.last().is_none_or(|last| last.value != value) {
            self.push(at, value);
        }
    }

    /// The points.
    pub fn as_slice(&self) -> &[Point] {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The points of which a drawing of `buckets` columns between the times `from` and `to` cannot be told from one of
    /// all: of each column the first, the last, the smallest and the largest.
    ///
    /// So neither a peak nor a single loss is hidden, and lines enter and leave each column where they should.
    pub fn thinned(&self, buckets: u64, from: u64, to: u64) -> Vec<Point> {
        let buckets = buckets.max(1);
        if self.0.len() as u64 <= 4 * buckets {
            return self.0.clone();
        }
        let width = u128::from(to.saturating_sub(from)) + 1;
        let column = |point: &Point| u128::from(point.at.saturating_sub(from)) * u128::from(buckets) / width;
        let columns = self.0.chunk_by(|a, b| column(a) == column(b));
        columns.flat_map(extremes).collect()
    }
}

/// The first, last, smallest and largest point, each once, in the order of time.
fn extremes(points: &[Point]) -> impl Iterator<Item = Point> + use<'_> {
    let by_value = |index: &usize| points[*index].value;
    let smallest = (0..points.len()).min_by_key(by_value).unwrap_or(0);
    let largest = (0..points.len()).max_by_key(by_value).unwrap_or(0);
    let mut wanted = [0, smallest, largest, points.len() - 1];
    wanted.sort_unstable();
    let repeated = move |place: usize| place > 0 && wanted[place] == wanted[place - 1];
    (0..wanted.len()).filter(move |place| !repeated(*place)).map(move |place| points[wanted[place]])
}

#[cfg(test)]
mod tests;
