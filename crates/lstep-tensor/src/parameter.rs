//! Named parameters and their gradients: two flat buffers of the same layout.
//!
//! Values and gradients are separate types because they are borrowed differently: a tape only reads
//! values, so many threads can score with the same [`Parameters`], and a backward pass writes into
//! [`Gradients`] of its own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;
use crate::init::Init;
use crate::kernel::vector;
use crate::matrix::Matrix;
use crate::parallel;
use crate::slab::Slab;

/// The place of a parameter in its [`Parameters`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ParameterId(pub(crate) usize);

/// One parameter as seen from outside.
#[derive(Clone, Copy, Debug)]
pub struct Parameter<'a> {
    /// The path, such as `link.in.weight`.
    pub name: &'a str,
    /// Rows: outputs of a weight; 1 for a vector.
    pub rows: usize,
    /// Columns: inputs of a weight; the length of a vector.
    pub cols: usize,
    /// The values in row-major order.
    pub values: &'a [f32],
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub name: String,
    pub rows: usize,
    pub cols: usize,
    pub offset: usize,
}

impl Entry {
    pub fn range(&self) -> std::ops::Range<usize> {
        self.offset..self.offset + self.rows * self.cols
    }
}

/// Named matrices in the order in which they were added.
#[derive(Clone, Default)]
pub struct Parameters {
    seed: u64,
    entries: Vec<Entry>,
    by_name: BTreeMap<String, ParameterId>,
    values: Slab,
    len: usize,
    version: u64,
    limit: Option<usize>,
    /// How many numbers all parameters together would have, if they are more than the limit.
    beyond: Option<usize>,
}

/// The last version given out.
static VERSIONS: AtomicU64 = AtomicU64::new(0);

impl Parameters {
    /// No parameters yet; those added are drawn from `seed` and their names.
    pub fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// As [`Parameters::new`], with at most so many numbers in all parameters together. One that
    /// goes beyond gets no memory and is empty; whoever adds them asks [`Parameters::beyond`] at
    /// the end.
    pub fn with_limit(seed: u64, most: usize) -> Self {
        Self { seed, limit: Some(most), ..Self::default() }
    }

    /// How many numbers were added, if they are more than the limit.
    pub fn beyond(&self) -> Option<usize> {
        self.beyond
    }

    /// Adds a [rows, cols] parameter.
    ///
    /// # Panics
    /// If the name is taken: two layers would silently share or overwrite a stored weight.
    pub fn add(&mut self, name: &str, rows: usize, cols: usize, init: Init) -> ParameterId {
        let id = ParameterId(self.entries.len());
        let previous = self.by_name.insert(name.to_owned(), id);
        assert!(previous.is_none(), "two parameters are named {name:?}");
        let (rows, cols) = if self.admits(rows, cols) { (rows, cols) } else { (0, 0) };
        let offset = self.len;
        self.len = Slab::round_up(offset + rows * cols);
        self.values.reserve(self.len);
        let entry = Entry { name: name.to_owned(), rows, cols, offset };
        init.fill(&mut self.values.as_mut_slice()[entry.range()], rows, cols, self.seed, name);
        self.entries.push(entry);
        self.changed();
        id
    }

    /// Whether one more parameter stays within the limit.
    fn admits(&mut self, rows: usize, cols: usize) -> bool {
        let Some(most) = self.limit else { return true };
        let before = self.beyond.unwrap_or_else(|| self.count());
        let count = before.saturating_add(rows.saturating_mul(cols));
        self.beyond = (count > most).then_some(count);
        self.beyond.is_none()
    }

    /// A number that no other values of any parameters have, in this process: what is computed from
    /// the values alone can be kept as long as it stays. A copy has the number of its original
    /// until one of them changes.
    pub fn version(&self) -> u64 {
        self.version
    }

    fn changed(&mut self) {
        self.version = VERSIONS.fetch_add(1, Ordering::Relaxed) + 1;
    }

    /// The parameter of that name.
    pub fn find(&self, name: &str) -> Result<ParameterId, Error> {
        self.by_name
            .get(name)
            .copied()
            .ok_or_else(|| Error::UnknownParameter { name: name.to_owned() })
    }

    /// Moves every value by this share of its way to that of another copy of the same parameters.
    pub fn approach(&mut self, other: &Parameters, share: f32) {
        assert_eq!(self.len, other.len, "values of different parameters");
        vector::approach(self.flat_mut(), other.flat(), share);
    }

    /// How many parameters there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many numbers there are in all parameters together.
    pub fn count(&self) -> usize {
        self.entries.iter().map(|entry| entry.rows * entry.cols).sum()
    }

    /// One parameter.
    pub fn get(&self, id: ParameterId) -> Parameter<'_> {
        let entry = &self.entries[id.0];
        Parameter {
            name: &entry.name,
            rows: entry.rows,
            cols: entry.cols,
            values: &self.values.as_slice()[entry.range()],
        }
    }

    /// The values of one parameter, to change.
    pub fn values_mut(&mut self, id: ParameterId) -> &mut [f32] {
        self.changed();
        let range = self.entries[id.0].range();
        &mut self.values.as_mut_slice()[range]
    }

    /// All parameters in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = Parameter<'_>> {
        (0..self.entries.len()).map(|i| self.get(ParameterId(i)))
    }

    /// Replaces the values of the parameter called `name`, exactly.
    pub fn load(&mut self, name: &str, values: &[f32]) -> Result<(), Error> {
        let id = self.find(name)?;
        self.changed();
        self.entries[id.0].copy_into(self.values.as_mut_slice(), values)
    }

    pub(crate) fn entry(&self, id: ParameterId) -> &Entry {
        &self.entries[id.0]
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// All values, with gaps of zeros up to the next cache line between parameters.
    pub(crate) fn flat(&self) -> &[f32] {
        &self.values.as_slice()[..self.len]
    }

    pub(crate) fn flat_mut(&mut self) -> &mut [f32] {
        self.changed();
        &mut self.values.as_mut_slice()[..self.len]
    }
}

impl Entry {
    pub(crate) fn copy_into(&self, flat: &mut [f32], values: &[f32]) -> Result<(), Error> {
        if values.len() != self.rows * self.cols {
            return Err(Error::WrongLength {
                name: self.name.clone(),
                rows: self.rows,
                cols: self.cols,
                len: values.len(),
            });
        }
        flat[self.range()].copy_from_slice(values);
        Ok(())
    }
}

/// The gradients of all parameters. They accumulate until [`Gradients::zero`].
#[derive(Clone)]
pub struct Gradients {
    entries: Vec<Entry>,
    values: Slab,
    len: usize,
}

/// Numbers that one task sets to zero.
const ZERO_CHUNK: usize = 1 << 15;

/// Numbers whose squares are summed by one task of a norm.
pub(crate) const NORM_CHUNK: usize = 4096;

impl Gradients {
    /// Zero gradients for these parameters.
    pub fn of(parameters: &Parameters) -> Self {
        let mut values = Slab::default();
        values.reserve(parameters.len);
        Self { entries: parameters.entries.clone(), values, len: parameters.len }
    }

    /// Sets all gradients to 0.
    pub fn zero(&mut self) {
        let work = self.len;
        parallel::chunks(self.flat_mut(), ZERO_CHUNK, work, |_, part| part.fill(0.0));
    }

    /// Adds the gradients of other passes over the same parameters, one after the other.
    pub fn add(&mut self, others: &[Gradients]) {
        assert!(
            others.iter().all(|other| other.len == self.len),
            "gradients of different parameters"
        );
        let work = self.len * others.len();
        parallel::chunks(self.flat_mut(), ZERO_CHUNK, work, |chunk, part| {
            for other in others {
                vector::add(part, &other.flat()[chunk * ZERO_CHUNK..][..part.len()]);
            }
        });
    }

    /// The gradient of one parameter.
    pub fn get(&self, id: ParameterId) -> Matrix<'_> {
        let entry = &self.entries[id.0];
        Matrix::new(&self.values.as_slice()[entry.range()], entry.rows, entry.cols)
    }

    /// The gradient of one parameter, to change.
    pub fn get_mut(&mut self, id: ParameterId) -> &mut [f32] {
        let range = self.entries[id.0].range();
        &mut self.values.as_mut_slice()[range]
    }

    /// The 2-norm of all gradients together. Summed in `f64` over fixed chunks, so it depends on
    /// nothing else.
    pub fn norm(&self) -> f64 {
        let chunks = self.flat().chunks(NORM_CHUNK);
        chunks.map(vector::wide_sum_of_squares).sum::<f64>().sqrt()
    }

    /// Scales all gradients by min(1, largest / (norm + 1e-6)), as PyTorch's `clip_grad_norm_`;
    /// returns the norm before.
    pub fn clip_norm(&mut self, largest: f64) -> f64 {
        let norm = self.norm();
        let factor = largest / (norm + 1e-6);
        if factor < 1.0 {
            vector::scale(self.flat_mut(), factor as f32);
        }
        norm
    }

    /// All gradients, one parameter after the other.
    pub fn flat(&self) -> &[f32] {
        &self.values.as_slice()[..self.len]
    }

    /// All gradients, to change.
    pub fn flat_mut(&mut self) -> &mut [f32] {
        &mut self.values.as_mut_slice()[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adding_a_parameter_changes_no_other() {
        let mut few = Parameters::new(3);
        let a = few.add("a", 5, 7, Init::XavierUniform);
        let mut many = Parameters::new(3);
        many.add("b", 2, 2, Init::XavierUniform);
        let again = many.add("a", 5, 7, Init::XavierUniform);
        assert_eq!(few.get(a).values, many.get(again).values);
        assert_eq!(many.iter().map(|p| p.name).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(many.count(), 39);
    }

    #[test]
    fn loading_another_shape_or_name_is_refused() {
        let mut parameters = Parameters::new(0);
        parameters.add("a", 1, 2, Init::Zeros);
        assert_eq!(parameters.load("a", &[1.0, 2.0]), Ok(()));
        assert!(matches!(parameters.load("a", &[1.0]), Err(Error::WrongLength { len: 1, .. })));
        assert!(matches!(parameters.load("c", &[1.0]), Err(Error::UnknownParameter { .. })));
        assert_eq!(parameters.iter().next().expect("the only parameter").values, [1.0, 2.0]);
    }

    #[test]
    fn a_copy_has_the_version_of_its_original_until_either_changes() {
        let mut original = Parameters::new(0);
        let a = original.add("a", 1, 2, Init::Zeros);
        let mut copy = original.clone();
        assert_eq!(original.version(), copy.version());
        original.values_mut(a)[0] = 1.0;
        let changed = original.version();
        assert_ne!(changed, copy.version());
        copy.load("a", &[1.0, 0.0]).expect("its shape");
        assert_ne!(changed, copy.version());
    }

    #[test]
    fn values_approach_those_of_a_copy_by_a_share() {
        let mut slow = Parameters::new(0);
        let a = slow.add("a", 1, 2, Init::Zeros);
        let mut fast = slow.clone();
        fast.values_mut(a).copy_from_slice(&[1.0, -4.0]);
        let before = slow.version();
        slow.approach(&fast, 0.25);
        assert_eq!(slow.get(a).values, [0.25, -1.0]);
        assert_ne!(slow.version(), before);
        slow.approach(&fast, 1.0);
        assert_eq!(slow.get(a).values, fast.get(a).values);
    }

    #[test]
    fn what_goes_beyond_the_limit_gets_no_memory() {
        let mut parameters = Parameters::with_limit(0, 10);
        let first = parameters.add("a", 2, 5, Init::Zeros);
        assert_eq!((parameters.beyond(), parameters.get(first).values.len()), (None, 10));
        let large = parameters.add("b", usize::MAX, 4, Init::Zeros);
        assert_eq!(parameters.beyond(), Some(usize::MAX));
        assert!(parameters.values_mut(large).is_empty());
        assert!(parameters.values.bytes() < 1000);
        let mut parameters = Parameters::with_limit(0, 10);
        parameters.add("a", 2, 6, Init::Zeros);
        parameters.add("b", 1, 1, Init::Zeros);
        assert_eq!(parameters.beyond(), Some(13));
    }

    #[test]
    fn clipping_leaves_small_gradients_alone_and_scales_large_ones_to_the_bound() {
        let mut parameters = Parameters::new(0);
        let a = parameters.add("a", 1, 2, Init::Zeros);
        let mut gradients = Gradients::of(&parameters);
        gradients.get_mut(a).copy_from_slice(&[3.0, 4.0]);
        assert_eq!(gradients.clip_norm(10.0), 5.0);
        assert_eq!(gradients.get(a).to_vec(), [3.0, 4.0]);
        gradients.clip_norm(1.0);
        assert!((gradients.norm() - 1.0).abs() < 1e-5);
    }
}
