//! `lstep` without a command: the main job on the embedded sample stream.

use crate::{evaluate, inspect, say};
use anyhow::Result;
use lstep::run::{
    Asked, Contender, Evaluation, ModelConfig, Part, Protocol, Setting, Strategy, Stream, StreamProtocol,
    SyntheticConfig, generate, inspect as portrait,
};

/// Makes the sample stream, inspects it, evaluates the counting models, prints the table.
pub fn run() -> Result<()> {
    let dataset = generate(&SyntheticConfig::default())?;
    say("The sample stream, made here with planted habits (`lstep generate` writes it to a file):\n")?;
    inspect::show(&portrait(&dataset))?;
    let evaluation = Evaluation {
        protocol: Protocol::Stream(StreamProtocol::default()),
        asked: Asked {
            parts: vec![Part::Test],
            settings: vec![Setting::Transductive],
            strategies: vec![Strategy::Random, Strategy::Historical, Strategy::Inductive],
        },
        contenders: ModelConfig::counting_models().into_iter().map(Contender::Fixed).collect(),
        read_negatives: None,
        write_negatives: None,
    };
    say("\nHow far counting gets on its last 15 %, asked in steps of 200 events:\n")?;
    evaluate::show(&evaluate::watched(&evaluation, &Stream::from(dataset))?)?;
    say("\nYour own events: lstep inspect FILE, lstep evaluate FILE; lstep --help tells the rest.")
}
