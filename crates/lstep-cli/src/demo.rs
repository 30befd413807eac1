//! `lstep` without a command: the main job on the embedded sample stream.

use crate::interrupt::{Stopped, go_on};
use crate::train::train_showing;
use crate::{evaluate, evaluation, inspect, say};
use anyhow::{Result, bail};
use lstep::evaluation::Evaluation;
use lstep::model::ModelConfig;
use lstep::read::synthetic::{SyntheticConfig, generate};
use lstep::settings::{DataConfig, RunConfig};
use lstep::stream::{Stream, inspect as stats};
use lstep::training::TrainingRun;

/// What the demonstration trains, and for how many epochs: few enough for about a minute.
const TRAINED: [(&str, u32); 2] = [("lstep", 12), ("lstep-pair", 6)];

/// Makes the sample stream, inspects it, evaluates the counting models, trains L-STEP as the paper
/// has it and L-STEP that sees the pair, prints the table.
pub fn run() -> Result<()> {
    let dataset = generate(&SyntheticConfig::default())?;
    say(
        "The sample stream, made here with planted habits (`lstep generate` writes it to a file):\n",
    )?;
    inspect::show(&stats(&dataset))?;
    let stream = Stream::from(dataset);
    let data = DataConfig { events: "the sample stream".into(), ..DataConfig::default() };
    let config = |(name, epochs): (&str, u32)| {
        RunConfig::builder(data.clone())
            .model(name)
            .set(&[format!("train.epochs={epochs}")])
            .build()
    };
    let first = config(TRAINED[0])?;
    let asked = first.protocol.full_scope();
    let evaluation = Evaluation::new(&stream)
        .protocol(first.protocol.clone())
        .scope(asked.clone())
        .models(ModelConfig::counting_models());
    let mut report = evaluate::watched(evaluation)?;

    say(
        "\nTraining L-STEP on its first 70 %, selecting on the next 15 %; then lstep-pair, which sees the two nodes together:\n",
    )?;
    for model in TRAINED {
        let mut run = TrainingRun::begin_in_memory(config(model)?, stream.clone())?;
        if !train_showing(&mut run)? {
            bail!(Stopped("Stopped.".into()));
        }
        report
            .results
            .extend(run.into_trained()?.evaluate_watching(&asked, &mut |_, _| go_on())?.results);
    }

    say("\nAsked about the last 15 %, in steps of 200 events:\n")?;
    evaluation::show(&report)?;
    say(
        "\nYour own events: lstep inspect FILE, lstep train FILE --out RUN; lstep --help tells the rest.",
    )
}
