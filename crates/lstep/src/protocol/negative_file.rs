//! Negatives on paper: a file that anybody can read, and its hash.
//!
//! A CSV with the columns `event` (its number, from 0), `source` and `destination` (names as in the
//! stream), one row for each negative, in the order in which they are asked. The hash in reports is
//! the SHA-256 of exactly this file, so `sha256sum` of a written one tells whether two numbers were
//! obtained on the same questions.

use super::eval_pass::QuerySet;
use super::negative::Negatives;
use crate::error::{InputFault, Result};
use crate::event::{Events, Names, NodeId, Side};
use crate::fingerprint::Fingerprint;
use std::io::{self, Read, Write};

const HEADER: [&str; 3] = ["event", "source", "destination"];

/// Writes a query set's negatives.
pub fn write_negatives(
    query_set: &QuerySet,
    events: &Events,
    names: &Names,
    out: &mut impl Write,
) -> io::Result<()> {
    // Quoted once for each node, not once for each negative.
    let quoted: Vec<Vec<u8>> = names.iter().map(|name| quote(&name.to_string())).collect();
    out.write_all(HEADER.join(",").as_bytes())?;
    out.write_all(b"\n")?;
    for (row, &number) in query_set.asked().iter().enumerate() {
        let source = events.sources()[number as usize];
        let event = format!("{number},");
        let (sources, destinations) = query_set.negatives().row(row);
        for (place, destination) in destinations.iter().enumerate() {
            let source = sources.map_or(source, |sources| sources[place]);
            out.write_all(event.as_bytes())?;
            out.write_all(&quoted[source.index()])?;
            out.write_all(b",")?;
            out.write_all(&quoted[destination.index()])?;
            out.write_all(b"\n")?;
        }
    }
    Ok(())
}

/// The SHA-256 of the file that [`write_negatives`] writes, in hexadecimal.
pub fn negatives_sha256(query_set: &QuerySet, events: &Events, names: &Names) -> String {
    let mut hash = io::BufWriter::with_capacity(1 << 16, Fingerprint::default());
    write_negatives(query_set, events, names, &mut hash).expect("hashing does no input or output");
    let hash =
        hash.into_inner().unwrap_or_else(|_| unreachable!("hashing does no input or output"));
    hash.hex()
}

/// Reads the negatives of the events that a query set asks about, as [`write_negatives`] wrote
/// them.
///
/// Refuses a file that has other events, misses one, or names a node that the stream does not have.
pub fn read_negatives(
    file: &str,
    input: impl Read,
    query_set: &QuerySet,
    events: &Events,
    names: &Names,
) -> Result<Negatives> {
    let mut reader = csv::Reader::from_reader(input);
    let fault = |problem: String| {
        InputFault::new(
            file,
            problem,
            "read back a file that lstep wrote for this stream, protocol and seed",
        )
    };
    if reader.headers().map_err(|error| fault(error.to_string()))? != HEADER.as_slice() {
        return Err(fault(format!("does not begin with the columns {}", HEADER.join(",")))
            .line(1)
            .into());
    }
    let mut rows: Vec<Vec<(NodeId, NodeId)>> = vec![Vec::new(); query_set.asked().len()];
    let mut record = csv::StringRecord::new();
    let mut row = 0;
    loop {
        let line = reader.position().line();
        if !reader.read_record(&mut record).map_err(|error| fault(error.to_string()).line(line))? {
            break;
        }
        let event = record[0].parse::<u32>().ok();
        while row < rows.len() && event != Some(query_set.asked()[row]) && !rows[row].is_empty() {
            row += 1;
        }
        if row == rows.len() || event != Some(query_set.asked()[row]) {
            let problem = "is not the number of the next event asked about".to_string();
            return Err(fault(problem).line(line).column("event").value(&record[0]).into());
        }
        let node = |column: usize, side: Side| -> Result<NodeId> {
            let unknown = || {
                fault("is no node of the stream".into())
                    .line(line)
                    .column(HEADER[column])
                    .value(&record[column])
                    .into()
            };
            names.find(&record[column], side).ok_or_else(unknown)
        };
        rows[row].push((node(1, Side::Source)?, node(2, Side::Destination)?));
    }
    if let Some(missing) = rows.iter().position(Vec::is_empty) {
        let number = query_set.asked()[missing];
        return Err(fault(format!("has no negative for event {number}")).into());
    }
    let own_source = |row: usize| events.sources()[query_set.asked()[row] as usize];
    if (0..rows.len()).all(|row| rows[row].iter().all(|pair| pair.0 == own_source(row))) {
        let mut negatives = Negatives::of_destinations();
        rows.into_iter()
            .for_each(|row| negatives.push_destinations(row.into_iter().map(|pair| pair.1)));
        Ok(negatives)
    } else {
        let mut negatives = Negatives::of_pairs();
        rows.into_iter().for_each(|row| negatives.push_pairs(row));
        Ok(negatives)
    }
}

impl QuerySet {
    /// The file's name that a query set's negatives go by, for example
    /// `test-transductive-random.csv`.
    pub fn file_name(&self) -> String {
        format!("{}-{}-{}.csv", self.part, self.setting, self.strategy)
    }
}

fn quote(name: &str) -> Vec<u8> {
    if name.contains([',', '"', '\n', '\r']) || name.is_empty() {
        format!("\"{}\"", name.replace('"', "\"\"")).into_bytes()
    } else {
        name.as_bytes().to_vec()
    }
}
