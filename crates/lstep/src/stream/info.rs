//! What a model may know of a stream before its first event.

use crate::graph::EventLog;
use crate::model::StreamInfo;
use crate::protocol::Split;

/// What a model may know before the first event.
pub fn info(log: &EventLog, split: &Split) -> StreamInfo {
    let trained =
        log.events().iter().take(split.train.end as usize).filter(|event| split.trains(*event));
    StreamInfo::of(trained).unwrap_or_else(|| {
        let first = log.events().times()[0];
        StreamInfo::new(0, (first, first))
    })
}
