//! `lstep plan`: what training on several machines would take, before anybody rents them.

use crate::args::{EventsFile, run_model};
use crate::say;
use crate::table::Table;
use anyhow::{Result, bail};
use clap::Args;
use clap::builder::PossibleValuesParser;
use lstep::model::{EVENT_BYTES, NODE_BYTES, StateSize, state_size};
use lstep::protocol::StepRule;
use lstep::settings::{Purpose, RunConfig, preset_names};
use lstep::stream::{DatasetStats, Stream};
use lstep::training::{
    Network, RankPlan, ShardCost, StepCost, TrainingRun, Worth, simulate_shards,
};
use serde::Serialize;
use std::time::Duration;

/// Most lanes that a batch can have.
const MOST_LANES: usize = 64;

/// What would training take on one machine and on several: time, traffic and memory?
///
/// A few steps are timed here on one core, on the stream itself. A cost model then adds the network:
/// every rank observes every step, computes its lanes, and exchanges slices of one gradient (see
/// docs/engines/mpi.md for its constants). It says plainly where several machines are not worth it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  lstep plan events.csv --model tgn --ranks 1,8
  lstep plan events.csv --model dygformer --step 2000 --ranks 1,8,64 --network 25 --cores 16
  lstep plan events.csv --model lstep-pair --simulate-shards 2,16,256      beyond one machine's memory")]
pub struct Plan {
    #[command(flatten)]
    events: EventsFile,

    /// What is trained
    #[arg(long, value_name = "NAME", default_value = "lstep-pair", value_parser = run_model)]
    model: String,

    /// The published settings of the model for a dataset
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(preset_names()))]
    preset: Option<String>,

    /// Events in a step, the same as --set protocol.step=N
    #[arg(long, value_name = "N")]
    step: Option<String>,

    /// A single setting, for example train.lanes=16 [default of train.lanes: the most ranks asked
    /// about, at most 64]
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Numbers of ranks, powers of two, separated by commas
    #[arg(long, value_name = "RANKS", value_delimiter = ',', default_values_t = [1, 2, 8, 64])]
    ranks: Vec<usize>,

    /// Line rate between ranks in Gb/s
    #[arg(long, value_name = "GBITS", default_value_t = 10.0)]
    network: f64,

    /// Time of a message whatever its size, in microseconds
    #[arg(long, value_name = "US", default_value_t = 30.0)]
    latency: f64,

    /// Cores of each rank
    #[arg(long, value_name = "N", default_value_t = 8)]
    cores: usize,

    /// About how long steps are timed
    #[arg(long, value_name = "S", default_value_t = 10.0)]
    seconds: f64,

    /// Also simulate a state that is spread over so many machines, a design that is not built
    #[arg(long, value_name = "SHARDS", value_delimiter = ',', num_args = 0.., default_missing_value = "2,4,8,16,32,64,128,256")]
    simulate_shards: Option<Vec<usize>>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What is printed.
#[derive(Serialize)]
struct PlanReport {
    dataset: String,
    events: usize,
    nodes: usize,
    pairs: usize,
    event_features: usize,
    model: String,
    /// Measured on one core of this machine.
    cost: StepCost,
    network: Network,
    state: StateSize,
    event_bytes: usize,
    plans: Vec<RankRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shards: Vec<ShardCost>,
}

/// A number of ranks.
#[derive(Serialize)]
struct RankRow {
    #[serde(flatten)]
    plan: RankPlan,
    /// Of each rank: log, training's own log, state, weights and gradients.
    memory_bytes: u64,
}

impl Plan {
    /// Measures, computes, prints.
    pub fn run(&self) -> Result<()> {
        if let Some(ranks) = self.ranks.iter().find(|ranks| !ranks.is_power_of_two()) {
            bail!("--ranks has {ranks}: only powers of two split the tree of lanes");
        }
        let positive = |value: f64| value > 0.0 && value.is_finite();
        if !positive(self.network) || !positive(self.seconds) || self.latency < 0.0 {
            bail!("--network and --seconds have to be above 0, and --latency not below");
        }
        if self.simulate_shards.iter().flatten().any(|shards| *shards == 0) {
            bail!("--simulate-shards has 0: give at least 1");
        }
        let report = self.report()?;
        if self.json {
            return say(serde_json::to_string_pretty(&report)?);
        }
        show(&report)
    }

    fn report(&self) -> Result<PlanReport> {
        let stream = Stream::from(self.events.read()?);
        let stats = DatasetStats::of(stream.log.events(), stream.log.node_features());
        let (events, nodes) = (stream.log.len(), stream.names.len());
        let features = stream.log.events().features().width();
        let config = self.config()?;
        let step = match config.protocol.step() {
            StepRule::Events(events) => events as usize,
            StepRule::DistinctTime => 200,
        };
        let network =
            Network { gigabits: self.network, latency: self.latency * 1e-6, cores: self.cores };
        // Models that look at recent neighbours say how many; 20 is the field's usual number.
        let settings = serde_json::to_value(&config.model)?;
        let recent = settings["recent"].as_u64().unwrap_or(20) as usize;
        let busy = crate::progress::busy("measuring");
        let state = state_size(&config.model, features)?;
        let shards = self.simulate_shards.as_deref().map_or_else(Vec::new, |shards| {
            simulate_shards(&stream.log, step, recent, state.per_node, shards)
        });
        let (dataset, model) = (stream.name.clone(), config.model.to_string());
        let run = TrainingRun::begin_in_memory(config, stream)?;
        let cost = run.measure(Duration::from_secs_f64(self.seconds))?;
        busy.finish_and_clear();
        let row = |&ranks: &usize| RankRow {
            plan: RankPlan::new(&cost, ranks, network),
            memory_bytes: memory(&stats, &state, features, cost.lanes.div_ceil(ranks)),
        };
        Ok(PlanReport {
            dataset,
            events,
            nodes,
            pairs: stats.distinct_pairs,
            event_features: features,
            model,
            network,
            state,
            event_bytes: EVENT_BYTES + 4 * features,
            plans: self.ranks.iter().map(row).collect(),
            shards,
            cost,
        })
    }

    fn config(&self) -> Result<RunConfig> {
        let most = self.ranks.iter().copied().max().unwrap_or(1).min(MOST_LANES);
        let mut keys = vec![format!("train.lanes={most}")];
        keys.extend(self.step.as_ref().map(|step| format!("protocol.step={step}")));
        keys.extend(self.set.iter().cloned());
        let data = self.events.data();
        let builder = RunConfig::builder(data)
            .model(self.model.as_str())
            .preset(self.preset.as_deref())
            .purpose(self.preset.is_none().then_some(Purpose::Ranking))
            .set(&keys);
        Ok(builder.build()?)
    }
}

/// Bytes of a rank: the log, training's own log of about seven tenths of it, the state, and weights
/// with two moments, a running mean, and a gradient for each lane of its own.
fn memory(stats: &DatasetStats, state: &StateSize, features: usize, lanes: usize) -> u64 {
    let events = stats.events as f64 * (EVENT_BYTES + 4 * features) as f64;
    let nodes = stats.nodes as f64 * (NODE_BYTES + 4 * stats.node_feature_width) as f64;
    let of_state = stats.nodes as f64 * state.per_node
        + stats.distinct_pairs as f64 * state.per_pair
        + stats.events as f64 * state.per_event;
    let weights = (state.weights * 4 * (4 + lanes)) as f64;
    (1.7 * events + nodes + of_state + weights) as u64
}

fn show(report: &PlanReport) -> Result<()> {
    let PlanReport { cost, network, state, .. } = report;
    say(format!(
        "{} on {}: {} events, {} nodes, {} pairs; steps of {} in {} lane(s), {} weights",
        report.model,
        report.dataset,
        report.events,
        report.nodes,
        report.pairs,
        cost.events,
        cost.lanes,
        cost.weights
    ))?;
    say(format!(
        "Measured on one core over {} steps: gradients {} (in one lane {}), adding lanes {}, \
         observing {}, update {} a step",
        cost.measured,
        seconds(cost.gradients),
        seconds(cost.in_one_lane),
        seconds(cost.add),
        seconds(cost.observe),
        seconds(cost.update)
    ))?;
    say(format!(
        "State: {:.0} bytes a node, {:.0} a pair, {:.0} an event; log: {} bytes an event\n",
        state.per_node, state.per_pair, state.per_event, report.event_bytes
    ))?;
    let columns = ["ranks", "step", "epoch", "speed-up", "sent a step", "memory a rank", "verdict"];
    let mut table = Table::new(columns);
    for RankRow { plan, memory_bytes } in &report.plans {
        table.row(vec![
            plan.ranks.to_string(),
            seconds(plan.step_seconds),
            seconds(plan.epoch_seconds),
            format!("{:.2}", plan.speed_up),
            bytes(plan.traffic_bytes as f64),
            bytes(*memory_bytes as f64),
            verdict(plan.worth).to_string(),
        ]);
    }
    say(table.show().trim_end())?;
    say(format!(
        "\nA model, not a measurement: {} core(s) a rank, {} Gb/s, {:.0} us a message. Validation is \
         done by every rank in full and comes on top.",
        network.cores,
        network.gigabits,
        network.latency * 1e6
    ))?;
    if report.plans.iter().any(|row| row.plan.ranks > cost.lanes) {
        say(format!("Ranks beyond the {} lanes of a step have nothing to do.", cost.lanes))?;
    }
    if let Some(advice) = advice(report) {
        say(advice)?;
    }
    if report.shards.is_empty() {
        return Ok(());
    }
    let columns = ["shards", "nodes", "histories", "step", "remote", "fetched", "summed"];
    let mut table = Table::new(columns);
    for cost in &report.shards {
        table.row(vec![
            cost.shards.to_string(),
            format!("{:.2}", cost.node_balance),
            format!("{:.2}", cost.history_balance),
            format!("{:.2}", cost.step_balance),
            format!("{:.0} %", 100.0 * cost.remote_share),
            bytes(cost.fetched_bytes),
            bytes(cost.summed_bytes),
        ]);
    }
    say("\nA state spread over shards, simulated (a design, not built)")?;
    say(table.show().trim_end())?;
    say("nodes, histories, step: the fullest shard beside the mean. fetched, summed: bytes on the \
         wire for an event, one way; training moves them back, too.")
}

/// What to do instead, where several ranks are of no use.
fn advice(report: &PlanReport) -> Option<String> {
    let several = report.plans.iter().filter(|row| row.plan.ranks > 1);
    let mut refused = several.filter(|row| row.plan.worth == Worth::No).peekable();
    let cost = &report.cost;
    refused.peek()?;
    let replicated = cost.observe + cost.update;
    let why = if replicated > cost.gradients / cost.lanes as f64 {
        "what every rank does itself is as much as its share of the gradients"
    } else {
        "the exchange takes longer than the gradients it saves"
    };
    Some(format!(
        "Do not: {why}. Train on one machine; larger steps (--step 2000) are another model, and \
         several seeds or settings at once are a grid: lstep compare --emit"
    ))
}

fn verdict(worth: Worth) -> &'static str {
    match worth {
        Worth::Reference => "-",
        Worth::Yes => "worth it",
        Worth::Poor => "faster, most of it lost",
        Worth::No => "do not",
    }
}

fn seconds(time: f64) -> String {
    match time {
        time if time < 1e-3 => format!("{:.0} us", 1e6 * time),
        time if time < 1.0 => format!("{:.1} ms", 1e3 * time),
        time if time < 600.0 => format!("{time:.1} s"),
        time if time < 36_000.0 => format!("{:.0} min", time / 60.0),
        time => format!("{:.1} h", time / 3600.0),
    }
}

fn bytes(count: f64) -> String {
    match count {
        count if count < 1e4 => format!("{count:.0} B"),
        count if count < 1e6 => format!("{:.1} kB", 1e-3 * count),
        count if count < 1e9 => format!("{:.1} MB", 1e-6 * count),
        count => format!("{:.1} GB", 1e-9 * count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_bytes_are_said_in_one_unit() {
        assert_eq!(
            [5e-5, 0.02, 30.0, 1_200.0].map(seconds),
            ["50 us", "20.0 ms", "30.0 s", "20 min"]
        );
        assert_eq!([9.0, 5e4, 2.5e6, 3e9].map(bytes), ["9 B", "50.0 kB", "2.5 MB", "3.0 GB"]);
    }
}
