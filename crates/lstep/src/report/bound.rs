//! The page of the theorem: how far approximate positions moved, node by node, beside what the
//! filter allows.

use super::chart::{Ink, Mark, Plot};
use super::diagnostics::class_name;
use super::figures::{class_of, classes, quantile};
use super::page::{Cell, Page, Table};
use super::scale::{Axis, counted, grouped, short};
use crate::audit::{BoundReport, NodeBound};

/// Nodes that the table lists at most.
const LISTED: usize = 30;
/// Nodes that the plot shows at most.
const DRAWN: usize = 800;

/// The theorem on a run as a page.
pub fn bound_page(report: &BoundReport) -> String {
    let subtitle = "How far approximate positions move from one step to the next (Theorem 1 of the paper: at most epsilon, which \
                    depends on the filter), measured over validation and test.";
    let mut page = Page::new(
        &format!("The bound on {} positions, {}", report.model, report.dataset),
        subtitle,
    );
    let mut moves: Vec<f64> = report.nodes.iter().map(|node| node.largest_move).collect();
    moves.sort_unstable_by(f64::total_cmp);
    let mut bounds: Vec<f64> = report.nodes.iter().map(|node| node.bound).collect();
    bounds.sort_unstable_by(f64::total_cmp);
    let above = report.nodes.iter().filter(|node| !node.holds).count();
    page.cards(&[
        (
            format!("{} of {}", grouped(report.nodes.len() - above), grouped(report.nodes.len())),
            "nodes always within the theorem's bound".into(),
        ),
        (short(quantile(&moves, 0.5)), "largest move of the median node".into()),
        (short(quantile(&bounds, 0.5)), "the theorem's bound for the median node".into()),
        (
            format!("{:.1} %", 100.0 * report.median_share),
            "median change of a stored position in a step, of its length".into(),
        ),
    ]);
    if report.above_bound > 0 {
        page.warning(&format!(
            "{} of {} moves are above the theorem's bound. It supposes a graph that changes slowly; here it does not.",
            grouped(report.above_bound),
            grouped(report.moves)
        ));
    } else {
        page.fine(&format!(
            "None of {} moves over {} steps is above the theorem's bound.",
            grouped(report.moves),
            report.steps
        ));
    }
    if quantile(&bounds, 0.5) > 10.0 * quantile(&moves, 0.5) {
        page.warning(&format!(
            "The bound is loose: {} times the largest move at the median node. It is true, but says little about this model.",
            short(quantile(&bounds, 0.5) / quantile(&moves, 0.5).max(f64::MIN_POSITIVE))
        ));
    }
    page.charts([scatter(report, false), scatter(report, true)]);
    page.section(
        "The filter",
        "epsilon = S (2L - 2) A P, with P the longest position of a node's window.",
    );
    page.table(&filter(report));
    page.section("Nodes", "The busiest first. Moves are 2-norms of the difference between two steps; bounds are those at the largest move.");
    page.table(&nodes(&report.nodes));
    page.finish()
}

fn scatter(report: &BoundReport, direct: bool) -> String {
    let bound = |node: &NodeBound| if direct { node.direct_bound } else { node.bound };
    let (title, about) = if direct {
        let about = "Against the sum over remembered steps of the kernel's largest weight times how far the stored position really \
                     went. This holds for any graph; dots on the line are nodes for which it is exact.";
        ("Largest move against the bound that needs no slow change", about)
    } else {
        let about = "Every dot is a node: the theorem's bound, and the largest move that was measured. Below the line, it holds.";
        ("Largest move against the theorem's bound", about)
    };
    let every = report.nodes.len().div_ceil(DRAWN).max(1);
    let shown: Vec<&NodeBound> = report
        .nodes
        .iter()
        .step_by(every)
        .filter(|node| node.largest_move > 0.0 && bound(node) > 0.0)
        .collect();
    let activity: Vec<u32> = shown.iter().map(|node| node.events as u32).collect();
    let starts = classes(&activity, 5);
    let mut plot = Plot::new(
        title,
        about,
        Axis::logarithmic("bound (length of a position)"),
        Axis::logarithmic("largest move (length)"),
    );
    for class in 0..starts.len() {
        let members = shown.iter().filter(|node| class_of(&starts, node.events as u32) == class);
        let mark = |node: &&NodeBound| {
            let says = format!(
                "{}: {}\nlargest move {}\nbound {}",
                node.node,
                counted(node.events, "event"),
                short(node.largest_move),
                short(bound(node))
            );
            Mark::new(bound(node), node.largest_move, says)
        };
        plot = plot.dots(
            &class_name(&starts, class, &activity),
            Ink::Amount(class),
            3.2,
            members.map(mark).collect(),
        );
    }
    let ends = shown.iter().fold((f64::MAX, 0.0f64), |(low, high), node| {
        (low.min(node.largest_move).min(bound(node)), high.max(node.largest_move).max(bound(node)))
    });
    if ends.1 > 0.0 {
        plot = plot.rule(Some("move = bound"), (ends.0, ends.0), (ends.1, ends.1));
    }
    plot.draw()
}

fn filter(report: &BoundReport) -> Table {
    let mut table = Table::default().words("what").numbers("value");
    let filter = &report.filter;
    for (what, value) in [
        ("L, remembered steps", grouped(filter.snapshots)),
        (
            "S, the largest over dimensions of the sum of |eigenvalue times filter|",
            short(filter.filter_sum),
        ),
        (
            "S with eigenvalues 2 - cos as the paper's lemma prints them (the ring's are 2 - 2 cos)",
            short(filter.filter_sum_as_printed),
        ),
        ("A, sum of the absolute weights of the weighted sum", short(filter.weight_sum)),
    ] {
        table.row(false, vec![Cell::words(what), Cell::number(value)]);
    }
    table
}

fn nodes(rows: &[NodeBound]) -> Table {
    let mut table = Table::default()
        .words("node")
        .numbers("events")
        .numbers("steps")
        .numbers("mean move")
        .numbers("largest move")
        .numbers("direct bound")
        .numbers("theorem's bound")
        .words("holds");
    for node in rows.iter().take(LISTED) {
        table.row(
            false,
            vec![
                Cell::words(&node.node),
                Cell::number(grouped(node.events)),
                Cell::number(grouped(node.steps)),
                Cell::number(short(node.mean_move)),
                Cell::number(short(node.largest_move)),
                Cell::number(short(node.direct_bound)),
                Cell::number(short(node.bound)),
                Cell::words(if node.holds { "yes" } else { "no" }),
            ],
        );
    }
    table
}
