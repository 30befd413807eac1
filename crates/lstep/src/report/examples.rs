//! What a model said and what happened, as tables.

use super::page::{Cell, Table};
use super::stream::say_time;
use crate::event::{Clock, Name, Names};
use crate::results::Calibration;
use crate::training::Example;

/// Questions as a table: who acted when, what was shown, what happened.
pub(super) fn table(
    examples: &[Example],
    names: &Names,
    clock: &Clock,
    curve: Option<&Calibration>,
) -> Table {
    let mut table = Table::default()
        .words("source")
        .words("time")
        .words("shown first")
        .words("what happened")
        .numbers("its rank")
        .words("known before");
    let chance = |score: f64| {
        curve
            .map_or(String::new(), |curve| format!("\u{a0}({})", percent(curve.probability(score))))
    };
    for example in examples {
        let shown: Vec<String> = example
            .shown
            .iter()
            .map(|(node, score)| format!("{}{}", short(names.name(*node)), chance(*score)))
            .collect();
        let happened = format!("{}{}", short(names.name(example.happened)), chance(example.score));
        let rank = format!("{} of {}", place(example.rank), example.candidates);
        table.row(
            example.rank < 1.5,
            vec![
                Cell::name(short(names.name(example.source))),
                Cell::name(say_time(clock, example.time.value())),
                Cell::list(shown.join(" · ")),
                Cell::words(happened),
                Cell::number(rank),
                Cell::list(known(example)),
            ],
        );
    }
    table
}

/// A name that leaves room for others.
fn short(name: Name<'_>) -> String {
    const MOST: usize = 32;
    let name = name.to_string();
    match name.chars().count() > MOST {
        true => name.chars().take(MOST - 1).chain(['…']).collect(),
        false => name,
    }
}

/// What could have been known, in words.
fn known(example: &Example) -> String {
    let times = |count: usize| match count {
        1 => "once".to_string(),
        2 => "twice".to_string(),
        more => format!("{more} times"),
    };
    let events = |count: usize| if count == 1 { "event" } else { "events" };
    let (source, happened) = (example.source_events, example.happened_events);
    match (source, happened, example.met) {
        (0, 0, _) => "both were new".into(),
        (0, ..) => "the source was new".into(),
        (_, 0, _) => format!("what happened was new; source: {source} {}", events(source)),
        (.., 0) => format!("had never met; source: {source} {}", events(source)),
        (.., met) => format!("had met {}; source: {source} {}", times(met), events(source)),
    }
}

/// A rank, which may end in a half.
fn place(rank: f64) -> String {
    if rank.fract() == 0.0 { format!("{rank:.0}") } else { format!("{rank:.1}") }
}

/// A probability in percent, short.
pub(super) fn percent(share: f64) -> String {
    match 100.0 * share {
        small if small < 0.1 => "<0.1\u{a0}%".into(),
        small if small < 10.0 => format!("{small:.1}\u{a0}%"),
        large => format!("{large:.0}\u{a0}%"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_and_ranks_are_short() {
        let said = [0.0001, 0.0123, 0.4567].map(percent);
        assert_eq!(said, ["<0.1\u{a0}%", "1.2\u{a0}%", "46\u{a0}%"]);
        assert_eq!([1.0, 2.5].map(place), ["1", "2.5"]);
    }
}
