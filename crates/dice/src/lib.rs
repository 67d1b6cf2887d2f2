//! Seeded random numbers for tests: the same seed gives the same numbers on every machine.
//!
//! Invariant: development only; no secret and no id is ever made of these numbers.
//! Start at [`Dice::new`].

/// A generator (SplitMix64).
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// The generator of one seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Any number of 128 bits.
    pub fn wide(&mut self) -> u128 {
        (u128::from(self.roll()) << 64) | u128::from(self.roll())
    }

    /// A number from 0 to `n - 1`; 0 if `n` is less than 1.
    pub fn below<N: TryInto<u64> + TryFrom<u64> + Default>(&mut self, n: N) -> N {
        let n = n.try_into().unwrap_or(1).max(1);
        N::try_from(self.roll() % n).unwrap_or_default()
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// True in so many of a hundred times.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of the items, of which there must be one.
    #[expect(clippy::indexing_slicing, reason = "an empty list is a mistake in the test")]
    pub fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    /// Shuffles the items.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_itself_and_nothing_is_lost() {
        let roll = |seed| {
            let mut items: Vec<u32> = (0..100).collect();
            Dice::new(seed).shuffle(&mut items);
            items
        };
        assert_eq!(roll(7), roll(7));
        assert_ne!(roll(7), roll(8));
        let mut sorted = roll(7);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<u32>>());
    }

    #[test]
    fn numbers_are_below_their_bound_in_every_type() {
        let mut dice = Dice::new(1);
        for _ in 0..1_000 {
            assert!(dice.below(3_usize) < 3 && (0..5).contains(&dice.below(5_i64)));
        }
        assert_eq!((dice.below(0_u64), dice.below(-1_i64)), (0, 0));
    }
}
