//! `lstep` without a command: the main job on the embedded sample stream.

use crate::train::train_showing;
use crate::{evaluate, inspect, say};
use anyhow::Result;
use lstep::run::{
    Contender, DataConfig, Evaluation, Fit, ModelConfig, RunConfig, RunFolder, Stream, SyntheticConfig, generate,
    inspect as portrait,
};

/// Epochs of the demonstration, few enough for a minute.
const EPOCHS: u32 = 12;

/// Makes the sample stream, inspects it, evaluates the counting models, trains L-STEP, prints the table.
pub fn run() -> Result<()> {
    let dataset = generate(&SyntheticConfig::default())?;
    say("The sample stream, made here with planted habits (`lstep generate` writes it to a file):\n")?;
    inspect::show(&portrait(&dataset))?;
    let stream = Stream::from(dataset);
    let data = DataConfig { events: "the sample stream".into(), ..DataConfig::default() };
    let config = RunConfig::start(data, ModelConfig::learned("lstep")?, None)?
        .with(None, &[format!("train.epochs={EPOCHS}")])?;
    let asked = config.everything();
    let evaluation = Evaluation {
        protocol: config.protocol.clone(),
        asked: asked.clone(),
        contenders: ModelConfig::counting_models().into_iter().map(Contender::Fixed).collect(),
        read_negatives: None,
        write_negatives: None,
    };
    let mut report = evaluate::watched(&evaluation, &stream)?;

    say("\nTraining L-STEP on its first 70 %, selecting on the next 15 %:\n")?;
    let folder = std::env::temp_dir().join(format!("lstep-sample-{}", std::process::id()));
    let trained = train(config, stream, &folder, &asked);
    // Whatever happened, nothing stays behind.
    let removed = std::fs::remove_dir_all(&folder);
    match trained? {
        Some(results) => report.results.extend(results),
        None => return say("Stopped."),
    }
    removed?;

    say("\nAsked about the last 15 %, in steps of 200 events:\n")?;
    evaluate::show(&report)?;
    say("\nYour own events: lstep inspect FILE, lstep train FILE --out RUN; lstep --help tells the rest.")
}

/// Trains in a folder; nothing if it was stopped.
fn train(
    config: RunConfig,
    stream: Stream,
    folder: &std::path::Path,
    asked: &lstep::run::Asked,
) -> Result<Option<Vec<lstep::run::ResultRow>>> {
    let mut fit = Fit::begin(config, stream, RunFolder::new(folder))?;
    if !train_showing(&mut fit)? {
        return Ok(None);
    }
    Ok(Some(fit.into_trained()?.evaluate(asked, &|_, _| ())?.results))
}
