//! One model, its state and its log, growing while it answers.
//!
//! Events are pushed as they happen and are visible to the graph at once, strictly before later
//! times. The state follows when [`Live::observe`] is called: after every event, or every so many,
//! as the model was trained.

use crate::error::{Error, Remedy, Result};
use crate::event::{Event, NodeId, Time};
use crate::graph::EventLog;
use crate::model::Session;
use crate::query::{Queries, Scores};

/// A model that answers while its log grows.
///
/// With `Live<dyn Trainer>` the state can be saved, too.
pub struct Live<S: Session + ?Sized = dyn Session> {
    log: EventLog,
    session: Box<S>,
    /// Number of the first event that the state has not observed.
    pending: u32,
}

impl<S: Session + ?Sized> Live<S> {
    /// Starts with a log, perhaps empty, that the session has observed to its end.
    pub fn resume(log: EventLog, session: Box<S>) -> Live<S> {
        let pending = log.len() as u32;
        Live { log, session, pending }
    }

    /// Appends an event, which may not be before the last one.
    pub fn push(
        &mut self,
        source: NodeId,
        destination: NodeId,
        time: Time,
        features: &[f32],
    ) -> Result<Event> {
        self.log.push(source, destination, time, features)
    }

    /// Appends the features of the next node, for a log whose nodes have some: nodes are numbered
    /// in this order.
    pub fn push_node(&mut self, features: &[f32]) -> Result<()> {
        self.log.push_node(features)
    }

    /// Lets the state follow all events pushed since the last call.
    pub fn observe(&mut self) -> Result<()> {
        let end = self.log.len() as u32;
        let step: Vec<Event> =
            (self.pending..end).map(|number| self.log.events().at(number as usize)).collect();
        if !step.is_empty() {
            self.session.observe(self.log.revealed(end), &step)?;
            self.pending = end;
        }
        Ok(())
    }

    /// Scores questions from what is known now. Refuses one about a time before the last event that
    /// the state has observed: it could not answer as if that had not happened.
    pub fn score(&self, ask: &Queries) -> Result<Scores> {
        let observed =
            self.pending.checked_sub(1).map(|last| self.log.events().times()[last as usize]);
        if let Some(last) = observed
            && let Some(row) = ask.rows().find(|row| row.time < last)
        {
            return Err(Error::TimeInPast {
                time: row.time.value().to_string(),
                observed: last.value().to_string(),
                remedy: Remedy::text("ask about that time or a later one"),
            });
        }
        self.session.score(self.log.past(self.log.len() as u32), ask)
    }

    /// The log so far.
    pub fn log(&self) -> &EventLog {
        &self.log
    }

    /// The model with its state.
    pub fn session(&self) -> &S {
        &self.session
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Events, Features};
    use crate::model::{ModelConfig, StreamInfo};

    #[test]
    fn a_question_about_the_past_of_the_state_is_refused() {
        let time = |value: f64| Time::new(value).expect("finite");
        let info = StreamInfo::new(3, (time(0.0), time(9.0)));
        let session =
            "heuristics".parse::<ModelConfig>().expect("known").open(&info).expect("opened");
        let none =
            Events::new(Vec::new(), Vec::new(), Vec::new(), Features::none()).expect("no events");
        let mut live = Live::resume(EventLog::new(none), session);
        let ask = |at: f64| {
            let mut ask = Queries::new();
            ask.push(NodeId(0), time(at), [NodeId(1), NodeId(2)]);
            ask
        };
        assert!(live.score(&ask(-5.0)).is_ok(), "nothing is observed yet");
        live.push(NodeId(0), NodeId(1), time(4.0), &[]).expect("pushed");
        assert!(live.score(&ask(3.0)).is_ok(), "pushed, but not observed");
        live.observe().expect("observed");
        assert!(live.score(&ask(4.0)).is_ok());
        let error = live.score(&ask(3.0)).expect_err("the state knows what came at 4").to_string();
        assert!(error.contains('3') && error.contains("up to 4"), "{error}");
    }
}
