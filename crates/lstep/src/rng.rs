//! Keyed random numbers: the same key gives the same numbers, on every machine and in every
//! version.
//!
//! SplitMix64. It is chosen over the generators of `rand` because a draw is opened for every seed
//! of every query, so opening it must cost nothing, and because a result must not change when a
//! dependency does.

/// A stream of random numbers that its key determines.
#[derive(Debug, Clone)]
pub struct KeyedRng {
    state: u64,
}

impl KeyedRng {
    /// The stream of a key. Every part counts, and so does their order.
    pub fn new(key: &[u64]) -> KeyedRng {
        let mut draw = KeyedRng { state: 0x9e37_79b9_7f4a_7c15 };
        for &part in key {
            draw.state = draw.next() ^ part.wrapping_mul(0xd6e8_feb8_6659_fd93);
        }
        draw
    }

    /// The next 64 random bits.
    #[expect(
        clippy::should_implement_trait,
        reason = "a stream of numbers without an end is no iterator to loop over"
    )]
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number in [0, bound), each equally likely to within 2^-64 of the bound.
    ///
    /// # Panics
    /// If the bound is zero.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "nothing is below zero");
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Puts values into a random order, every one equally likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for place in (1..values.len()).rev() {
            values.swap(place, self.below(place as u64 + 1) as usize);
        }
    }

    /// A number in [0, 1).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_the_key_and_their_order_count() {
        let first = |key: &[u64]| KeyedRng::new(key).next();
        let keys: [&[u64]; 5] = [&[1, 2], &[2, 1], &[1], &[1, 2, 0], &[]];
        for (place, key) in keys.iter().enumerate() {
            for other in &keys[..place] {
                assert_ne!(first(key), first(other), "{key:?} {other:?}");
            }
        }
        assert_eq!(first(&[7, 8]), first(&[7, 8]));
    }

    #[test]
    fn bounded_draws_are_even() {
        let mut draw = KeyedRng::new(&[3]);
        let mut counts = [0u32; 7];
        (0..70_000).for_each(|_| counts[draw.below(7) as usize] += 1);
        assert!(counts.iter().all(|&count| (9_600..10_400).contains(&count)), "{counts:?}");
        assert!((0..1_000).all(|_| (0.0..1.0).contains(&draw.unit())));
    }
}
