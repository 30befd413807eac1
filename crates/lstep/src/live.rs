//! One model, its state and its log, growing while it answers.
//!
//! Events are pushed as they happen and are visible to the graph at once, strictly before later times. The state follows when
//! [`Live::observe`] is called: after every event, or every so many, as the model was trained.

use crate::error::Result;
use crate::event::{Event, NodeId, Time};
use crate::graph::EventLog;
use crate::model::Session;
use crate::protocol::{Queries, Scores};

/// A model that answers while its log grows.
pub struct Live {
    log: EventLog,
    session: Box<dyn Session>,
    /// Number of the first event that the state has not observed.
    pending: u32,
}

impl Live {
    /// Starts with a log, perhaps empty, that the session has observed to its end.
    pub fn resume(log: EventLog, session: Box<dyn Session>) -> Live {
        let pending = log.len() as u32;
        Live { log, session, pending }
    }

    /// Appends an event, which may not be before the last one.
    pub fn push(&mut self, source: NodeId, destination: NodeId, time: Time, features: &[f32]) -> Result<Event> {
        self.log.push(source, destination, time, features)
    }

    /// Lets the state follow all events pushed since the last call.
    pub fn observe(&mut self) -> Result<()> {
        let end = self.log.len() as u32;
        let step: Vec<Event> = (self.pending..end).map(|number| self.log.events().at(number as usize)).collect();
        if !step.is_empty() {
            self.session.observe(self.log.revealed(end), &step)?;
            self.pending = end;
        }
        Ok(())
    }

    /// Scores questions from what is known now.
    pub fn score(&self, ask: &Queries) -> Result<Scores> {
        self.session.score(self.log.past(self.log.len() as u32), ask)
    }

    /// The log so far.
    pub fn log(&self) -> &EventLog {
        &self.log
    }
}
