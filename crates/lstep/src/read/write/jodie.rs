//! JODIE's layout: user, item, time, label, features, with one name for all features in the header.
//!
//! A label is not kept by the readers here and is written as 0. Without features there is one
//! column of zeros, as in the published files, which is read as no features.

use super::layout::number;
use super::{push_name, write_lines, write_packed};
use crate::read::{Dataset, Result};
use std::io::Write;
use std::path::Path;

pub(super) fn write(path: &Path, data: &Dataset) -> Result<()> {
    let features = data.events.features();
    write_packed(path, |out| {
        let header = "user_id,item_id,timestamp,state_label,comma_separated_list_of_features";
        write_lines(out, data, header, |line, event| {
            for node in [event.source, event.destination] {
                push_name(line, data.names.name(node), b',')?;
                line.push(b',');
            }
            write!(line, "{},0", number(&data.clock, event.time))?;
            match features.row(event.number as usize) {
                [] => line.write_all(b",0"),
                row => row.iter().try_for_each(|value| write!(line, ",{value:?}")),
            }
        })
    })
}
