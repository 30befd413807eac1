//! What a run depends on: settings, stream and plan, the same from its first epoch to its last
//! question.

use crate::checkpoint::StreamExtent;
use crate::error::{Error, FaultKind, InputFault, Remedy, Result};
use crate::model::{FeatureWidths, StreamInfo, Trainer};
use crate::protocol::{EvalPass, EvalScope, Plan, Split, Subject, Visibility};
use crate::read::{Dataset, read};
use crate::settings::RunConfig;
use crate::stream::Stream;
use crate::stream::info;
use crate::training::RunFolder;
use std::borrow::Cow;
use std::time::Instant;

/// The parts of a run that do not change while it trains.
pub(crate) struct RunContext {
    pub config: RunConfig,
    pub stream: Stream,
    pub plan: Plan,
    pub info: StreamInfo,
    pub timings: SetupTimings,
    /// Events at the end of the file that are no part of the run: they have happened since.
    pub since: Option<Dataset>,
}

/// Seconds of what comes before training.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SetupTimings {
    /// Reading the events, where this program did it.
    pub reading: Option<f64>,
    /// Splitting the stream.
    pub splitting: f64,
}

impl RunContext {
    /// Settings are complete from here on: the model has room for the stream's features.
    pub fn new(mut config: RunConfig, mut stream: Stream) -> Result<RunContext> {
        config.train.check()?;
        if let Cow::Owned(laid) = stream.under(&config.protocol)? {
            stream = laid;
        }
        config.model = config.model.widened_for(feature_widths(&stream));
        let subject = Subject { events: stream.log.events(), names: &stream.names };
        let started = Instant::now();
        let plan = config.protocol.plan(subject)?;
        let timings = SetupTimings { reading: None, splitting: started.elapsed().as_secs_f64() };
        let info = info(&stream.log, plan.split());
        Ok(RunContext { config, stream, plan, info, timings, since: None })
    }

    /// Reads the events of a run. A file that has grown is known up to where it ended when the run
    /// began.
    pub fn read(config: RunConfig, folder: &RunFolder) -> Result<RunContext> {
        let started = Instant::now();
        let dataset = read(&config.data.events, &config.data.options())
            .map_err(|error| moved(error, &config, folder))?;
        let known = folder.known_stream()?.map_or(usize::MAX, |known| known.events as usize);
        let (dataset, since) = dataset.split_at(known)?;
        let reading = Some(started.elapsed().as_secs_f64());
        let context = RunContext::new(config, Stream::from(dataset))?;
        let timings = SetupTimings { reading, ..context.timings };
        Ok(RunContext { timings, since, ..context })
    }

    pub fn split(&self) -> &Split {
        self.plan.split()
    }

    /// The passes that answer everything in `scope`.
    pub fn passes(&self, scope: &EvalScope) -> Result<Vec<EvalPass>> {
        self.plan.passes(self.subject(), scope)
    }

    pub fn feature_widths(&self) -> FeatureWidths {
        feature_widths(&self.stream)
    }

    /// What the stream allows in a checkpoint of the model.
    pub fn extent(&self) -> StreamExtent {
        let nodes = self.stream.names.len();
        StreamExtent { nodes, event_features: self.feature_widths().edge }
    }

    pub fn subject(&self) -> Subject<'_> {
        Subject { events: self.stream.log.events(), names: &self.stream.names }
    }

    /// The model before its first batch.
    pub fn trainer(&self) -> Result<Box<dyn Trainer>> {
        let train = &self.config.train;
        self.config.model.trainer(&self.info, train.seed, train.optimizer())
    }

    pub fn visibility(&self) -> Visibility {
        self.config.protocol.visibility()
    }
}

/// Says what to do where a run does not find its events.
fn moved(error: Error, config: &RunConfig, folder: &RunFolder) -> Error {
    match error {
        Error::Io { path, reason }
            if path == config.data.events && reason.kind() == std::io::ErrorKind::NotFound =>
        {
            let problem = format!("is not there any more ({reason})");
            let remedy = Remedy::MovedEvents(folder.path().display().to_string());
            let fault = InputFault::new(path.display().to_string(), problem, remedy);
            fault.kind(FaultKind::Missing).into()
        }
        other => other,
    }
}

fn feature_widths(stream: &Stream) -> FeatureWidths {
    let (nodes, events) = (stream.log.node_features(), stream.log.events().features());
    FeatureWidths { node: nodes.width(), edge: events.width() }
}
