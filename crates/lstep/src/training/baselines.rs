//! A trained run asked once more, with everything kept that a picture of it needs, and the counting
//! models asked the same questions.
//!
//! A number of a learned model means little without that of a model that only counts. Both answer
//! the same pass, in the same steps.

use crate::error::Result;
use crate::evaluation::{EvalProgress, ScoreLog, against, evaluate_recording, train_observing};
use crate::model::{ModelConfig, Session};
use crate::protocol::EvalScope;
use crate::results::{AgainstCounting, EvaluationReport, MANY_TIES, ResultRow};
use crate::training::TrainedRun;
use std::ops::ControlFlow;
use std::time::Instant;

/// A model's answers.
#[derive(Debug, Clone)]
pub struct ScoredModel {
    /// The model's name.
    pub name: String,
    /// Its numbers, one for each query set.
    pub results: Vec<ResultRow>,
    /// Its scores, in the same order.
    pub records: Vec<ScoreLog>,
}

/// A trained model's answers, and those of the counting models.
#[derive(Debug, Clone)]
pub struct EvaluationWithBaselines {
    /// The trained model.
    pub model: ScoredModel,
    /// The counting models, asked the same.
    pub counting: Vec<ScoredModel>,
    /// What evaluation alone would say.
    pub report: EvaluationReport,
    /// Seconds for drawing or reading the negatives.
    pub asking_seconds: f64,
}

impl TrainedRun {
    /// Evaluates it as [`TrainedRun::evaluate`] does, keeps the scores, and asks the counting
    /// models the same. `watch` is called after every step.
    pub fn evaluate_with_baselines(
        &self,
        asked: &EvalScope,
        watch: &mut dyn FnMut(EvalProgress<'_>) -> ControlFlow<()>,
    ) -> Result<EvaluationWithBaselines> {
        let started = Instant::now();
        let passes = self.passes(asked)?;
        let asking_seconds = started.elapsed().as_secs_f64();
        let log = &self.stream().log;
        let name = self.config().model.to_string();
        let mut model =
            ScoredModel { name: name.clone(), results: Vec::new(), records: Vec::new() };
        let mut counting: Vec<ScoredModel> = Vec::new();
        // Every pass goes on from the state after training, which is made once.
        let after_training = self.counting_after_training()?;
        for pass in &passes {
            let mut records = ScoreLog::of_pass(pass);
            let mut told = |done, of| watch(EvalProgress { model: &name, done, of });
            let outcomes =
                evaluate_recording(self.trainer()?.as_mut(), log, pass, &mut told, &mut records)?;
            model.results.extend(self.rows(&self.config().model, pass, outcomes));
            model.records.extend(records);
            for (place, (config, session)) in after_training.iter().enumerate() {
                let name = config.to_string();
                let mut records = ScoreLog::of_pass(pass);
                let mut told = |done, of| watch(EvalProgress { model: &name, done, of });
                let outcomes = evaluate_recording(
                    session.fork().as_mut(),
                    log,
                    pass,
                    &mut told,
                    &mut records,
                )?;
                let results = self.rows(config, pass, outcomes);
                match counting.get_mut(place) {
                    Some(scored_model) => {
                        scored_model.results.extend(results);
                        scored_model.records.extend(records);
                    }
                    None => counting.push(ScoredModel { name: name.clone(), results, records }),
                }
            }
        }
        let mut report = self.report(model.results.clone());
        report.against_counting = against_counting(&model, &counting);
        report.baselines = counting.iter().flat_map(|scored| scored.results.clone()).collect();
        report.ties = self.ties(MANY_TIES, &mut |done, of| {
            watch(EvalProgress { model: "order of ties", done, of })
        })?;
        Ok(EvaluationWithBaselines { model, counting, report, asking_seconds })
    }

    /// All counting models, each with the session that has observed training.
    fn counting_after_training(&self) -> Result<Vec<(ModelConfig, Box<dyn Session>)>> {
        let step = self.config().protocol.step();
        let observed = |config: ModelConfig| {
            let mut session = config.open(&self.context.info)?;
            train_observing(session.as_mut(), &self.stream().log, self.split(), step)?;
            Ok((config, session))
        };
        ModelConfig::counting_models().into_iter().map(observed).collect()
    }
}

/// For each query set the best counting model and how far the trained one is from it.
fn against_counting(model: &ScoredModel, counting: &[ScoredModel]) -> Vec<AgainstCounting> {
    let compared = model.results.iter().zip(&model.records).enumerate();
    compared
        .filter_map(|(place, (row, record))| {
            let best = counting.iter().max_by(|a, b| {
                a.results[place].headline().1.total_cmp(&b.results[place].headline().1)
            })?;
            against((row, record), (&best.results[place], &best.records[place]))
        })
        .collect()
}
