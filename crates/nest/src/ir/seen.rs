//! The set of scalars that a walk has visited.

use rustc_hash::FxHashSet;

/// A set of addresses. Most walks meet few scalars that are shared: these are looked through one by one, without memory of
/// their own.
#[derive(Default)]
pub struct Seen {
    few: [usize; FEW],
    count: usize,
    many: FxHashSet<usize>,
}

/// To look through more of them takes longer than to hash one.
const FEW: usize = 16;

impl Seen {
    /// Adds an address; `false` if it was there before.
    pub fn insert(&mut self, address: usize) -> bool {
        if self.few[..self.count].contains(&address) {
            return false;
        }
        match self.few.get_mut(self.count) {
            Some(place) => {
                *place = address;
                self.count += 1;
                true
            }
            None => self.many.insert(address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_is_new_once() {
        let mut seen = Seen::default();
        for round in 0..2 {
            for address in 0..3 * FEW {
                assert_eq!(seen.insert(address), round == 0, "{address}");
            }
        }
    }
}
