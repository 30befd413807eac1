//! What an event is: two nodes that meet at a time, perhaps with features.
//!
//! Events have a total order: time first, then the event's number (its place in the file). Every
//! room above relies on it. Depends on nothing.

mod clock;
mod feature;
mod names;
mod node_set;
mod ragged;

pub use clock::{Clock, TimeFormat, Unit};
pub(crate) use clock::{EXACT, Instant, exact};
pub use feature::Features;
pub(crate) use names::{Ids, canonical_integer};
pub use names::{Name, Names, Side};
pub use node_set::NodeSet;
pub(crate) use ragged::{Ragged, RowEnds};

use crate::error::{Error, Result};
use std::cmp::Ordering;

/// A node's dense number, in order of first appearance in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The number as an index into a column of nodes.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<u32> for NodeId {
    fn from(number: u32) -> NodeId {
        NodeId(number)
    }
}

impl From<NodeId> for u32 {
    fn from(node: NodeId) -> u32 {
        node.0
    }
}

/// A pair of nodes, in this order, as one number, so that hashing it is one multiplication.
#[inline]
pub(crate) fn pair_key(source: NodeId, destination: NodeId) -> u64 {
    u64::from(source.0) << 32 | u64::from(destination.0)
}

/// A moment, in the stream's own unit. Always finite; exact for the integers and floats of the
/// file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Time(f64);

impl Time {
    /// The origin of the stream's clock.
    pub const ZERO: Time = Time(0.0);

    /// A time, unless it is infinite or not a number. Negative zero becomes zero, so that equal
    /// times have equal bits.
    pub fn new(value: f64) -> Option<Time> {
        value.is_finite().then_some(Time(value + 0.0))
    }

    /// The number.
    #[inline]
    pub fn value(self) -> f64 {
        self.0
    }

    /// How long after `earlier` this is.
    #[inline]
    pub fn since(self, earlier: Time) -> f64 {
        self.0 - earlier.0
    }
}

impl From<Time> for f64 {
    fn from(time: Time) -> f64 {
        time.0
    }
}

impl From<u32> for Time {
    fn from(value: u32) -> Time {
        Time(f64::from(value))
    }
}

impl From<i32> for Time {
    fn from(value: i32) -> Time {
        Time(f64::from(value))
    }
}

impl TryFrom<f64> for Time {
    type Error = Error;

    /// As [`Time::new`], with an error that says why.
    fn try_from(value: f64) -> Result<Time> {
        Time::new(value).ok_or_else(|| Error::setting("time", value, "times have to be finite"))
    }
}

impl Eq for Time {}

impl Ord for Time {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Time {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// One interaction. Its features are looked up by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Its place in the stream, counted from 0.
    pub number: u32,
    /// Who acts.
    pub source: NodeId,
    /// With whom.
    pub destination: NodeId,
    /// When.
    pub time: Time,
}

/// Events in columns, in time order: what a reader makes and a log is built from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Events {
    sources: Vec<NodeId>,
    destinations: Vec<NodeId>,
    times: Vec<Time>,
    features: Features,
}

impl Events {
    /// Most events a stream can hold: an event's number has 32 bits.
    pub const MOST: u64 = u32::MAX as u64;

    /// Joins columns into events.
    ///
    /// Refuses columns of different lengths, times that decrease, and a feature table with another
    /// number of rows (an absent table has width zero and any number of rows).
    pub fn new(
        sources: Vec<NodeId>,
        destinations: Vec<NodeId>,
        times: Vec<Time>,
        features: Features,
    ) -> Result<Events> {
        same_length("sources and destinations", sources.len(), destinations.len())?;
        same_length("sources and times", sources.len(), times.len())?;
        if features.width() > 0 {
            same_length("events and feature rows", sources.len(), features.rows())?;
        }
        if let Some(place) = times.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(Error::OutOfOrder {
                event: place as u64 + 1,
                time: times[place + 1].value(),
                previous_time: times[place].value(),
            });
        }
        if sources.len() as u64 > Events::MOST {
            return Err(Error::TooMany { what: "events", most: Events::MOST });
        }
        Ok(Events { sources, destinations, times, features })
    }

    /// No events yet, but room for features of this width.
    pub fn empty(feature_width: usize) -> Events {
        let features = Features::new(feature_width, Vec::new())
            .expect("no values are whole rows of any width");
        Events { features, ..Events::default() }
    }

    /// The first `count` events, or all if there are fewer.
    #[must_use]
    pub fn first(&self, count: usize) -> Events {
        let count = count.min(self.len());
        Events {
            sources: self.sources[..count].to_vec(),
            destinations: self.destinations[..count].to_vec(),
            times: self.times[..count].to_vec(),
            features: self.features.first(count),
        }
    }

    /// These nodes, each once, in the order in which they first appear. Draws from them are the
    /// same however nodes are numbered.
    pub(crate) fn by_appearance(&self, nodes: impl IntoIterator<Item = NodeId>) -> Vec<NodeId> {
        let wanted: NodeSet = nodes.into_iter().collect();
        let mut met = NodeSet::default();
        let mut order = Vec::with_capacity(wanted.len());
        for (&source, &destination) in self.sources.iter().zip(&self.destinations) {
            for node in [source, destination] {
                if wanted.contains(node) && met.insert(node) {
                    order.push(node);
                }
            }
            if order.len() == wanted.len() {
                break;
            }
        }
        order
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.sources.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// The event with this number.
    ///
    /// # Panics
    /// If there is no such event.
    #[inline]
    pub fn at(&self, number: usize) -> Event {
        Event {
            number: number as u32,
            source: self.sources[number],
            destination: self.destinations[number],
            time: self.times[number],
        }
    }

    /// All events in order.
    pub fn iter(&self) -> EventIter<'_> {
        EventIter { events: self, numbers: 0..self.len() }
    }

    /// The column of sources.
    pub fn sources(&self) -> &[NodeId] {
        &self.sources
    }

    /// The column of destinations.
    pub fn destinations(&self) -> &[NodeId] {
        &self.destinations
    }

    /// The column of times, never decreasing.
    pub fn times(&self) -> &[Time] {
        &self.times
    }

    /// The events' features; width zero where there are none.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// In how many events each node takes part; one with itself counts once.
    pub fn participation(&self) -> Vec<u32> {
        let mut counts = vec![0; self.node_bound()];
        for (&source, &destination) in self.sources.iter().zip(&self.destinations) {
            counts[source.index()] += 1;
            counts[destination.index()] += u32::from(source != destination);
        }
        counts
    }

    /// One more than the largest node number, zero if there are no events.
    pub fn node_bound(&self) -> usize {
        let largest = self.sources.iter().chain(&self.destinations).max();
        largest.map_or(0, |node| node.index() + 1)
    }

    /// Appends one event; its time must not be before the last one's.
    pub fn push(
        &mut self,
        source: NodeId,
        destination: NodeId,
        time: Time,
        features: &[f32],
    ) -> Result<Event> {
        if let Some(&last) = self.times.last()
            && time < last
        {
            return Err(Error::OutOfOrder {
                event: self.len() as u64,
                time: time.value(),
                previous_time: last.value(),
            });
        }
        if self.len() as u64 >= Events::MOST {
            return Err(Error::TooMany { what: "events", most: Events::MOST });
        }
        self.features.push(features)?;
        self.sources.push(source);
        self.destinations.push(destination);
        self.times.push(time);
        Ok(self.at(self.len() - 1))
    }
}

impl TryFrom<Vec<(u32, u32, f64)>> for Events {
    type Error = Error;

    /// Events without features from source, destination and time. Refuses what [`Events::new`]
    /// refuses, and times that are not finite.
    fn try_from(rows: Vec<(u32, u32, f64)>) -> Result<Events> {
        let times: Result<Vec<Time>> = rows.iter().map(|row| Time::try_from(row.2)).collect();
        Events::new(
            rows.iter().map(|row| NodeId(row.0)).collect(),
            rows.iter().map(|row| NodeId(row.1)).collect(),
            times?,
            Features::none(),
        )
    }
}

impl<'a> IntoIterator for &'a Events {
    type Item = Event;
    type IntoIter = EventIter<'a>;

    fn into_iter(self) -> EventIter<'a> {
        self.iter()
    }
}

/// All events in order, made by [`Events::iter`].
#[derive(Debug, Clone)]
pub struct EventIter<'a> {
    events: &'a Events,
    numbers: std::ops::Range<usize>,
}

impl Iterator for EventIter<'_> {
    type Item = Event;

    #[inline]
    fn next(&mut self) -> Option<Event> {
        self.numbers.next().map(|number| self.events.at(number))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.numbers.size_hint()
    }
}

impl DoubleEndedIterator for EventIter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Event> {
        self.numbers.next_back().map(|number| self.events.at(number))
    }
}

impl ExactSizeIterator for EventIter<'_> {}

fn same_length(what: &'static str, left: usize, right: usize) -> Result<()> {
    if left == right { Ok(()) } else { Err(Error::LengthMismatch { what, left, right }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(value: f64) -> Time {
        Time::new(value).expect("a finite time")
    }

    #[test]
    fn a_time_is_finite_and_zero_has_one_form() {
        assert!(Time::new(f64::NAN).is_none());
        assert!(Time::new(f64::INFINITY).is_none());
        assert_eq!(time(-0.0).cmp(&time(0.0)), Ordering::Equal);
    }

    #[test]
    fn events_are_made_from_rows_and_iterated() {
        let events = Events::try_from(vec![(0, 1, 0.5), (2, 0, 0.5), (1, 2, 7.0)]).expect("rows");
        let sources: Vec<u32> = (&events).into_iter().map(|event| event.source.into()).collect();
        assert_eq!(sources, [0, 2, 1]);
        assert_eq!(events.iter().next_back().expect("three events").time, Time::from(7));
        assert!(Events::try_from(vec![(0, 1, 2.0), (0, 1, 1.0)]).is_err(), "times decrease");
        assert!(Events::try_from(vec![(0, 1, f64::NAN)]).is_err(), "no time");
    }

    #[test]
    fn events_out_of_order_are_refused_with_the_place() {
        let error = Events::new(
            vec![NodeId(0); 3],
            vec![NodeId(1); 3],
            vec![time(1.0), time(18.0), time(17.0)],
            Features::none(),
        )
        .expect_err("17 comes after 18");
        assert_eq!(
            error.to_string(),
            "event 2 is at 17, before event 1 at 18: sort the events by time"
        );
    }

    #[test]
    fn an_event_cannot_be_pushed_into_the_past() {
        let mut events = Events::default();
        events.push(NodeId(0), NodeId(1), time(5.0), &[]).expect("the first");
        assert!(events.push(NodeId(0), NodeId(1), time(4.0), &[]).is_err());
        assert_eq!(events.len(), 1);
        assert_eq!(events.push(NodeId(2), NodeId(1), time(5.0), &[]).expect("same time").number, 1);
        assert_eq!(events.node_bound(), 3);
    }
}
