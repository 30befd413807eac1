//! A trained model that can travel: what is needed to use it, without the file it was trained on.
//!
//! A [`Bundle`] holds the weights of the best epoch, the state after the whole stream, the events
//! with their nodes' names and their clock, the candidates, and where all of it comes from. It is
//! made from a run, written to one checked file, and read again; it scores the same bits wherever
//! it is. The file's layout is in `file.rs`.

mod file;

use crate::checkpoint::{Checkpoint, StreamExtent};
use crate::error::Result;
use crate::event::{Clock, Names, NodeSet};
use crate::model::{OptimizerConfig, StreamInfo, Trainer, with_most_weights};
use crate::read::Dataset;
use crate::results::Calibration;
use crate::serving::{Live, Scorer};
use crate::settings::RunConfig;
use crate::stream::Stream;
use crate::training::{RunFolder, TrainedRun};
use serde::Serialize;

/// A trained model that has observed everything it was given, with all that its use needs.
pub struct Bundle {
    pub(super) live: Live<dyn Trainer>,
    pub(super) names: Names,
    pub(super) clock: Clock,
    /// The candidates: every node that has been a destination.
    pub(super) destinations: NodeSet,
    /// What the model knew before its first event.
    info: StreamInfo,
    about: BundleInfo,
}

/// Where a bundle comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BundleInfo {
    /// The name of the dataset.
    pub dataset: String,
    /// All settings of the run.
    pub settings: RunConfig,
    /// The SHA-256 of the run's stream: who met whom when, with which features and names.
    pub stream_sha256: String,
    /// How many events the run's stream had; the bundle may have observed more since.
    pub run_events: u64,
    /// The version of the library that made the bundle from the run.
    pub version: String,
    /// From scores to probabilities, if the run has such a curve.
    #[serde(skip)]
    pub calibration: Option<Calibration>,
}

impl Bundle {
    /// The best epoch of a run, after it has observed validation and test, too, and everything that
    /// has happened since: the end of a file that has grown, and its updates.
    pub fn of_run(folder: &RunFolder) -> Result<Bundle> {
        Bundle::of_trained(TrainedRun::open(folder)?)?.updated(folder)
    }

    /// After the updates of its run's folder.
    pub(super) fn updated(self, folder: &RunFolder) -> Result<Bundle> {
        let mut scorer = Scorer::from(self);
        for update in folder.updates()? {
            scorer.observe_update(&update)?;
        }
        Ok(scorer.into_bundle())
    }

    /// As [`Bundle::of_run`], for a run that is open already, and without updates.
    pub fn of_trained(trained: TrainedRun) -> Result<Bundle> {
        let parts = Bundle::parts(&trained)?;
        Bundle::join(trained.into_streams(), parts)
    }

    /// As [`Bundle::of_trained`], for a run that is still needed. Its stream is copied.
    pub fn of_open(trained: &TrainedRun) -> Result<Bundle> {
        let since = trained.since().cloned();
        Bundle::join((trained.stream().clone(), since), Bundle::parts(trained)?)
    }

    /// What a bundle has beside the stream.
    fn parts(trained: &TrainedRun) -> Result<(Box<dyn Trainer>, StreamInfo, BundleInfo)> {
        let trainer = trained.trainer_at_the_end()?;
        let info = trained.info().clone();
        let about = BundleInfo {
            dataset: trained.stream().name.clone(),
            settings: trained.config().clone(),
            stream_sha256: trained.stream_sha256().to_string(),
            run_events: trained.stream().log.len() as u64,
            version: env!("CARGO_PKG_VERSION").to_string(),
            calibration: trained.calibration()?,
        };
        Ok((trainer, info, about))
    }

    /// Joins a model with its stream, and lets it observe what has happened since.
    fn join(
        (stream, since): (Stream, Option<Dataset>),
        (trainer, info, about): (Box<dyn Trainer>, StreamInfo, BundleInfo),
    ) -> Result<Bundle> {
        let destinations = stream.log.events().destinations().iter().copied().collect();
        let bundle = Bundle {
            live: Live::resume(stream.log, trainer),
            names: stream.names,
            clock: stream.clock,
            destinations,
            info,
            about,
        };
        let Some(since) = since else { return Ok(bundle) };
        let mut scorer = Scorer::from(bundle);
        let file = scorer.bundle().about().settings.data.events.clone();
        scorer.new_events(&file, since)?.observe(&mut scorer)?;
        Ok(scorer.into_bundle())
    }

    /// Where it comes from.
    pub fn about(&self) -> &BundleInfo {
        &self.about
    }

    /// What the model knew before its first event.
    pub(super) fn info(&self) -> &StreamInfo {
        &self.info
    }

    /// How many events it has observed.
    pub fn events(&self) -> usize {
        self.live.log().len()
    }

    /// The names of its nodes.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// How its times are written.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// A second bundle that goes its own way. O(events and weights).
    pub fn duplicate(&self) -> Result<Bundle> {
        let trainer = self.about.trainer(&self.info, self.extent(), self.model())?;
        Ok(Bundle {
            live: Live::resume(self.live.log().clone(), trainer),
            names: self.names.clone(),
            clock: self.clock,
            destinations: self.destinations.clone(),
            info: self.info.clone(),
            about: self.about.clone(),
        })
    }

    /// What its stream allows in a state.
    fn extent(&self) -> StreamExtent {
        let event_features = self.live.log().events().features().width();
        StreamExtent { nodes: self.names.len(), event_features }
    }

    /// The weights and the state, without what only training needs.
    fn model(&self) -> Checkpoint<'_> {
        let mut saved = Checkpoint::default();
        self.live.session().save(&mut saved);
        let of_training = |name: &str| {
            name == "adam.steps"
                || ["first.", "second.", "average."].iter().any(|part| name.starts_with(part))
        };
        saved.tensors.retain(|tensor| !of_training(&tensor.name));
        saved
    }
}

impl BundleInfo {
    /// The model, with the weights and the state that [`Bundle::model`] gave.
    fn trainer(
        &self,
        info: &StreamInfo,
        extent: StreamExtent,
        mut model: Checkpoint<'_>,
    ) -> Result<Box<dyn Trainer>> {
        let RunConfig { model: config, train, .. } = &self.settings;
        // The weights are those that are used: a mean of them, if there was one, is in its place.
        let optimizer = OptimizerConfig { ema: 0.0, ..train.optimizer() };
        let weight = |tensor: &crate::checkpoint::Tensor<'_>| {
            Some((tensor.name.strip_prefix("weight.")?.to_string(), tensor.values.len()))
        };
        let weights: Vec<(String, usize)> = model.tensors.iter().filter_map(weight).collect();
        let count = weights.iter().map(|(_, count)| count).sum();
        let mut trainer = with_most_weights(count, || config.trainer(info, train.seed, optimizer))?;
        // A trainer goes on where it was; the optimizer of this one begins anew.
        for (name, count) in weights {
            for moments in ["first", "second"] {
                model.push_f32(&format!("{moments}.{name}"), vec![0.0; count]);
            }
        }
        model.push_u64("adam.steps", vec![0]);
        model.set_extent(extent);
        trainer.load(model)?;
        Ok(trainer)
    }
}
