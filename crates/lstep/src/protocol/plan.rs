//! A protocol laid over one stream: everything that follows from the two before anything is asked.

use super::config::{EvalScope, Protocol, Subject};
use super::dyglib::Emulation;
use super::eval_pass::EvalPass;
use super::split::Split;
use crate::error::Result;

/// The split of a stream under a protocol, and what the protocol computed to find it.
///
/// A run makes its plan once. DyGLib's split takes an emulation of Python's and numpy's generators,
/// whose results the negatives need again; here they are kept. What is cheap to make again, such as
/// TGB's numbering of nodes, is not.
#[derive(Debug, Clone)]
pub struct Plan {
    protocol: Protocol,
    split: Split,
    emulation: Option<Emulation>,
}

impl Protocol {
    /// Lays the protocol over a stream.
    pub fn plan(&self, subject: Subject<'_>) -> Result<Plan> {
        let (split, emulation) = match self {
            Protocol::Stream(stream) => (stream.split(subject.events)?, None),
            Protocol::Dyglib(dyglib) => {
                let (split, emulation) = dyglib.emulate(subject)?;
                (split, Some(emulation))
            }
            Protocol::Tgb(tgb) => (tgb.split(subject)?, None),
        };
        Ok(Plan { protocol: self.clone(), split, emulation })
    }
}

impl Plan {
    /// The protocol.
    pub fn protocol(&self) -> &Protocol {
        &self.protocol
    }

    /// The split of the stream.
    pub fn split(&self) -> &Split {
        &self.split
    }

    /// Passes that answer everything in `scope`. A session that has observed training runs through
    /// each from the same state. `subject` is the stream that the plan was made for.
    pub fn passes(&self, subject: Subject<'_>, scope: &EvalScope) -> Result<Vec<EvalPass>> {
        match &self.protocol {
            Protocol::Stream(stream) => {
                Ok(vec![stream.pass(subject.events, &self.split, scope)?])
            }
            Protocol::Dyglib(dyglib) => {
                let emulation = self.emulation.as_ref();
                dyglib.passes(emulation.expect("a plan of DyGLib's has its emulation"), scope)
            }
            Protocol::Tgb(tgb) => tgb.passes(subject, &self.split, scope),
        }
    }

    /// From now on asks each event against this many negatives, and at most so many events of a
    /// part; `None` leaves a number as it is. Neither changes the split. Refused by protocols that
    /// fix both.
    pub fn ask_otherwise(
        &mut self,
        per_event: Option<usize>,
        questions: Option<usize>,
    ) -> Result<()> {
        self.protocol.set_questions(per_event, questions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::dyglib::DyglibProtocol;
    use crate::protocol::tgb::TgbProtocol;
    use crate::protocol::{Part, Setting, Strategy};
    use crate::read::synthetic::{SyntheticConfig, generate};

    #[test]
    fn a_plan_of_dyglib_holds_out_the_nodes_that_its_passes_call_new() {
        let config = SyntheticConfig { nodes: 60, events: 900, ..SyntheticConfig::default() };
        let data = generate(&config).expect("a stream");
        let subject = Subject { events: &data.events, names: &data.names };
        let plan = Protocol::Dyglib(DyglibProtocol::default()).plan(subject).expect("three parts");
        assert!(!plan.split().held_out().is_empty());
        let scope = EvalScope {
            parts: vec![Part::Validation, Part::Test],
            settings: vec![Setting::Inductive],
            strategies: vec![Strategy::Random],
        };
        for pass in plan.passes(subject, &scope).expect("new nodes") {
            for &number in pass.query_sets[0].asked() {
                assert!(plan.split().has_new_node(data.events.at(number as usize)), "{number}");
            }
        }
    }

    #[test]
    fn a_protocol_is_asked_otherwise_as_far_as_its_rules_let_it() {
        let config = SyntheticConfig { nodes: 60, events: 900, ..SyntheticConfig::default() };
        let data = generate(&config).expect("a stream");
        let subject = Subject { events: &data.events, names: &data.names };
        let mut plan = Protocol::Dyglib(DyglibProtocol::default()).plan(subject).expect("parts");
        assert!(plan.ask_otherwise(Some(5), None).is_err());
        assert!(plan.ask_otherwise(None, Some(5)).is_err());
        let tgb = TgbProtocol::for_dataset("tgbl-made", None);
        let mut plan = Protocol::Tgb(tgb).plan(subject).expect("parts");
        assert!(plan.ask_otherwise(Some(5), None).is_err(), "its rule says how many");
        plan.ask_otherwise(None, Some(7)).expect("fewer questions");
        let scope = EvalScope {
            parts: vec![Part::Validation, Part::Test],
            settings: vec![Setting::Transductive],
            strategies: vec![Strategy::Tgb],
        };
        let few = plan.passes(subject, &scope).expect("questions");
        plan.ask_otherwise(None, Some(usize::MAX)).expect("all questions");
        let all = plan.passes(subject, &scope).expect("questions");
        for (few, all) in few[0].query_sets.iter().zip(&all[0].query_sets) {
            assert_eq!(few.asked().len(), 7);
            // Every question is one of the benchmark's, with the benchmark's negatives.
            for (row, number) in few.asked().iter().enumerate() {
                let whole = all.asked().iter().position(|other| other == number);
                let whole = whole.expect("an event of the part");
                assert_eq!(few.negatives().row(row), all.negatives().row(whole), "{number}");
            }
        }
        let mut plan = Protocol::Stream(Default::default()).plan(subject).expect("parts");
        plan.ask_otherwise(Some(5), None).expect("numbers are open");
        let Protocol::Stream(stream) = plan.protocol() else { panic!("it was the stream's") };
        assert_eq!((stream.per_event, stream.questions), (5, None));
    }
}
