//! A learned model in a crate of its own: trained, evaluated, and audited for leaks.
//!
//! The model encodes a node by the ages of its last ten events, and lets the field's two-layer
//! predictor score pairs, with counts of the pair beside it. Everything it needs is public; nothing
//! of the library knows about it.
//!
//! ```sh
//! cargo run --release --example custom_model
//! ```

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use lstep::audit::laws::{Check, Opening, Submission, check_model};
use lstep::checkpoint::Checkpoint;
use lstep::error::Result;
use lstep::evaluation::{evaluate, train_observing, unwatched};
use lstep::event::Event;
use lstep::graph::{Revealed, Seed};
use lstep::model::{
    Chunk, Composite, Encoded, FeatureWidths, ForwardContext, Mlp, Mode, NeighbourBatch,
    NodeEncoder, ObserveScratch, PairConfig, Sampling, Session, StreamInfo, new_trainer, open,
};
use lstep::nn::{Linear, TimeEncoder};
use lstep::protocol::{EvalScope, Part, Protocol, Setting, StepRule, Strategy, StreamProtocol};
use lstep::protocol::{Subject, Visibility};
use lstep::read::synthetic::{SyntheticConfig, generate};
use lstep::settings::TrainConfig;
use lstep::stream::{Stream, info};
use lstep::tensor::{Activation, Parameters, Segments, Weighting};
use lstep::training::{Progress, TrainingStream};
use std::ops::ControlFlow;

/// h = relu(W mean over the last ten events of f_T(age) + b).
#[derive(Clone)]
struct Rhythm {
    time: TimeEncoder,
    layer: Linear,
}

const WIDTH: usize = 16;
const RECENT: usize = 10;

type RhythmModel = Composite<Rhythm, Mlp>;

fn rhythm(seed: u64) -> Result<RhythmModel> {
    Composite::build(seed, |parameters| {
        let time = TimeEncoder::add(parameters, WIDTH);
        let layer = Linear::add(parameters, "rhythm", WIDTH, WIDTH);
        let features = PairConfig { walks: 0, positions: false, ..PairConfig::default() };
        let head = Mlp::add(parameters, WIDTH).with_features(parameters, &features, 0);
        Ok((Rhythm { time, layer }, head))
    })
}

impl NodeEncoder for Rhythm {
    type State = ();
    type Scratch = NeighbourBatch;
    type Ahead = ();

    fn feature_widths(&self) -> FeatureWidths {
        // Features are ignored, however wide they are.
        FeatureWidths { node: usize::MAX, edge: usize::MAX }
    }

    fn chunk(&self, _: Mode) -> Chunk {
        Chunk { seeds: 512, pairs: 512 }
    }

    fn init(&self, _: &StreamInfo) {}

    fn encode<'t>(
        &'t self,
        context: &mut ForwardContext<'_, 't>,
        (): &'t (),
        seeds: &[Seed],
        neighbours: &mut NeighbourBatch,
    ) -> Encoded {
        neighbours.gather(context.past, seeds, RECENT, Sampling::Recent);
        let tape = &mut *context.tape;
        let ages = tape.times(neighbours.ages().iter().copied());
        let encoded = self.time.apply(tape, ages);
        let ends = neighbours.spans().map(|span| span.end);
        let offsets = tape.indices(std::iter::once(0).chain(ends));
        let sum = tape.segment_sum(encoded, Segments { rows: None, offsets }, Weighting::Sum);
        let mean = tape.scale(sum, 1.0 / RECENT as f32);
        let hidden = self.layer.apply(tape, mean, Activation::Relu);
        Encoded { hidden: Some(hidden), ..Encoded::default() }
    }

    fn observe(
        &self,
        _: &Parameters,
        _: Revealed<'_>,
        (): &mut (),
        _: &[Event],
        (): (),
        _: &mut ObserveScratch<NeighbourBatch>,
    ) {
    }

    fn save_state<'a>(&self, (): &'a (), _: &mut Checkpoint<'a>) {}

    fn load_state(&self, _: &StreamInfo, _: &mut Checkpoint<'_>) -> Result<()> {
        Ok(())
    }
}

fn main() -> Result<()> {
    let config = SyntheticConfig { events: 4_000, nodes: 200, ..SyntheticConfig::default() };
    let stream = Stream::from(generate(&config)?);
    let log = &stream.log;
    let protocol = Protocol::Stream(StreamProtocol::default());
    let subject = Subject { events: log.events(), names: &stream.names };
    let plan = protocol.plan(subject)?;
    let split = plan.split();
    let info = info(log, split);

    // Train three epochs on the training part.
    let train = TrainConfig { learning_rate: 1e-3, ..TrainConfig::default() };
    let step = StepRule::Events(200);
    let training = TrainingStream::new(log, split, step, Visibility::Event, &train)?;
    let mut trainer = new_trainer(rhythm(train.seed)?, &info, train.optimizer());
    for epoch in 1..=3 {
        trainer.reset_state();
        let mut progress = Progress::start(epoch);
        training
            .run_epoch(trainer.as_mut(), &mut progress, &mut |_, _| ControlFlow::Continue(()))?;
        println!("epoch {epoch}: loss {:.4}", progress.loss());
    }

    // Evaluate it beside the same model without training.
    let scope = EvalScope {
        parts: vec![Part::Test],
        settings: vec![Setting::Transductive],
        strategies: vec![Strategy::Random, Strategy::Historical],
    };
    let passes = plan.passes(subject, &scope)?;
    let mut untrained = open(rhythm(train.seed)?, &info);
    for (name, session) in
        [("untrained", untrained.as_mut()), ("trained", trainer.as_mut() as &mut dyn Session)]
    {
        let mut session = session.fork();
        if name == "untrained" {
            train_observing(session.as_mut(), log, split, step)?;
        }
        for outcome in evaluate(session.as_mut(), log, &passes[0], &mut unwatched)? {
            println!("{name}: {} negatives, AP {:.4}", outcome.negatives, outcome.ap);
        }
    }

    // Audit it: does it look ahead, or at the rest of the batch?
    let make = |opening: &Opening<'_>| Ok(open(rhythm(0)?, opening.info));
    let findings = check_model(&Submission::new(&make), log, Check::small())?;
    assert!(findings.breaches().is_empty(), "{findings:?}");
    println!("audit: all {} laws are kept", findings.laws.len());
    Ok(())
}
