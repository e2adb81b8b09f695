//! The `k` best of a line of keys.

use crate::TensorError;
use crate::memory::{filled, make_room};

/// How many keys are compared with the limit before it is asked whether there is a hit.
const CHUNK: usize = 32;
/// How many entries there is room for beside those that are kept: they are put in order whenever it is full.
const SLACK: usize = 64;
/// The most entries that are put in order by counting the better ones of each: what that costs grows with their
/// square, but no jump depends on their values.
const FEW: usize = 16;
/// A bound is looked for in lines that have at least so many keys for each of the groups.
const LEAST_OF_GROUP: usize = 4;

/// A key with a position, ordered by the key first.
fn entry(key: i32, position: u32) -> u64 {
    u64::from((key ^ i32::MIN).cast_unsigned()) << 32 | u64::from(position)
}

/// The bits of a position.
const POSITION: u64 = u32::MAX as u64;

fn key_of(entry: u64) -> i32 {
    ((entry >> 32) as u32).cast_signed() ^ i32::MIN
}

/// Finds the `k` smallest keys of a line that comes in blocks; of equal ones those that come first.
///
/// A key above the limit is not among them. Most keys are, once a few have been looked at, and what is done for them
/// is a comparison.
#[derive(Debug)]
pub(super) struct Best {
    k: usize,
    /// Those that may be among the best come first.
    entries: Vec<u64>,
    len: usize,
    /// `None` once nothing can be better than what there is.
    limit: Option<i32>,
    minima: Vec<i32>,
}

impl Best {
    /// `k` is at least 1. There is room for `pushed` keys of a line that are added one by one.
    pub(super) fn new(k: usize, pushed: usize) -> Result<Best, TensorError> {
        let room = k
            .saturating_mul(2)
            .saturating_add(SLACK + CHUNK)
            .max(pushed);
        Ok(Best {
            k,
            entries: filled(room, 0)?,
            len: 0,
            limit: Some(i32::MAX),
            minima: Vec::new(),
        })
    }

    /// Starts a new line with its first keys, which bound the best: the minima of `k` groups are `k` different keys,
    /// so none above the `k`-th of all minima is needed. Groups are interleaved: that is fast, and the best keys are
    /// of different groups also where they lie together.
    pub(super) fn start(&mut self, keys: &[i32]) -> Result<(), TensorError> {
        self.clear();
        let groups = self.k.saturating_mul(2).next_multiple_of(CHUNK);
        if groups.saturating_mul(LEAST_OF_GROUP) <= keys.len() {
            self.minima.clear();
            make_room(&mut self.minima, groups)?;
            self.minima.extend_from_slice(&keys[..groups]);
            for row in keys.chunks_exact(groups).skip(1) {
                for (least, key) in self.minima.iter_mut().zip(row) {
                    *least = if key < least { *key } else { *least };
                }
            }
            let entries = &mut self.entries[..groups];
            for (to, key) in entries.iter_mut().zip(&self.minima) {
                *to = entry(*key, 0);
            }
            self.limit = Some(key_of(*entries.select_nth_unstable(self.k - 1).1));
        }
        self.add(keys, 0);
        Ok(())
    }

    /// Adds the keys from position `start` on.
    pub(super) fn add(&mut self, keys: &[i32], start: u32) {
        let (chunks, rest) = keys.as_chunks::<CHUNK>();
        let mut position = start;
        for chunk in chunks {
            let Some(limit) = self.limit else { return };
            let any = chunk
                .iter()
                .fold(0, |any, key| any | i32::from(*key <= limit));
            if any != 0 {
                self.add_hits(chunk, position, limit);
            }
            position += CHUNK as u32;
        }
        if let Some(limit) = self.limit {
            self.add_hits(rest, position, limit);
        }
    }

    /// Adds those of at most [`CHUNK`] keys that are not above the limit.
    fn add_hits(&mut self, keys: &[i32], start: u32, limit: i32) {
        let room = &mut self.entries[self.len..self.len + CHUNK];
        let mut hits = 0;
        for (key, position) in keys.iter().zip(start..) {
            // One that is no hit is overwritten by the next, without a jump.
            room[hits % CHUNK] = entry(*key, position);
            hits += usize::from(*key <= limit);
        }
        self.len += hits;
        if self.len + CHUNK > self.entries.len() {
            self.entries[..self.len].select_nth_unstable(self.k - 1);
            self.len = self.k;
            // What comes later loses against an equal key.
            self.limit = key_of(self.entries[self.k - 1]).checked_sub(1);
        }
    }

    /// Starts a new line with no keys.
    pub(super) fn clear(&mut self) {
        self.len = 0;
        self.limit = Some(i32::MAX);
    }

    /// Adds a key, whatever the limit is.
    pub(super) fn push(&mut self, key: i32, position: u32) {
        self.entries[self.len] = entry(key, position);
        self.len += 1;
    }

    /// The positions of the `k` best of a line that has as many: the best first, or the lowest first if `by_position`.
    pub(super) fn positions(&mut self, by_position: bool) -> impl Iterator<Item = usize> {
        put_in_order(&mut self.entries[..self.len], self.k);
        let best = &mut self.entries[..self.k];
        best.iter_mut().for_each(|entry| *entry &= POSITION);
        if by_position {
            put_in_order(best, self.k);
        }
        best.iter().map(|entry| *entry as usize)
    }
}

/// Puts the `k` smallest entries first, in order. No two are equal.
fn put_in_order(entries: &mut [u64], k: usize) {
    if entries.len() <= FEW {
        let mut ordered = [0; FEW];
        for entry in entries.iter() {
            let better = entries.iter().filter(|other| *other < entry).count();
            ordered[better % FEW] = *entry;
        }
        entries.copy_from_slice(&ordered[..entries.len()]);
        return;
    }
    if k < entries.len() {
        entries.select_nth_unstable(k - 1);
    }
    entries[..k].sort_unstable();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against all keys sorted, for lines that are random, with many equal keys, in order, and in the opposite order;
    /// on both sides of every length that changes the way.
    #[test]
    fn as_if_all_were_sorted() {
        for k in [1usize, 2, 5, 16, 17, 40, 200] {
            let groups = (2 * k).next_multiple_of(CHUNK);
            let bound = groups * LEAST_OF_GROUP;
            let room = 2 * k + SLACK;
            for count in [
                k,
                k + 1,
                FEW,
                FEW + 1,
                bound - 1,
                bound,
                room,
                room + 1,
                5000,
            ] {
                if count < k {
                    continue;
                }
                let mut state = 1u32;
                let mut random = || {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    state.cast_signed()
                };
                let mixed: Vec<i32> = (0..count).map(|_| random()).collect();
                let equal: Vec<i32> = mixed.iter().map(|key| key >> 30).collect();
                let mut up = mixed.clone();
                up.sort_unstable();
                let down: Vec<i32> = up.iter().rev().copied().collect();
                let ends = [vec![i32::MIN; count], vec![i32::MAX; count]];
                for keys in [mixed, equal, up, down].into_iter().chain(ends) {
                    check(&keys, k);
                }
            }
        }
    }

    fn check(keys: &[i32], k: usize) {
        let entries = keys.iter().zip(0..).map(|(key, p)| entry(*key, p));
        let mut sorted: Vec<u64> = entries.collect();
        sorted.sort_unstable();
        let mut want: Vec<usize> = sorted[..k]
            .iter()
            .map(|e| (e & POSITION) as usize)
            .collect();
        let mut best = Best::new(k, keys.len()).unwrap();
        for block in [keys.len(), 1000, 33] {
            let (first, rest) = keys.split_at(block.min(keys.len()));
            best.start(first).unwrap();
            for (n, keys) in rest.chunks(block).enumerate() {
                best.add(keys, ((n + 1) * block) as u32);
            }
            let found: Vec<usize> = best.positions(false).collect();
            assert_eq!(found, want, "{k} of {}", keys.len());
        }
        best.clear();
        for (key, position) in keys.iter().zip(0..) {
            best.push(*key, position);
        }
        assert!(best.positions(false).eq(want.iter().copied()));
        best.start(keys).unwrap();
        want.sort_unstable();
        assert!(best.positions(true).eq(want));
    }
}
