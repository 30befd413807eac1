//! Every planted thing is there, and gone when it is switched off.

use super::*;
use rustc_hash::{FxHashMap, FxHashSet};

/// Nothing is planted.
fn plain() -> SyntheticConfig {
    SyntheticConfig {
        repeat: 0.0,
        recency: 0.0,
        communities: 1,
        within: 0.0,
        skew: 1.0,
        drift: None,
        habits: 0.0,
        late: 0.0,
        ..SyntheticConfig::default()
    }
}

/// Source, destination (counted from 0) and time of every event.
fn events(config: &SyntheticConfig) -> Vec<(u32, u32, f64)> {
    let data = generate(config).expect("good settings");
    let node = |node| (data.names.number(node) - 1) as u32;
    data.events
        .iter()
        .map(|event| (node(event.source), node(event.destination), event.time.value()))
        .collect()
}

fn share(events: &[(u32, u32, f64)], mut holds: impl FnMut(&(u32, u32, f64)) -> bool) -> f64 {
    events.iter().filter(|event| holds(event)).count() as f64 / events.len() as f64
}

/// How many of the most chosen tenth of nodes, and who they are.
fn popular(events: &[(u32, u32, f64)]) -> (f64, FxHashSet<u32>) {
    let mut counts: FxHashMap<u32, u32> = FxHashMap::default();
    events.iter().for_each(|event| *counts.entry(event.1).or_default() += 1);
    let mut nodes: Vec<u32> = counts.keys().copied().collect();
    nodes.sort_by_key(|node| (Reverse(counts[node]), *node));
    let top: FxHashSet<u32> = nodes.into_iter().take(100).collect();
    (share(events, |event| top.contains(&event.1)), top)
}

#[test]
fn the_default_stream_has_its_size_and_is_always_the_same() {
    let data = generate(&SyntheticConfig::default()).expect("good settings");
    assert_eq!(data.events.len(), 20_000);
    assert!((900..=1000).contains(&data.names.len()), "{}", data.names.len());
    let last = data.events.times().last().expect("events").value();
    assert!((0.95..1.05).contains(&(last / (30.0 * 86_400.0))), "{last}");
    assert_eq!(data, generate(&SyntheticConfig::default()).expect("good settings"));
    let other = generate(&SyntheticConfig { seed: 1, ..SyntheticConfig::default() })
        .expect("good settings");
    assert_ne!(data.events, other.events);
    // The numbers that tests and documents elsewhere rely on: a change here changes the stream for
    // everybody.
    let sum = data.events.iter().fold(0u64, |sum, event| {
        let numbers = [event.source.0, event.destination.0, event.time.value() as u32];
        numbers.iter().fold(sum, |sum, &number| {
            sum.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(u64::from(number))
        })
    });
    assert_eq!(sum, DEFAULT_STREAM);
}

const DEFAULT_STREAM: u64 = 4_399_093_599_445_165_163;

#[test]
fn no_node_meets_itself_and_times_never_decrease() {
    let events = events(&SyntheticConfig::default());
    assert!(events.iter().all(|event| event.0 != event.1));
    assert!(events.windows(2).all(|pair| pair[0].2 <= pair[1].2));
}

#[test]
fn repeats_are_planted() {
    let repeats = |config: &SyntheticConfig| {
        let mut seen = FxHashSet::default();
        share(&events(config), |event| !seen.insert((event.0, event.1)))
    };
    let (on, off) = (repeats(&SyntheticConfig { repeat: 0.5, ..plain() }), repeats(&plain()));
    assert!((0.4..0.6).contains(&on) && off < 0.03, "{on} {off}");
}

#[test]
fn recency_is_planted() {
    let latest = |recency| {
        let config = SyntheticConfig { repeat: 0.5, recency, nodes: 100, ..plain() };
        let mut last: FxHashMap<u32, u32> = FxHashMap::default();
        share(&events(&config), |event| last.insert(event.0, event.1) == Some(event.1))
    };
    let (on, off) = (latest(0.8), latest(0.0));
    assert!(on > 0.4 && off < 0.25, "{on} {off}");
}

#[test]
fn communities_are_planted() {
    let within = |communities| {
        let config = SyntheticConfig { communities, within: 0.8, ..plain() };
        share(&events(&config), |event| event.0 % 10 == event.1 % 10)
    };
    let (on, off) = (within(10), within(1));
    assert!((0.78..0.86).contains(&on) && (0.08..0.12).contains(&off), "{on} {off}");
}

#[test]
fn popularity_is_planted() {
    let top = |skew| popular(&events(&SyntheticConfig { skew, ..plain() })).0;
    let (on, off) = (top(2.5), top(1.0));
    assert!((0.36..0.5).contains(&on) && off < 0.18, "{on} {off}");
}

#[test]
fn popularity_drifts() {
    let stays = |drift| {
        let events = events(&SyntheticConfig { skew: 2.5, drift, ..plain() });
        let third = events.len() / 3;
        let (first, last) = (popular(&events[..third]).1, popular(&events[2 * third..]).1);
        first.intersection(&last).count()
    };
    let (on, off) = (stays(Some(60 * 86_400)), stays(None));
    assert!(on < 30 && off > 60, "{on} {off}");
}

#[test]
fn habits_are_planted() {
    let periodic = |habits| {
        let mut last: FxHashMap<(u32, u32), f64> = FxHashMap::default();
        share(&events(&SyntheticConfig { habits, ..plain() }), |event| {
            let before = last.insert((event.0, event.1), event.2);
            before.is_some_and(|before| ((event.2 - before) / 86_400.0 - 1.0).abs() < 0.011)
        })
    };
    let (on, off) = (periodic(0.1), periodic(0.0));
    assert!((0.1..0.16).contains(&on) && off < 0.002, "{on} {off}");
}

#[test]
fn late_arrivals_are_planted() {
    let late = |late| {
        let mut first: FxHashMap<u32, f64> = FxHashMap::default();
        for (source, destination, time) in events(&SyntheticConfig { late, ..plain() }) {
            first.entry(source).or_insert(time);
            first.entry(destination).or_insert(time);
        }
        let after = 0.2 * 30.0 * 86_400.0;
        first.values().filter(|&&time| time > after).count() as f64 / first.len() as f64
    };
    let (on, off) = (late(0.5), late(0.0));
    assert!((0.3..0.5).contains(&on) && off < 0.01, "{on} {off}");
}

#[test]
fn two_kinds_of_nodes_stay_apart() {
    let config = SyntheticConfig { sources: Some(600), ..SyntheticConfig::default() };
    assert!(events(&config).iter().all(|event| event.0 < 600 && (600..1000).contains(&event.1)));
}

#[test]
fn features_tell_the_destination_s_community() {
    let config = SyntheticConfig { features: 3, ..SyntheticConfig::default() };
    let data = generate(&config).expect("good settings");
    let mut middle: FxHashMap<u32, [f32; 2]> = FxHashMap::default();
    for event in data.events.iter() {
        let community = config.community((data.names.number(event.destination) - 1) as u32);
        let value = data.events.features().row(event.number as usize)[0];
        let range = middle.entry(community).or_insert([value; 2]);
        *range = [range[0].min(value), range[1].max(value)];
    }
    assert!(middle.values().all(|range| range[1] - range[0] <= 0.51));
    let centres: FxHashSet<i32> =
        middle.values().map(|range| ((range[0] + range[1]) * 50.0) as i32).collect();
    assert!(centres.len() > 5, "{centres:?}");
}

#[test]
fn settings_that_make_no_stream_are_refused() {
    let refused =
        |config: SyntheticConfig| generate(&config).expect_err("bad settings").to_string();
    let base = SyntheticConfig::default;
    assert_eq!(
        refused(SyntheticConfig { repeat: 1.5, ..base() }),
        "repeat is 1.5: it has to be between 0 and 1"
    );
    assert!(refused(SyntheticConfig { late: f64::NAN, ..base() }).contains("late is NaN"));
    assert!(refused(SyntheticConfig { skew: 0.5, ..base() }).contains("skew is 0.5"));
    assert!(refused(SyntheticConfig { communities: 0, ..base() }).contains("communities is 0"));
    assert!(
        refused(SyntheticConfig { communities: 501, ..base() })
            .contains("every community needs two nodes")
    );
    assert!(
        refused(SyntheticConfig { sources: Some(2000), ..base() })
            .contains("sources is 2000: there are")
    );
    assert!(
        refused(SyntheticConfig { events: 0, ..base() })
            .contains("events is 0: it has to be at least 1")
    );
    assert!(refused(SyntheticConfig { nodes: 0, ..base() }).contains("nodes is 0"));
    assert!(
        refused(SyntheticConfig { events: 100, ..base() })
            .contains("habits alone would fill 100 events")
    );
    assert!(refused(SyntheticConfig { span: u64::MAX, ..base() }).contains("span is"));
}
