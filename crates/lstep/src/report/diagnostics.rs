//! Pictures of what models show of themselves, whichever model it is: curves by their quantiles,
//! places by their main directions.

use super::chart::{Ink, Mark, Plot};
use super::figures::{class_of, classes, quantile};
use super::scale::{Axis, counted, grouped, short};
use crate::event::{Events, Names, NodeId};
use crate::model::Diagnostic;
use crate::nn::spectrum::principal_axes;

/// Nodes drawn at most, taken evenly from the most active to the least.
const NODES: usize = 400;
/// Nodes from which the main directions are found at most.
const SAMPLE: usize = 20_000;

/// Charts of what a model shows at the end of training, and for places where it shows them at the
/// end of the stream.
pub fn charts(
    trained: &[Diagnostic],
    end: &[Diagnostic],
    events: &Events,
    names: &Names,
) -> Vec<String> {
    let later = |title: &str| {
        end.iter().find_map(|diagnostic| match diagnostic {
            Diagnostic::Places { title: other, nodes, vectors, .. } if other == title => {
                Some((nodes, vectors))
            }
            _ => None,
        })
    };
    let chart = |diagnostic: &Diagnostic| match diagnostic {
        Diagnostic::Curves { title, about, along, height, at, curves } => {
            Some(spread(title, about, Axis::new(along), Axis::new(height), at, curves))
        }
        Diagnostic::Places { title, about, nodes, width, vectors } => {
            let after = later(title).unwrap_or((nodes, vectors));
            moved(title, about, *width, (nodes, vectors), after, events, names)
        }
    };
    trained.iter().filter_map(chart).collect()
}

/// Many curves as their median and the range of the middle four fifths.
fn spread(
    title: &str,
    about: &str,
    along: Axis,
    height: Axis,
    at: &[f64],
    curves: &[Vec<f64>],
) -> String {
    let mut rows: Vec<[f64; 3]> = Vec::with_capacity(at.len());
    for place in 0..at.len() {
        let mut heights: Vec<f64> = curves.iter().map(|curve| curve[place]).collect();
        heights.sort_unstable_by(f64::total_cmp);
        rows.push([0.1, 0.5, 0.9].map(|share| quantile(&heights, share)));
    }
    let of = |part: usize| rows.iter().map(|row| row[part]).collect::<Vec<f64>>();
    let says = |x: f64, row: &[f64; 3]| {
        format!(
            "{}: {}\n{}: median {}, middle 80 % from {} to {}",
            along.label,
            short(x),
            height.label,
            short(row[1]),
            short(row[0]),
            short(row[2])
        )
    };
    let marks = at.iter().zip(&rows).map(|(&x, row)| Mark::new(x, row[1], says(x, row))).collect();
    let middle = format!("middle 80 % of {} dimensions", curves.len());
    Plot::new(title, about, along.clone(), height.clone())
        .band(&middle, Ink::Kind(0), at.to_vec(), of(0), of(2))
        .line("median dimension", Ink::Kind(0), marks)
        .draw()
}

/// Places before and after, in the two main directions of the later ones. Nothing if no node has a
/// place.
fn moved(
    title: &str,
    about: &str,
    width: usize,
    (old_nodes, old): (&Vec<NodeId>, &Vec<f32>),
    (nodes, vectors): (&Vec<NodeId>, &Vec<f32>),
    events: &Events,
    names: &Names,
) -> Option<String> {
    if nodes.len() < 2 || width < 2 {
        return None;
    }
    let mut active = events.participation();
    active.resize(active.len().max(nodes.last().map_or(0, |node| node.index() + 1)), 0);
    let every = nodes.len().div_ceil(SAMPLE);
    let sample: Vec<f32> = vectors.chunks_exact(width).step_by(every).flatten().copied().collect();
    let axes = principal_axes(&sample, width, 2);
    let project = |vector: &[f32]| -> [f64; 2] {
        [0, 1].map(|axis| {
            vector.iter().zip(&axes[axis * width..]).map(|(&x, a)| f64::from(x) * a).sum()
        })
    };
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by_key(|&place| (std::cmp::Reverse(active[nodes[place].index()]), nodes[place]));
    let shown: Vec<usize> = order.iter().copied().step_by(nodes.len().div_ceil(NODES)).collect();
    let activity: Vec<u32> = shown.iter().map(|&place| active[nodes[place].index()]).collect();
    let starts = classes(&activity, 5);
    let (mut marks, mut moves) = (vec![Vec::new(); starts.len()], Vec::new());
    for (&place, &count) in shown.iter().zip(&activity) {
        let now = project(&vectors[place * width..][..width]);
        let mut says =
            format!("{}: {}", names.name(nodes[place]), counted(count as usize, "event"));
        match old_nodes.binary_search(&nodes[place]) {
            Ok(before) => {
                let before = &old[before * width..][..width];
                let then = project(before);
                moves.push((then[0], then[1], now[0], now[1]));
                let went = before
                    .iter()
                    .zip(&vectors[place * width..])
                    .map(|(a, b)| f64::from(a - b).powi(2))
                    .sum::<f64>();
                says.push_str(&format!(
                    "\nmoved by {} since training, in all dimensions",
                    short(went.sqrt())
                ));
            }
            Err(_) => says.push_str("\nhad no position at the end of training"),
        }
        marks[class_of(&starts, count)].push(Mark::new(now[0], now[1], says));
    }
    let about = format!(
        "{about}, {} of {} nodes. A dot is a node at the end of the stream; its line comes from where the node was at the end of \
         training. Colour: events it took part in.",
        grouped(shown.len()),
        grouped(nodes.len())
    );
    let mut plot = Plot::new(
        title,
        &about,
        Axis::new("first principal component"),
        Axis::new("second principal component"),
    )
    .moves(Ink::Muted, moves);
    for (class, marks) in marks.into_iter().enumerate() {
        plot = plot.dots(&class_name(&starts, class, &activity), Ink::Amount(class), 3.4, marks);
    }
    Some(plot.draw())
}

/// A class of counts of events in words.
pub fn class_name(starts: &[u32], class: usize, values: &[u32]) -> String {
    let range = range(starts, class, values);
    if range == "1" { "1 event".into() } else { format!("{range} events") }
}

/// A class of counts in words: `3`, `4 to 9`.
fn range(starts: &[u32], class: usize, values: &[u32]) -> String {
    let members = values.iter().filter(|value| class_of(starts, **value) == class);
    let (low, high) =
        members.fold((u32::MAX, 0), |(low, high), &value| (low.min(value), high.max(value)));
    if low >= high { format!("{high}") } else { format!("{low}–{high}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Features, Side, Time};

    #[test]
    fn places_are_drawn_for_all_nodes_and_names_are_escaped() {
        let mut names = Names::new(false);
        let nodes: Vec<NodeId> = ["<b>", "x", "y"]
            .iter()
            .map(|id| names.intern(id, Side::Source).expect("a new name"))
            .collect();
        let times = (0..2).map(|n| Time::new(f64::from(n)).expect("finite")).collect();
        let events = Events::new(
            vec![nodes[0], nodes[1]],
            vec![nodes[1], nodes[2]],
            times,
            Features::none(),
        )
        .expect("ordered");
        let places = |vectors: Vec<f32>, count: usize| Diagnostic::Places {
            title: "Where".into(),
            about: "a".into(),
            nodes: nodes[..count].to_vec(),
            width: 2,
            vectors,
        };
        let drawn = charts(
            &[places(vec![0.0, 0.0, 1.0, 0.0], 2)],
            &[places(vec![3.0, 4.0, 1.0, 0.0, 0.0, 1.0], 3)],
            &events,
            &names,
        );
        assert_eq!(drawn.len(), 1);
        assert!(drawn[0].contains("&lt;b&gt;: 1 event\nmoved by 5 since"), "{}", drawn[0]);
        assert!(drawn[0].contains("y: 1 event\nhad no position"), "{}", drawn[0]);
    }
}
