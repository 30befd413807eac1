//! Adding many rows to few, in an order that depends on neither threads nor memory.
//!
//! Contributions are first grouped by target row with a stable counting sort; each target then adds
//! its own in their original order. Targets are independent, so they can be shared between threads
//! without atomics.

use crate::kernel::vector;
use crate::matrix::MatrixMut;
use crate::parallel;

/// Target rows given to one task.
const TARGETS: usize = 32;

/// `target[rows[j]]` += factor source for `source(j) = (source, factor)`, j = 0, 1, ..
pub(crate) fn scatter_add<'s>(
    mut target: MatrixMut<'_>,
    rows: &[u32],
    source: impl Fn(usize) -> (&'s [f32], f32) + Sync + Send,
    integers: &mut Vec<u32>,
) {
    let count = target.rows;
    if count > 8 * rows.len() {
        // Grouping would walk over many rows that get nothing. The order per target is the same.
        for (j, &row) in rows.iter().enumerate() {
            let (values, factor) = source(j);
            vector::add_scaled(target.row(row as usize), values, factor);
        }
        return;
    }
    let (starts, order) = group(rows, count, integers);
    let work = rows.len() * target.cols;
    parallel::rows(target, TARGETS, work, |first, mut part| {
        for i in 0..part.rows {
            let group = &order[starts[first + i] as usize..starts[first + i + 1] as usize];
            vector::add_rows(part.row(i), group.iter().map(|&j| source(j as usize)));
        }
    });
}

/// For each of `count` rows where its entries start in the second list, which holds the places j
/// with `rows[j]` = row.
fn group<'i>(rows: &[u32], count: usize, integers: &'i mut Vec<u32>) -> (&'i [u32], &'i [u32]) {
    integers.clear();
    integers.resize(count + 2 + rows.len(), 0);
    // Shifted by one, the counters become the starts when all entries are placed.
    let (starts, order) = integers.split_at_mut(count + 2);
    for &row in rows {
        starts[row as usize + 2] += 1;
    }
    for i in 2..starts.len() {
        starts[i] += starts[i - 1];
    }
    for (j, &row) in rows.iter().enumerate() {
        let place = &mut starts[row as usize + 1];
        order[*place as usize] = j as u32;
        *place += 1;
    }
    (starts, order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_keep_the_original_order() {
        let mut integers = Vec::new();
        let (starts, order) = group(&[2, 0, 2, 3, 0], 5, &mut integers);
        assert_eq!(&starts[..6], [0, 2, 2, 4, 5, 5]);
        assert_eq!(order, [1, 4, 0, 2, 3]);
    }
}
