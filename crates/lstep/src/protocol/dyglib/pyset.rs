//! CPython's `set`, slot for slot (3.8 to 3.13): the order in which a set is iterated.
//!
//! Python promises no order, but DyGLib samples from `tuple(set)` and `list(set - set)`, so its
//! samples follow from the layout of the hash table. That layout depends only on the keys' hashes
//! and on the order of operations, and so can be rebuilt: open addressing over 2^k slots, short
//! linear runs, then a perturbed jump. Iteration is slot order.

/// What a set can hold: a value, its Python hash, and two values that never occur as keys, to mark
/// slots.
pub trait Key: Copy + Eq {
    /// Marks a slot never used.
    const EMPTY: Self;
    /// Marks a slot whose key was removed.
    const REMOVED: Self;
    /// Python's `hash` of the key.
    fn hash(self) -> u64;
}

/// An integer. `i64::MIN` and its successor mark slots and cannot be keys.
impl Key for i64 {
    const EMPTY: i64 = i64::MIN;
    const REMOVED: i64 = i64::MIN + 1;

    /// The value modulo 2^61 - 1 with the value's sign, so small integers hash to themselves. C
    /// code returns -1 for failure, therefore -1 hashes to -2.
    #[inline]
    fn hash(self) -> u64 {
        let rest = self % ((1 << 61) - 1);
        (if rest == -1 { -2 } else { rest }) as u64
    }
}

/// A pair of ids: Python's tuple `(source, destination)`. `u32::MAX` as source marks slots and
/// cannot be an id.
impl Key for (u32, u32) {
    const EMPTY: (u32, u32) = (u32::MAX, 0);
    const REMOVED: (u32, u32) = (u32::MAX, 1);

    /// The tuple hash of CPython 3.8 and later, after xxHash.
    #[inline]
    fn hash(self) -> u64 {
        const PRIME_1: u64 = 11_400_714_785_074_694_791;
        const PRIME_2: u64 = 14_029_467_366_897_019_727;
        const PRIME_5: u64 = 2_870_177_450_012_600_261;
        let mut sum = PRIME_5;
        for member in [self.0, self.1] {
            sum = sum
                .wrapping_add(u64::from(member).wrapping_mul(PRIME_2))
                .rotate_left(31)
                .wrapping_mul(PRIME_1);
        }
        sum = sum.wrapping_add(2 ^ (PRIME_5 ^ 3_527_539));
        if sum == u64::MAX { 1_546_275_796 } else { sum }
    }
}

/// The same pair where both ids are small: a table of all pairs of a graph takes half the memory.
/// `u16::MAX` as source marks slots and cannot be an id.
impl Key for (u16, u16) {
    const EMPTY: (u16, u16) = (u16::MAX, 0);
    const REMOVED: (u16, u16) = (u16::MAX, 1);

    #[inline]
    fn hash(self) -> u64 {
        (u32::from(self.0), u32::from(self.1)).hash()
    }
}

/// Slots looked at in a row before the next jump, after the first.
const RUN: usize = 9;

/// A set whose iteration order is that of CPython.
#[derive(Debug, Clone)]
pub struct PySet<K> {
    slots: Vec<K>,
    /// Slots that are not empty: keys and removed keys.
    fill: usize,
    used: usize,
}

/// The smallest table with more than `least` slots.
fn table_size(least: usize) -> usize {
    let mut size = 8;
    while size <= least {
        size <<= 1;
    }
    size
}

impl<K: Key> Default for PySet<K> {
    fn default() -> Self {
        PySet { slots: vec![K::EMPTY; 8], fill: 0, used: 0 }
    }
}

impl<K: Key> PySet<K> {
    /// `set()`.
    pub fn new() -> PySet<K> {
        PySet::default()
    }

    /// `len(self)`.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// The keys in the order Python would give them.
    pub fn iter(&self) -> impl Iterator<Item = K> + '_ {
        self.slots.iter().copied().filter(|&slot| slot != K::EMPTY && slot != K::REMOVED)
    }

    /// `key in self`.
    pub fn contains(&self, key: K) -> bool {
        self.slots[self.find(key)] == key
    }

    /// `self.add(key)`. Of removed keys' slots on the way, the last is used again (3.11; the
    /// protocol never does this).
    #[inline]
    pub fn add(&mut self, key: K) {
        let mut removed = None;
        let slot = self.probe(key, |slot| {
            if self.slots[slot] == K::REMOVED {
                removed = Some(slot);
            }
        });
        if self.slots[slot] == key {
            return;
        }
        self.used += 1;
        if let Some(slot) = removed {
            self.slots[slot] = key;
            return;
        }
        self.slots[slot] = key;
        self.fill += 1;
        if self.crowded(self.fill) {
            self.resize(if self.used > 50_000 { self.used * 2 } else { self.used * 4 });
        }
    }

    /// `set(self)`. The copy can have another size and so another order: copying drops what growth
    /// left over.
    pub fn copy(&self) -> PySet<K> {
        let mut copy = PySet::new();
        copy.merge(self);
        copy
    }

    /// `set(self)` of a set that is not needed any more: the same table if the copy's would be
    /// equal.
    pub fn into_copy(self) -> PySet<K> {
        let empty: PySet<K> = PySet::new();
        let slots =
            if empty.crowded(self.used) { table_size(self.used * 2) } else { empty.slots.len() };
        if slots == self.slots.len() && self.fill == self.used { self } else { self.copy() }
    }

    /// `self | other`. Python notices when both are the same object, and does not make room for its
    /// keys twice.
    pub fn union(&self, other: &PySet<K>) -> PySet<K> {
        let mut union = self.copy();
        if !std::ptr::eq(self, other) {
            union.merge(other);
        }
        union
    }

    /// `self - other`. From a set far larger than the other, Python copies and removes; else it
    /// adds to a new one.
    pub fn difference(&self, other: &PySet<K>) -> PySet<K> {
        if self.used >> 2 <= other.used {
            return self.iter().filter(|&key| !other.contains(key)).collect();
        }
        let mut rest = self.copy();
        for key in other.iter() {
            rest.remove(key);
        }
        rest
    }

    /// Removes a key within a difference. CPython may shrink the table afterwards, but only if more
    /// than a quarter of the slots hold removed keys; here fewer than a quarter of at most three
    /// fifths can.
    fn remove(&mut self, key: K) {
        let slot = self.find(key);
        if self.slots[slot] == key {
            self.slots[slot] = K::REMOVED;
            self.used -= 1;
        }
    }

    fn merge(&mut self, other: &PySet<K>) {
        if other.is_empty() {
            return;
        }
        if self.crowded(self.fill + other.used) {
            self.resize((self.used + other.used) * 2);
        }
        if self.fill == 0 && self.slots.len() == other.slots.len() && other.fill == other.used {
            self.clone_from(other);
            return;
        }
        if self.fill == 0 {
            // A table made for this many keys is not checked again while they go in.
            for key in other.iter() {
                let slot = self.find(key);
                self.slots[slot] = key;
            }
            (self.fill, self.used) = (other.used, other.used);
            return;
        }
        for key in other.iter() {
            self.add(key);
        }
    }

    /// More than about three fifths of the slots.
    fn crowded(&self, fill: usize) -> bool {
        fill * 5 >= (self.slots.len() - 1) * 3
    }

    /// Makes the smallest table with more than `least` slots, and puts the keys in again in the old
    /// slot order.
    fn resize(&mut self, least: usize) {
        let old = std::mem::replace(&mut self.slots, vec![K::EMPTY; table_size(least)]);
        for key in old {
            if key != K::EMPTY && key != K::REMOVED {
                let slot = self.find(key);
                self.slots[slot] = key;
            }
        }
        self.fill = self.used;
    }

    /// The slot that holds the key, or else the first empty one on its path.
    #[inline]
    fn find(&self, key: K) -> usize {
        self.probe(key, |_| ())
    }

    /// As `find`, showing every slot passed over.
    #[inline]
    fn probe(&self, key: K, mut passed: impl FnMut(usize)) -> usize {
        let mask = self.slots.len() - 1;
        let mut perturb = key.hash();
        let mut start = perturb as usize & mask;
        loop {
            let run = if start + RUN <= mask { RUN } else { 0 };
            for slot in start..=start + run {
                if self.slots[slot] == key || self.slots[slot] == K::EMPTY {
                    return slot;
                }
                passed(slot);
            }
            perturb >>= 5;
            start = start.wrapping_mul(5).wrapping_add(1).wrapping_add(perturb as usize) & mask;
        }
    }
}

/// `set(keys)`.
impl<K: Key> FromIterator<K> for PySet<K> {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
        let mut set = PySet::new();
        set.extend(keys);
        set
    }
}

impl<K: Key> Extend<K> for PySet<K> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        keys.into_iter().for_each(|key| self.add(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_hash_as_in_python() {
        assert_eq!(7_i64.hash(), 7);
        assert_eq!((-1_i64).hash() as i64, -2);
        assert_eq!((-5_i64).hash() as i64, -5);
        assert_eq!(((1_i64 << 61) - 1).hash(), 0);
        assert_eq!((1_i64 << 61).hash(), 1);
        assert_eq!((-(1_i64 << 61)).hash() as i64, -2);
    }

    #[test]
    fn a_pair_hashes_as_pythons_tuple() {
        assert_eq!((1_u32, 2_u32).hash() as i64, -3550055125485641917);
        assert_eq!((0_u32, 0_u32).hash() as i64, -8458139203682520985);
    }

    #[test]
    fn iteration_is_slot_order_not_the_order_of_adding() {
        let set: PySet<i64> = [9, 1, 8, 3].into_iter().collect();
        // 9 takes slot 1 of 8; 1 finds it taken and, too near the end for a run, jumps.
        assert_eq!(set.iter().collect::<Vec<_>>(), [8, 9, 3, 1]);
    }
}
