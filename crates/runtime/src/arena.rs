//! Where temporaries lie: offsets into one block of memory, shared by those that do not live at the
//! same time.

/// A buffer with the steps between which it holds something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifetime {
    pub(crate) bytes: usize,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

/// Every buffer starts at a multiple of this: a cache line.
const ALIGNMENT: usize = 64;

/// An offset for each buffer, and the size of the whole; `None` if that overflows.
///
/// Greedy by size: the largest first, each at the lowest offset where it meets none that lives at the
/// same time.
pub(crate) fn place(lifetimes: &[Lifetime]) -> Option<(Vec<usize>, usize)> {
    let mut by_size: Vec<usize> = (0..lifetimes.len()).collect();
    by_size.sort_by_key(|i| (std::cmp::Reverse(lifetimes[*i].bytes), *i));
    let mut offsets = vec![0; lifetimes.len()];
    let mut placed: Vec<usize> = Vec::new();
    let mut total = 0;
    for i in by_size {
        let buffer = lifetimes[i];
        let mut at = 0usize;
        // `placed` is ordered by offset, so the first gap that is large enough is the lowest.
        for &other in &placed {
            let o = lifetimes[other];
            if o.first > buffer.last || buffer.first > o.last {
                continue;
            }
            if offsets[other] >= at.checked_add(buffer.bytes)? {
                break;
            }
            at = at.max(
                offsets[other]
                    .checked_add(o.bytes)?
                    .checked_next_multiple_of(ALIGNMENT)?,
            );
        }
        offsets[i] = at;
        total = total.max(at.checked_add(buffer.bytes)?);
        let position = placed.partition_point(|p| offsets[*p] <= at);
        placed.insert(position, i);
    }
    Some((offsets, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lives_apart_shares() {
        let lifetime = |bytes, first, last| Lifetime { bytes, first, last };
        let buffers = [
            lifetime(100, 0, 1),
            lifetime(50, 1, 2),
            lifetime(100, 2, 3),
            lifetime(10, 0, 3),
        ];
        let (offsets, total) = place(&buffers).unwrap();
        assert_eq!(offsets, [0, 128, 0, 192]);
        assert_eq!(total, 202);
        assert_eq!(
            place(&[lifetime(usize::MAX, 0, 1), lifetime(64, 0, 1)]),
            None
        );
    }
}
