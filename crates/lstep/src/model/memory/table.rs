//! The table of memories: a vector for each node that has interacted, and a message that is not
//! yet part of it.

use crate::checkpoint::{Checkpoint, impossible};
use crate::error::{Error, Result};
use crate::event::NodeId;
use crate::model::rows::NodeRows;
use std::ops::RangeInclusive;

/// Memories and pending messages. A node that has not interacted has neither.
#[derive(Debug, Clone)]
pub struct Memories {
    width: usize,
    /// The time from which a node's first message counts.
    start: f64,
    nodes: NodeRows,
    memories: Vec<f32>,
    /// When each memory was last changed.
    changed: Vec<f64>,
    /// Known once there is a message.
    message_width: usize,
    messages: Vec<f32>,
    /// The time of each row's message; not a number where none is pending.
    sent: Vec<f64>,
}

impl Memories {
    /// No memories yet.
    pub fn new(width: usize, start: f64) -> Memories {
        Memories {
            width,
            start,
            nodes: NodeRows::default(),
            memories: Vec::new(),
            changed: Vec::new(),
            message_width: 0,
            messages: Vec::new(),
            sent: Vec::new(),
        }
    }

    /// The width of a memory.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The node's row, if it has interacted.
    pub fn row(&self, node: NodeId) -> Option<u32> {
        self.nodes.row(node)
    }

    /// All memories, a row each.
    pub fn table(&self) -> &[f32] {
        &self.memories
    }

    /// All messages, a row each; stale where none is pending.
    pub fn messages(&self) -> &[f32] {
        &self.messages
    }

    /// The width of a message; 0 while there is none.
    pub fn message_width(&self) -> usize {
        self.message_width
    }

    /// Whether the row has a message that is not yet part of its memory.
    pub fn is_pending(&self, row: u32) -> bool {
        !self.sent[row as usize].is_nan()
    }

    /// A node's memory; nothing for one that has not interacted.
    pub fn of(&self, node: NodeId) -> &[f32] {
        let Some(row) = self.row(node) else { return &[] };
        &self.memories[row as usize * self.width..][..self.width]
    }

    /// When the node's memory was last changed; the start of time if never.
    pub fn changed(&self, node: NodeId) -> f64 {
        self.row(node).map_or(self.start, |row| self.changed[row as usize])
    }

    /// When the node's memory was last changed with a pending message applied; the start of time if
    /// never.
    pub fn updated(&self, node: NodeId) -> f64 {
        let Some(row) = self.row(node) else { return self.start };
        let sent = self.sent[row as usize];
        if sent.is_nan() { self.changed[row as usize] } else { sent }
    }

    /// Replaces the memories of some rows, whose messages are thereby used up: `vectors` holds a
    /// memory for each.
    pub fn update(&mut self, rows: &[u32], vectors: &[f32]) {
        for (&row, vector) in rows.iter().zip(vectors.chunks(self.width)) {
            let row = row as usize;
            self.memories[row * self.width..][..self.width].copy_from_slice(vector);
            self.changed[row] = self.sent[row];
            self.sent[row] = f64::NAN;
        }
    }

    /// Leaves a message for a node, in place of one that may be pending.
    pub fn send(&mut self, node: NodeId, time: f64, message: &[f32]) {
        self.message_width = message.len();
        let row = self.row_or_new(node);
        let end = (row + 1) * self.message_width;
        if self.messages.len() < end {
            self.messages.resize(end, 0.0);
        }
        self.messages[end - self.message_width..end].copy_from_slice(message);
        self.sent[row] = time;
    }

    fn row_or_new(&mut self, node: NodeId) -> usize {
        let row = self.nodes.row_or_new(node) as usize;
        if row == self.sent.len() {
            self.memories.resize((row + 1) * self.width, 0.0);
            self.changed.push(self.start);
            self.sent.push(f64::NAN);
        }
        row
    }

    /// Writes everything.
    pub fn save<'a>(&'a self, checkpoint: &mut Checkpoint<'a>) {
        let bits = |times: &[f64]| times.iter().map(|time| time.to_bits()).collect::<Vec<u64>>();
        self.nodes.save(checkpoint);
        checkpoint.push_f32("state.memories", &self.memories);
        checkpoint.push_u64("state.changed", bits(&self.changed));
        checkpoint.push_u64("state.message_width", vec![self.message_width as u64]);
        checkpoint.push_f32("state.messages", &self.messages);
        checkpoint.push_u64("state.sent", bits(&self.sent));
    }

    /// Takes over what [`Memories::save`] wrote, with messages of one of these widths.
    pub fn load(
        &mut self,
        checkpoint: &mut Checkpoint<'_>,
        message_widths: RangeInclusive<usize>,
    ) -> Result<()> {
        let times =
            |bits: &[u64]| bits.iter().map(|&bits| f64::from_bits(bits)).collect::<Vec<f64>>();
        self.nodes = NodeRows::load(checkpoint)?;
        self.memories = checkpoint.take_f32("state.memories")?;
        self.changed = times(checkpoint.u64("state.changed")?);
        let message_width = checkpoint.one_u64("state.message_width")?;
        self.message_width = usize::try_from(message_width).unwrap_or(usize::MAX);
        self.messages = checkpoint.take_f32("state.messages")?;
        self.sent = times(checkpoint.u64("state.sent")?);
        // A file that somebody made up may say anything.
        let rows = self.nodes.len();
        for (what, left, right) in [
            ("numbers of stored memories", self.memories.len(), rows * self.width),
            ("stored memories and when they changed", self.changed.len(), rows),
            ("stored memories and when their messages were sent", self.sent.len(), rows),
            (
                "numbers of stored messages",
                self.messages.len(),
                rows.saturating_mul(self.message_width),
            ),
        ] {
            if left != right {
                return Err(Error::LengthMismatch { what, left, right });
            }
        }
        // Whoever has a memory has been sent a message, of the one width that the model makes.
        if rows == 0 && self.message_width != 0
            || rows > 0 && !message_widths.contains(&self.message_width)
        {
            let width = self.message_width;
            return Err(impossible(format!("has messages of {width} numbers for {rows} memories")));
        }
        // A time that is not a number says that no message is pending.
        let finite = |time: &f64| time.is_finite();
        if !self.changed.iter().all(finite)
            || !self.sent.iter().all(|time| time.is_nan() || finite(time))
        {
            return Err(impossible("has memories that changed at no time"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_waits_until_it_becomes_memory() {
        let mut memories = Memories::new(2, 5.0);
        let node = NodeId(7);
        assert_eq!((memories.row(node), memories.changed(node)), (None, 5.0));
        memories.send(node, 8.0, &[1.0, 2.0, 3.0]);
        memories.send(node, 9.0, &[4.0, 5.0, 6.0]);
        let row = memories.row(node).expect("it has interacted");
        assert!(memories.is_pending(row));
        assert_eq!(memories.updated(node), 9.0);
        assert_eq!((memories.of(node), memories.changed(node)), ([0.0, 0.0].as_slice(), 5.0));
        memories.update(&[row], &[0.5, -0.5]);
        assert!(!memories.is_pending(row));
        assert_eq!((memories.of(node), memories.changed(node)), ([0.5, -0.5].as_slice(), 9.0));
    }
}
