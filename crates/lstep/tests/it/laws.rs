//! The laws of every model, on random streams. Models that break them are in `cheats.rs`.

use lstep::audit::laws::check_config;
use lstep::audit::laws::{Breach, Check};
use lstep::event::{Events, Features};
use lstep::graph::EventLog;
use lstep::model::{
    Aggregation, DyGFormerConfig, FeatureWidths, GraphMixerConfig, LstepConfig, ModelConfig,
    Padding, PairConfig, PintConfig, PintPositions, Sampling, Scope, Start, Stored, TgnConfig,
    TncnConfig, TncnMode, Untouched, Variant, registry,
};
use proptest::prelude::{ProptestConfig, prop, prop_assert_eq, proptest};

/// A log whose events have their source's number as their only feature.
fn stream(rows: &[(u32, u32, u32)]) -> EventLog {
    EventLog::new(lstep_testkit::stream!(rows.to_vec(), 1, |source, _| [source as f32]))
}

proptest! {
    #[test]
    fn every_counting_model_keeps_every_law_on_random_streams(
        rows in prop::collection::vec((0u32..15, 0u32..15, 0u32..80), 40..160),
        step in 3u32..20, seed in 0u64..1000,
    ) {
        let check = Check { step, seed, ..Check::small() };
        for model in ModelConfig::counting_models() {
            let breaches = check_config(&model, &stream(&rows), check).expect("checked").breaches();
            prop_assert_eq!(breaches, Vec::<Breach>::new(), "{}", model);
        }
    }
}

/// L-STEP with small widths: every scope, every variant, every start; attention wherever there are
/// positions.
fn small_lsteps() -> Vec<ModelConfig> {
    let small = LstepConfig {
        time_width: 5,
        node_width: 6,
        edge_width: 2,
        position_width: 7,
        snapshots: 4,
        recent: 3,
        gap: 10.0,
        ..LstepConfig::default()
    };
    let mut models = Vec::new();
    for scope in [Scope::Touched, Scope::All] {
        for variant in [Variant::Full, Variant::PositionOnly, Variant::NoPosition] {
            for start in [Start::Laplacian, Start::RandomWalk, Start::Zeros] {
                let mlp = LstepConfig { scope, variant, start, ..small.clone() };
                if variant != Variant::NoPosition {
                    let attention = LstepConfig {
                        aggregation: Aggregation::Attention,
                        position_width: 6,
                        ..mlp.clone()
                    };
                    models.push(ModelConfig::from(attention));
                }
                models.push(ModelConfig::from(mlp));
            }
        }
    }
    for untouched in [Untouched::Approximate, Untouched::Zero] {
        models.push(ModelConfig::from(LstepConfig { untouched, ..small.clone() }));
    }
    for stored in [Stored::Normalised, Stored::Centred] {
        for untouched in [Untouched::Keep, Untouched::Approximate] {
            models.push(ModelConfig::from(LstepConfig { stored, untouched, ..small.clone() }));
        }
    }
    models.extend(small_pairs(&small));
    models
}

/// L-STEP that sees the pair: everything, and each switch alone.
fn small_pairs(small: &LstepConfig) -> Vec<ModelConfig> {
    let nothing = PairConfig {
        history: 0,
        counts: false,
        neighbour_popularity: false,
        fresh: false,
        transitions: false,
        clocks: false,
        common: false,
        walks: 0,
        filters: 0,
        redraw: false,
        activity: 0.0,
        positions: false,
        hidden: 5,
        dropout: 0.2,
    };
    let pairs = [
        PairConfig {
            history: 4,
            counts: true,
            neighbour_popularity: true,
            fresh: true,
            transitions: true,
            clocks: true,
            common: true,
            walks: 64,
            filters: 3,
            redraw: true,
            activity: 0.1,
            positions: true,
            ..nothing.clone()
        },
        PairConfig { history: 4, ..nothing.clone() },
        PairConfig { counts: true, ..nothing.clone() },
        PairConfig { counts: true, fresh: true, ..nothing.clone() },
        PairConfig { transitions: true, ..nothing.clone() },
        PairConfig { clocks: true, ..nothing.clone() },
        PairConfig { common: true, ..nothing.clone() },
        PairConfig { neighbour_popularity: true, ..nothing.clone() },
        PairConfig { walks: 64, ..nothing.clone() },
        PairConfig { filters: 2, ..nothing.clone() },
        PairConfig { positions: true, ..nothing },
    ];
    pairs.map(|pair| ModelConfig::from(LstepConfig { pair: Some(pair), ..small.clone() })).to_vec()
}

/// The other learned systems with small widths.
fn small_systems() -> Vec<ModelConfig> {
    let mixer = GraphMixerConfig {
        time_width: 5,
        node_width: 6,
        edge_width: 2,
        channels: 7,
        recent: 4,
        window: 5,
        ..GraphMixerConfig::default()
    };
    let former = DyGFormerConfig {
        time_width: 4,
        node_width: 6,
        edge_width: 2,
        channel_width: 3,
        longest: 6,
        patch: 2,
        ..DyGFormerConfig::default()
    };
    vec![
        ModelConfig::from(former.clone()),
        ModelConfig::from(DyGFormerConfig { padding: Padding::None, ..former }),
        ModelConfig::from(mixer.clone()),
        ModelConfig::from(GraphMixerConfig { sampling: Sampling::Uniform, ..mixer }),
        ModelConfig::from(PintConfig {
            time_width: 4,
            node_width: 6,
            edge_width: 2,
            recent: 3,
            decay: 0.05,
            positions: PintPositions::Walks,
            ..PintConfig::default()
        }),
        of_fixture("pint"),
        of_fixture("tncn"),
        ModelConfig::from(TncnConfig {
            time_width: 4,
            node_width: 6,
            edge_width: 2,
            recent: 3,
            hidden: 5,
            mode: TncnMode::ZeroAndOneHop,
            ..TncnConfig::default()
        }),
        ModelConfig::from(TgnConfig {
            time_width: 4,
            node_width: 6,
            edge_width: 2,
            recent: 3,
            ..TgnConfig::default()
        }),
    ]
}

/// The small settings above, and for every other learned model those of its fixture.
fn learned_models() -> Vec<ModelConfig> {
    let mut models: Vec<ModelConfig> = small_lsteps().into_iter().chain(small_systems()).collect();
    for kind in registry::MODELS.iter().filter(|kind| kind.learns()) {
        if !models.iter().any(|model| model.name() == kind.name()) {
            models.push(of_fixture(kind.name()));
        }
    }
    models
}

fn of_fixture(name: &str) -> ModelConfig {
    #[derive(serde::Deserialize)]
    struct Fixture {
        config: ModelConfig,
    }
    let path = format!("{}/tests/fixtures/systems/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("a learned model has a fixture");
    let fixture: Fixture = serde_json::from_str(&text).expect("what the script writes");
    // The streams of these tests have a feature for each event and three for each node.
    fixture.config.widened_for(FeatureWidths { node: 3, edge: 1 })
}

#[test]
fn settings_of_a_fixture_are_those_of_its_model() {
    for name in ["graphmixer", "tgn", "dygformer"] {
        assert_eq!(of_fixture(name).name(), name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2))]

    #[test]
    fn every_learned_model_keeps_every_law_on_random_streams(
        rows in prop::collection::vec((0u32..15, 0u32..15, 0u32..80), 40..120),
        step in 3u32..20, seed in 0u64..1000,
    ) {
        let check = Check { step, seed, ..Check::small() };
        // Nodes 0 to 11 of 15 have features: the others count as zeros.
        let node_features = Features::new(3, (0..36).map(|value| (value % 7) as f32 - 3.0).collect()).expect("finite");
        for log in [stream(&rows), stream(&rows).with_node_features(node_features)] {
            for model in learned_models() {
                let breaches = check_config(&model, &log, check).expect("checked").breaches();
                prop_assert_eq!(breaches, Vec::<Breach>::new(), "{:?}", model);
            }
        }
    }
}

mod real_data {
    use super::*;
    use lstep::read::{ReadOptions, read};
    use lstep_testkit::real_data::events;

    fn first(name: &str, count: usize) -> Events {
        let dataset = read(events(name), &ReadOptions::default()).expect("a stream");
        dataset.events.first(count)
    }

    #[test]
    #[ignore = "needs LSTEP_DATA"]
    fn every_counting_model_keeps_every_law() {
        for name in ["uci", "dgb/canparl"] {
            // The middle of the first 6,000 events: the laws rebuild the log for every row.
            let log = EventLog::new(first(name, 6_000));
            for model in ModelConfig::counting_models() {
                let breaches =
                    check_config(&model, &log, Check::small()).expect("checked").breaches();
                assert_eq!(breaches, Vec::<Breach>::new(), "{name}: {model}");
            }
        }
    }

    #[test]
    #[ignore = "needs LSTEP_DATA"]
    fn every_learned_model_keeps_every_law() {
        let log = EventLog::new(first("uci", 2_000));
        for model in learned_models() {
            let breaches = check_config(&model, &log, Check::small()).expect("checked").breaches();
            assert_eq!(breaches, Vec::<Breach>::new(), "{model:?}");
        }
    }
}
