//! A trained run asked once more, with everything kept that a picture of it needs, and the counting models asked the same questions.
//!
//! A number of a learned model means little without that of a model that only counts. Both answer the same exam, in the same steps.

use super::config::RunConfig;
use super::evaluate::{evaluate_recording, train_observing};
use super::record::Record;
use super::report::{EvaluationReport, ResultRow};
use super::trained::Trained;
use crate::error::Result;
use crate::model::{Memory, ModelConfig};
use crate::protocol::{Asked, Part, Setting, Strategy};
use std::time::Instant;

/// A model's answers.
#[derive(Debug, Clone)]
pub struct Examinee {
    /// The model's name.
    pub name: String,
    /// Its numbers, one for each sheet.
    pub results: Vec<ResultRow>,
    /// Its scores, in the same order; of a counting model only those of the first sheet.
    pub records: Vec<Record>,
}

/// A trained model's answers, and those of the counting models.
#[derive(Debug, Clone)]
pub struct Examined {
    /// The trained model.
    pub model: Examinee,
    /// The counting models, asked the same.
    pub counting: Vec<Examinee>,
    /// What evaluation alone would say.
    pub report: EvaluationReport,
    /// Seconds for drawing or reading the negatives.
    pub asking_seconds: f64,
}

impl RunConfig {
    /// All that the run's protocol can ask of the test part; under tgb, whose tables give both, of validation too.
    pub fn everything(&self) -> Asked {
        let all = vec![Strategy::Random, Strategy::Historical, Strategy::Inductive];
        let mut parts = vec![Part::Test];
        let (settings, strategies) = match self.protocol.name() {
            "tgb" => {
                parts.insert(0, Part::Validation);
                (vec![Setting::Transductive], vec![Strategy::Tgb])
            }
            "dyglib" => (vec![Setting::Transductive, Setting::Inductive], all),
            _ => (vec![Setting::Transductive], all),
        };
        Asked { parts, settings, strategies }
    }
}

impl Trained {
    /// Evaluates it as [`Trained::evaluate`] does, keeps the scores, and asks the counting models the same. `watch` is called with a
    /// model's name and how much of its exam is done.
    pub fn examine(&self, asked: &Asked, watch: &dyn Fn(&str, u64, u64)) -> Result<Examined> {
        let started = Instant::now();
        let exams = self.exams(asked)?;
        let asking_seconds = started.elapsed().as_secs_f64();
        let log = &self.stream().log;
        let name = self.config().model.to_string();
        let mut model = Examinee { name: name.clone(), results: Vec::new(), records: Vec::new() };
        let mut counting: Vec<Examinee> = Vec::new();
        for exam in &exams {
            let mut records = Record::of_exam(exam);
            let told = |done, of| watch(&name, done, of);
            let outcomes = evaluate_recording(self.pupil()?.as_mut(), log, exam, &told, &mut records)?;
            model.results.extend(self.rows(&self.config().model, exam, outcomes));
            model.records.extend(records);
            for (place, config) in counting_models().iter().enumerate() {
                let name = config.to_string();
                let mut session = config.open(&self.ground.facts)?;
                train_observing(session.as_mut(), log, self.split(), self.config().protocol.step())?;
                // Figures show a counting model on the first sheet only.
                let mut records = if counting.len() <= place { Record::of_exam(exam) } else { Vec::new() };
                records.truncate(1);
                let told = |done, of| watch(&name, done, of);
                let outcomes = evaluate_recording(session.as_mut(), log, exam, &told, &mut records)?;
                let results = self.rows(config, exam, outcomes);
                match counting.get_mut(place) {
                    Some(examinee) => examinee.results.extend(results),
                    None => counting.push(Examinee { name: name.clone(), results, records }),
                }
            }
        }
        let report = self.report(model.results.clone());
        Ok(Examined { model, counting, report, asking_seconds })
    }
}

/// The counting models that stand beside a trained one: one that remembers pairs, one of popularity, and all heuristics together.
fn counting_models() -> [ModelConfig; 3] {
    [
        ModelConfig::EdgeBank { memory: Memory::Unlimited },
        ModelConfig::PopTrack { decay: ModelConfig::DECAY },
        "heuristics".parse().expect("a name that the parser knows"),
    ]
}
