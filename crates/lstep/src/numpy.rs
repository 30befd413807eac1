//! MT19937 as numpy's legacy `RandomState` and Python's `random` drive it.
//!
//! One generator, two ways to seed it and two ways to draw below a bound: numpy masks low bits,
//! Python takes high bits. Streams of both have been frozen by their projects, so these numbers
//! stay.

const SIZE: usize = 624;
const HALF: usize = 397;

/// The generator itself: 32-bit outputs.
#[derive(Clone)]
struct Mersenne {
    words: [u32; SIZE],
    place: usize,
}

impl Mersenne {
    /// Knuth's initialiser: the whole state from one word.
    fn from_word(seed: u32) -> Mersenne {
        let mut words = [seed; SIZE];
        for i in 1..SIZE {
            words[i] = 1_812_433_253_u32
                .wrapping_mul(words[i - 1] ^ (words[i - 1] >> 30))
                .wrapping_add(i as u32);
        }
        Mersenne { words, place: SIZE }
    }

    /// The reference implementation's `init_by_array`.
    fn from_key(key: &[u32]) -> Mersenne {
        let mut mersenne = Mersenne::from_word(19_650_218);
        let words = &mut mersenne.words;
        let mut i = 1;
        // Moves to the next word; the last one is also the first one's predecessor.
        let advance = |words: &mut [u32; SIZE], i: &mut usize| {
            *i += 1;
            if *i == SIZE {
                words[0] = words[SIZE - 1];
                *i = 1;
            }
        };
        for step in 0..SIZE.max(key.len()) {
            let j = step % key.len();
            let mixed = (words[i - 1] ^ (words[i - 1] >> 30)).wrapping_mul(1_664_525);
            words[i] = (words[i] ^ mixed).wrapping_add(key[j]).wrapping_add(j as u32);
            advance(words, &mut i);
        }
        for _ in 1..SIZE {
            let mixed = (words[i - 1] ^ (words[i - 1] >> 30)).wrapping_mul(1_566_083_941);
            words[i] = (words[i] ^ mixed).wrapping_sub(i as u32);
            advance(words, &mut i);
        }
        words[0] = 0x8000_0000;
        mersenne
    }

    #[inline]
    fn next(&mut self) -> u32 {
        if self.place == SIZE {
            self.turn();
        }
        let mut y = self.words[self.place];
        self.place += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    fn turn(&mut self) {
        for i in 0..SIZE {
            let y = (self.words[i] & 0x8000_0000) | (self.words[(i + 1) % SIZE] & 0x7fff_ffff);
            let twist = if y & 1 == 1 { 0x9908_b0df } else { 0 };
            self.words[i] = self.words[(i + HALF) % SIZE] ^ (y >> 1) ^ twist;
        }
        self.place = 0;
    }
}

/// numpy's `RandomState`, and so `np.random` after `np.random.seed`.
#[derive(Clone)]
pub struct RandomState(Mersenne);

impl RandomState {
    /// `RandomState(seed)`.
    pub fn new(seed: u32) -> RandomState {
        RandomState(Mersenne::from_word(seed))
    }

    /// A raw 32-bit output.
    pub fn next_u32(&mut self) -> u32 {
        self.0.next()
    }

    /// `randint(0, bound)`: low bits, rejected while too large. A bound of 1 draws nothing.
    ///
    /// # Panics
    /// If the bound is 0 or above 2^32.
    #[inline]
    pub fn below(&mut self, bound: usize) -> usize {
        let most = u32::try_from(bound - 1).expect("a bound has at most 32 bits");
        if most == 0 {
            return 0;
        }
        let mask = u32::MAX >> most.leading_zeros();
        loop {
            let value = self.0.next() & mask;
            if value <= most {
                return value as usize;
            }
        }
    }

    /// `choice(count, size, replace)`: places in a population of `count`.
    ///
    /// Without replacement the whole population is shuffled, whatever the size: O(count).
    ///
    /// # Panics
    /// If more is asked for without replacement than there is, or anything of nothing.
    pub fn choice(&mut self, count: usize, size: usize, replace: bool) -> Vec<usize> {
        if replace {
            return (0..size).map(|_| self.below(count)).collect();
        }
        self.permutation(count)[..size].iter().map(|&place| place as usize).collect()
    }

    /// `permutation(count)`.
    pub fn permutation(&mut self, count: usize) -> Vec<u32> {
        let count = u32::try_from(count).expect("a population has fewer than 2^32 members");
        let mut places: Vec<u32> = (0..count).collect();
        for i in (1..places.len()).rev() {
            places.swap(i, self.below(i + 1));
        }
        places
    }
}

/// Python's `random` module.
#[derive(Clone)]
pub struct PyRandom(Mersenne);

impl PyRandom {
    /// `random.seed(seed)`.
    pub fn new(seed: u32) -> PyRandom {
        PyRandom(Mersenne::from_key(&[seed]))
    }

    /// `random.getrandbits(32)`: a raw output.
    pub fn next_u32(&mut self) -> u32 {
        self.0.next()
    }

    /// `random.randrange(bound)`: high bits, rejected while too large.
    ///
    /// # Panics
    /// If the bound is 0 or has more than 32 bits.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u32::try_from(bound).expect("a bound has at most 32 bits");
        loop {
            let value = self.0.next() >> bound.leading_zeros();
            if value < bound {
                return value as usize;
            }
        }
    }

    /// `random.sample(range(count), size)`: distinct places in a population, in the order drawn.
    ///
    /// Python has two methods and chooses by how large a set of `size` members would be; they draw
    /// differently.
    ///
    /// # Panics
    /// If more is asked for than there is.
    pub fn sample(&mut self, count: usize, size: usize) -> Vec<usize> {
        assert!(size <= count, "cannot sample {size} of {count}");
        let mut set_size = 21;
        if size > 5 {
            let mut power = 1;
            while power < 3 * size {
                power *= 4;
            }
            set_size += power;
        }
        if count <= set_size {
            let mut pool: Vec<usize> = (0..count).collect();
            return (0..size).map(|_| pool.swap_remove(self.below(pool.len()))).collect();
        }
        let mut drawn = vec![false; count];
        let mut fresh = || loop {
            let place = self.below(count);
            if !std::mem::replace(&mut drawn[place], true) {
                return place;
            }
        };
        (0..size).map(|_| fresh()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_outputs_are_those_of_numpy_and_of_python() {
        let mut numpy = RandomState::new(0);
        assert_eq!(
            [(); 4].map(|()| numpy.next_u32()),
            [2357136044, 2546248239, 3071714933, 3626093760]
        );
        let mut python = PyRandom::new(2020);
        assert_eq!(
            [(); 4].map(|()| python.next_u32()),
            [2661459254, 2660693840, 749574286, 2879324636]
        );
    }

    #[test]
    fn randint_is_that_of_numpy() {
        let mut state = RandomState::new(0);
        assert_eq!([(); 8].map(|()| state.below(1000)), [684, 559, 629, 192, 835, 763, 707, 359]);
        let mut state = RandomState::new(2);
        assert_eq!(
            [(); 8].map(|()| state.below(9227)),
            [7336, 2575, 6637, 2514, 1099, 4770, 433, 6751]
        );
        assert_eq!(RandomState::new(2).choice(9227, 2, true), [7336, 2575]);
    }

    #[test]
    fn choice_without_replacement_is_that_of_numpy() {
        assert_eq!(RandomState::new(0).choice(10, 5, false), [2, 8, 4, 9, 1]);
        assert_eq!(RandomState::new(2).choice(1000, 6, false), [37, 726, 846, 295, 924, 658]);
        assert!(RandomState::new(2).choice(0, 0, false).is_empty());
    }

    #[test]
    fn a_bound_of_one_draws_nothing() {
        let mut state = RandomState::new(0);
        assert_eq!(state.below(1), 0);
        assert_eq!(state.next_u32(), 2357136044);
    }

    #[test]
    fn sample_is_that_of_python_in_both_of_its_methods() {
        assert_eq!(PyRandom::new(2020).sample(100, 10), [79, 22, 85, 98, 59, 56, 60, 47, 53, 69]);
        assert_eq!(PyRandom::new(2020).sample(5000, 5), [1429, 3776, 3624, 3884, 3019]);
        assert!(PyRandom::new(2020).sample(0, 0).is_empty());
    }
}
