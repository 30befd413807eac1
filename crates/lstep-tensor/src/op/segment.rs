//! Sums, means and weighted sums of gathered rows, one result per segment, without the gathered
//! rows ever existing.

use crate::backward::Backward;
use crate::kernel::scatter::scatter_add;
use crate::kernel::vector;
use crate::parallel;
use crate::tape::{Indices, Tape, Var};
use crate::workspace::Reader;

/// The factor w_j of entry j in a segment sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weighting {
    /// 1
    Sum,
    /// 1 / (number of entries of the segment)
    Mean,
    /// Learnable or given numbers.
    By {
        /// A vector, [1, k] or [k, 1].
        weights: Var,
        /// w_j = `weights[slots[j]]`; without slots w_j = `weights[j]`.
        slots: Option<Indices>,
    },
}

/// Which entries belong to which segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// Entry j is row `rows[j]`; without it, row j.
    pub rows: Option<Indices>,
    /// Segment i has the entries `offsets[i] .. offsets[i + 1]`; one more number than segments.
    pub offsets: Indices,
}

#[derive(Clone, Copy)]
pub(crate) struct Segment {
    x: Var,
    segments: Segments,
    weighting: Weighting,
    pub out: Var,
}

/// Segments given to one task, and merged into one partial sum of weight gradients.
pub(crate) const SEGMENTS: usize = 16;

impl Tape<'_> {
    /// `y[i]` = sum over entries j of segment i of w_j `x[rows[j]]`: x is [n, c], y is [segments,
    /// c]. An empty segment is 0.
    pub fn segment_sum(&mut self, x: Var, segments: Segments, weighting: Weighting) -> Var {
        let out = self.emit(segments.offsets.len() - 1, self.shape(x).1);
        self.segment_sum_into(out, x, segments, weighting);
        out
    }

    /// [`Tape::segment_sum`], written into `out` [segments, c].
    pub fn segment_sum_into(&mut self, out: Var, x: Var, segments: Segments, weighting: Weighting) {
        assert_eq!(
            self.shape(out),
            (segments.offsets.len() - 1, self.shape(x).1),
            "room for the sums"
        );
        let (read, [result]) = self.forward([out]);
        let entries = Entries::new(&read, segments, weighting);
        let x_values = read.matrix(x);
        let work = entries.len() * x_values.cols;
        parallel::rows(result, SEGMENTS, work, |first, mut part| {
            for i in 0..part.rows {
                let row = part.row(i);
                row.fill(0.0);
                let range = entries.range(first + i);
                let len = range.len();
                vector::add_rows(
                    row,
                    range.map(|j| (x_values.row(entries.row(j)), entries.weight(j, len))),
                );
            }
        });
        let weights = match weighting {
            Weighting::By { weights, .. } => weights,
            _ => x,
        };
        self.record(out, &[x, weights], || Segment { x, segments, weighting, out }.into());
    }
}

/// The entries of all segments, resolved.
#[derive(Clone, Copy)]
pub(crate) struct Entries<'b> {
    rows: Option<&'b [u32]>,
    offsets: &'b [u32],
    weighting: Weighting,
    weights: &'b [f32],
    slots: Option<&'b [u32]>,
}

impl<'b> Entries<'b> {
    pub fn new(read: &Reader<'b>, segments: Segments, weighting: Weighting) -> Self {
        let (weights, slots) = match weighting {
            Weighting::By { weights, slots } => {
                (read.flat(weights), slots.map(|slots| read.indices(slots)))
            }
            _ => (&[][..], None),
        };
        let rows = segments.rows.map(|rows| read.indices(rows));
        let entries =
            Self { rows, offsets: read.indices(segments.offsets), weighting, weights, slots };
        if let Some(rows) = rows {
            assert!(rows.len() >= entries.len(), "offsets reach past the list of rows");
        }
        entries
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.offsets.last().map_or(0, |&end| end as usize)
    }

    pub fn range(&self, segment: usize) -> std::ops::Range<usize> {
        self.offsets[segment] as usize..self.offsets[segment + 1] as usize
    }

    #[inline]
    pub fn row(&self, entry: usize) -> usize {
        self.rows.map_or(entry, |rows| rows[entry] as usize)
    }

    #[inline]
    pub fn slot(&self, entry: usize) -> usize {
        self.slots.map_or(entry, |slots| slots[entry] as usize)
    }

    #[inline]
    pub fn weight(&self, entry: usize, segment_len: usize) -> f32 {
        match self.weighting {
            Weighting::Sum => 1.0,
            Weighting::Mean => 1.0 / segment_len as f32,
            Weighting::By { .. } => self.weights[self.slot(entry)],
        }
    }

    fn segments(&self) -> usize {
        self.offsets.len() - 1
    }
}

impl Segment {
    /// `dx[rows[j]]` += w_j `dy[i]` and `dweights[slots[j]]` += <`dy[i]`, `x[rows[j]]`>, i the
    /// segment of j.
    pub fn backward(&self, backward: &mut Backward<'_>) {
        let read = backward.read;
        let entries = Entries::new(&read, self.segments, self.weighting);
        if let Weighting::By { weights, .. } = self.weighting
            && backward.grads.wants(weights)
        {
            let (dy, mut dw) = backward.grads.pair(self.out, weights);
            let dw = dw.flat().expect("weights are a dense vector");
            let x = read.matrix(self.x);
            let dot = |i: usize, j: usize| vector::dot(dy.row(i), x.row(entries.row(j)));
            add_weight_gradients(entries, dw, x.cols, &mut backward.scratch.floats, dot);
        }
        if backward.grads.wants(self.x) {
            self.backward_rows(backward, entries);
        }
    }

    fn backward_rows(&self, backward: &mut Backward<'_>, entries: Entries<'_>) {
        // Without row numbers every entry is its own row, and mostly there are no others.
        let all = entries.rows.is_none() && entries.len() == backward.read.matrix(self.x).rows;
        let (dy, mut dx, fresh) = if all {
            backward.grads.pair_or_fresh(self.out, self.x)
        } else {
            let (dy, dx) = backward.grads.pair(self.out, self.x);
            (dy, dx, false)
        };
        let owners = &mut backward.scratch.owners;
        owners.clear();
        for segment in 0..entries.segments() {
            owners.extend(entries.range(segment).map(|_| segment as u32));
        }
        let source = |j: usize| {
            let segment = owners[j] as usize;
            (dy.row(segment), entries.weight(j, entries.range(segment).len()))
        };
        if let Some(rows) = entries.rows {
            scatter_add(dx, &rows[..owners.len()], source, &mut backward.scratch.integers);
            return;
        }
        dx.rows = owners.len();
        let work = dx.rows * dx.cols;
        parallel::rows(dx, 64, work, |first, mut dx| {
            for i in 0..dx.rows {
                let (values, factor) = source(first + i);
                if fresh {
                    vector::scaled(dx.row(i), values, factor);
                } else {
                    vector::add_scaled(dx.row(i), values, factor);
                }
            }
        });
    }
}

/// `dw[slot of j]` += dot(segment of j, j): partial sums of fixed blocks of segments, merged in
/// order.
pub(crate) fn add_weight_gradients(
    entries: Entries<'_>,
    dw: &mut [f32],
    cost: usize,
    floats: &mut crate::slab::Slab,
    dot: impl Fn(usize, usize) -> f32 + Sync + Send,
) {
    let slots = dw.len();
    if slots == 0 {
        return;
    }
    if entries.slots.is_none() {
        for segment in 0..entries.segments() {
            for j in entries.range(segment) {
                dw[j] += dot(segment, j);
            }
        }
        return;
    }
    let partial = floats.take(entries.segments().div_ceil(SEGMENTS) * slots);
    parallel::chunks(partial, slots, entries.len() * cost, |block, sums| {
        sums.fill(0.0);
        for segment in block * SEGMENTS..((block + 1) * SEGMENTS).min(entries.segments()) {
            for j in entries.range(segment) {
                sums[entries.slot(j)] += dot(segment, j);
            }
        }
    });
    for sums in partial.chunks(slots) {
        vector::add(dw, sums);
    }
}
