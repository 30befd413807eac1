//! Node features as a table of their own, beside events whose form has no place for them.

use super::{push_name, write_packed};
use crate::event::{NodeId, Side};
use crate::read::options::stem;
use crate::read::{Dataset, Result};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Writes `NAME.nodes.csv` beside `NAME.csv`: the id first, then the side where `sides` or the
/// names need one, then the features. Gives its path.
pub(super) fn write(events: &Path, data: &Dataset, sides: bool) -> Result<PathBuf> {
    let mut name = stem(events).map(|(stem, _)| stem).unwrap_or_default();
    name.push(".nodes.csv");
    let path = events.with_file_name(name);
    let features = &data.node_features;
    let sides = sides || data.bipartite();
    write_packed(&path, |out| {
        let mut header = String::from(if sides { "id,side" } else { "id" });
        (0..features.width()).for_each(|feature| header.push_str(&format!(",f{feature}")));
        writeln!(out, "{header}")?;
        let mut line = Vec::new();
        for (node, found) in occurrences(data).into_iter().enumerate() {
            // Without separated sides a node may stand on both, and has a row for each.
            let wanted = if sides { found.as_slice() } else { &[None] };
            for side in wanted.iter().filter(|side| !sides || side.is_some()) {
                line.clear();
                push_name(&mut line, data.names.name(NodeId(node as u32)), b',')?;
                match side {
                    Some(Side::Source) => line.extend_from_slice(b",source"),
                    Some(Side::Destination) => line.extend_from_slice(b",destination"),
                    None => {}
                }
                features.row(node).iter().try_for_each(|value| write!(line, ",{value:?}"))?;
                line.push(b'\n');
                out.write_all(&line)?;
            }
        }
        Ok(())
    })?;
    Ok(path)
}

/// On which sides each node occurs.
fn occurrences(data: &Dataset) -> Vec<[Option<Side>; 2]> {
    let mut found = vec![[None; 2]; data.names.len()];
    data.events.sources().iter().for_each(|node| found[node.index()][0] = Some(Side::Source));
    data.events
        .destinations()
        .iter()
        .for_each(|node| found[node.index()][1] = Some(Side::Destination));
    found
}
