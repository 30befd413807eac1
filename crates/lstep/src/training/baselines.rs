//! A trained run asked once more, with everything kept that a picture of it needs, and the counting
//! models asked the same questions.
//!
//! A number of a learned model means little without that of a model that only counts. Both answer
//! the same pass, in the same steps.

use crate::error::Result;
use crate::evaluation::{
    EvalProgress, KeptRanks, ScoreLog, Watch, against, evaluate_recording, train_observing,
};
use crate::event::NodeSet;
use crate::model::{ModelConfig, Session};
use crate::protocol::{EvalScope, Part, Setting, Strategy};
use crate::results::{
    AgainstCounting, Calibration, EvaluationReport, MANY_TIES, Reliability, ResultRow,
};
use crate::settings::Purpose;
use crate::training::{Examples, TrainedRun};
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
    /// From the trained model's scores to probabilities, for a run that ranks.
    pub calibration: Option<Calibration>,
    /// Questions with what the trained model answered and what happened, for a run that ranks.
    pub examples: Examples,
    /// Seconds for drawing or reading the negatives.
    pub asking_seconds: f64,
}

impl EvaluationWithBaselines {
    /// The trained model's ranks, to be compared with those of another run.
    pub fn kept_ranks(&self) -> Vec<KeptRanks> {
        let rows = self.model.results.iter().zip(&self.model.records);
        rows.map(|(row, record)| KeptRanks::of(row, record)).collect()
    }
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
        let first = passes.first().and_then(|pass| pass.query_sets.first());
        let examples = first
            .zip(model.records.first())
            .map_or_else(Examples::default, |(asked, record)| Examples::of(log, asked, record));
        let calibration = self.calibrate(&mut |done, of| {
            watch(EvalProgress { model: "calibration on validation", done, of })
        })?;
        let mut report = self.report(model.results.clone());
        report.reliability = calibration
            .as_ref()
            .zip(model.records.first())
            .and_then(|(curve, record)| reliability(curve, record));
        report.against_counting = against_counting(&model, &counting);
        report.baselines = counting.iter().flat_map(|scored| scored.results.clone()).collect();
        report.ties = self.ties(MANY_TIES, &mut |done, of| {
            watch(EvalProgress { model: "order of ties", done, of })
        })?;
        Ok(EvaluationWithBaselines {
            model,
            counting,
            report,
            calibration,
            examples,
            asking_seconds,
        })
    }

    /// The curve from scores to probabilities, fitted on the events that selected the best epoch,
    /// asked against as many destinations. Only a run for ranking has one: the negatives of a
    /// benchmark are too few, or chosen to be hard.
    pub fn calibrate(&self, watch: &mut Watch<'_>) -> Result<Option<Calibration>> {
        let config = self.config();
        let train = &config.train;
        if config.purpose != Purpose::Ranking || train.select_negatives.is_none() {
            return Ok(None);
        }
        let mut plan = self.context.plan.clone();
        plan.ask_otherwise(train.select_negatives, train.select_questions)?;
        let asked = EvalScope {
            parts: vec![Part::Validation],
            settings: vec![Setting::Transductive],
            strategies: vec![Strategy::Random],
        };
        let Some(pass) = plan.passes(self.context.subject(), &asked)?.pop() else {
            return Ok(None);
        };
        let mut records = ScoreLog::of_pass(&pass);
        let log = &self.stream().log;
        evaluate_recording(self.trainer()?.as_mut(), log, &pass, watch, &mut records)?;
        let destinations = log.events().destinations().iter().copied().collect::<NodeSet>().len();
        Ok(records.first().and_then(|record| calibration(record, destinations)))
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

/// Fits the curve to a record. A sample of negatives stands for all other destinations.
fn calibration(record: &ScoreLog, destinations: usize) -> Option<Calibration> {
    let mut scored = Vec::new();
    for answer in record.answers() {
        scored.push((answer.positive, true, 1.0));
        let weight = destinations.saturating_sub(1) as f64 / answer.negatives.len().max(1) as f64;
        // One negative may stand for many, but never for less than itself.
        let weight = weight.max(1.0);
        scored.extend(answer.negatives.iter().map(|&score| (score, false, weight)));
    }
    Calibration::fit(scored, record.len(), destinations)
}

/// How far the curve holds on the ten likeliest of every row.
fn reliability(curve: &Calibration, record: &ScoreLog) -> Option<Reliability> {
    let leaders = record.leaders();
    let said = |&(score, came): &(f64, bool)| (curve.probability(score), came);
    Reliability::of(leaders.iter().flatten().map(said).collect(), leaders.len())
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
