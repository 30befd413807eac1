//! Events from rows.

/// Rows of a stream as three columns in order of time.
#[derive(Debug)]
pub struct Columns {
    /// Source of every event.
    pub sources: Vec<u32>,
    /// Destination of every event.
    pub destinations: Vec<u32>,
    /// Time of every event, ascending.
    pub times: Vec<f64>,
}

impl Columns {
    /// Sorts rows by time. Rows of one time keep their order.
    pub fn new<T: Into<f64>>(rows: impl IntoIterator<Item = (u32, u32, T)>) -> Columns {
        let mut rows: Vec<(u32, u32, f64)> =
            rows.into_iter().map(|(source, to, time)| (source, to, time.into())).collect();
        rows.sort_by(|a, b| a.2.total_cmp(&b.2));
        Columns {
            sources: rows.iter().map(|row| row.0).collect(),
            destinations: rows.iter().map(|row| row.1).collect(),
            times: rows.iter().map(|row| row.2).collect(),
        }
    }

    /// The features of every event, one after another, from its source and destination.
    pub fn features<I: IntoIterator<Item = f32>>(
        &self,
        features: impl Fn(u32, u32) -> I,
    ) -> Vec<f32> {
        let ends = self.sources.iter().zip(&self.destinations);
        ends.flat_map(|(&source, &destination)| features(source, destination)).collect()
    }
}

/// Makes `lstep::event::Events`.
///
/// - `stream![0 -> 1 @ 0.5, 1 -> 2 @ 3.0]`: three numbers for each event.
/// - `stream!(rows)`: anything that iterates over (source, destination, time).
/// - `stream!(rows, width, |source, destination| [..])`: with features of that width.
///
/// Rows are sorted by time. In unit tests of `lstep` the path `::lstep` is the crate itself.
#[macro_export]
macro_rules! stream {
    ($($source:literal -> $destination:literal @ $time:literal),+ $(,)?) => {
        $crate::stream!([$(($source, $destination, $time)),+])
    };
    ($rows:expr $(,)?) => {{
        let columns = $crate::Columns::new($rows);
        $crate::stream!(@events columns, ::lstep::event::Features::none())
    }};
    ($rows:expr, $width:expr, $features:expr $(,)?) => {{
        let columns = $crate::Columns::new($rows);
        let features = columns.features($features);
        let features = ::lstep::event::Features::new($width, features).expect("finite");
        $crate::stream!(@events columns, features)
    }};
    (@events $columns:ident, $features:expr) => {{
        let nodes = |ids: ::std::vec::Vec<u32>| ids.into_iter().map(::lstep::event::NodeId);
        let time = |time: f64| ::lstep::event::Time::new(time).expect("finite");
        ::lstep::event::Events::new(
            nodes($columns.sources).collect(),
            nodes($columns.destinations).collect(),
            $columns.times.into_iter().map(time).collect(),
            $features,
        )
        .expect("sorted by time")
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_by_time_and_keep_their_order_within_one() {
        let columns = Columns::new([(1, 2, 5u32), (3, 4, 1), (5, 6, 5)]);
        assert_eq!(columns.sources, [3, 1, 5]);
        assert_eq!(columns.destinations, [4, 2, 6]);
        assert_eq!(columns.times, [1.0, 5.0, 5.0]);
    }
}
