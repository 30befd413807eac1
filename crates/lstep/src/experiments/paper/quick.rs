//! A recipe in minutes: a thinned stream and few epochs. It shows that everything runs, not what a
//! model is worth.

use crate::error::Result;
use crate::event::Events;
use crate::read::Dataset;

/// Events that are left of a stream.
pub const QUICK_EVENTS: usize = 4_000;
/// Epochs of training.
pub const QUICK_EPOCHS: u32 = 2;

/// A stream with at most so many events, evenly spread over the old one, so that its times and its
/// end stay.
pub fn thin(dataset: Dataset, events: usize) -> Result<Dataset> {
    let all = &dataset.events;
    if all.len() <= events {
        return Ok(dataset);
    }
    let mut kept = Events::empty(all.features().width());
    for place in 0..events {
        let event = all.at(place * all.len() / events);
        kept.push(
            event.source,
            event.destination,
            event.time,
            all.features().row(event.number as usize),
        )?;
    }
    Ok(Dataset { events: kept, ..dataset })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::synthetic::{SyntheticConfig, generate};

    #[test]
    fn a_thinned_stream_spans_the_same_time() {
        let whole = generate(&SyntheticConfig { events: 5_000, ..SyntheticConfig::default() })
            .expect("a stream");
        let thinned = thin(whole.clone(), 1_000).expect("in order");
        assert_eq!(thinned.events.len(), 1_000);
        assert_eq!(thinned.events.times()[0], whole.events.times()[0]);
        assert_eq!(thinned.events.times()[999], whole.events.times()[4_995]);
        assert_eq!(thin(whole.clone(), 9_000).expect("nothing to do"), whole);
    }
}
