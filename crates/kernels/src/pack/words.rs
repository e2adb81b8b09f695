//! Packs operands of bytes as words of consecutive `k`: of two bytes, each widened to 16 bits, or of four bytes. A step of the
//! micro-kernel multiplies one word of each operand.

use super::runs::{Runs, run, runs_of};
use super::{Block, MOST_POINTS};
use std::mem::MaybeUninit;

/// How an instruction set packs words where their bytes lie well.
pub(crate) struct WordLayouts {
    /// Lines whose words are consecutive bytes from each point on, as the channels of a pixel may be: the first word at the
    /// address given, and as many lines as the last argument says, to where the block begins.
    pub(crate) across: unsafe fn(&Block<i32>, *const u8, usize),
    /// Panels whose points are consecutive bytes, as the pixels of a plane are, or every second.
    pub(crate) along: Option<Along>,
}

/// How an instruction set packs vectors of words whose points lie in one or two runs.
pub(crate) struct Along {
    /// The lanes of a vector.
    pub(crate) lanes: usize,
    /// Packs a panel, given all its vectors.
    pub(crate) pack: unsafe fn(&Block<i32>, &[Runs]),
}

/// Packs words of `GROUP` bytes. `points` are those of the block and others that may be read.
///
/// # Safety
/// as [`pack`](super::pack); the machine has the instructions, those of `layouts` too.
#[inline(always)]
pub(crate) unsafe fn words<const GROUP: usize>(
    block: &Block<i32>,
    points: &[u32],
    layouts: &WordLayouts,
) {
    if let Some(along) = &layouts.along
        && block.points.len() == block.width
        && block.width > 1
    {
        let mut runs = [const { MaybeUninit::<Runs>::uninit() }; MOST_POINTS];
        if let Some(runs) = runs_of(points, block.width, along.lanes, &mut runs) {
            // SAFETY: the caller's.
            return unsafe { (along.pack)(block, runs) };
        }
    }
    let mut ends = [const { MaybeUninit::<u16>::uninit() }; MOST_POINTS];
    let ends = run_ends(block.points, &mut ends);
    let mut line = 0;
    while line < block.k {
        let offsets = &block.offsets[line * GROUP..];
        let to = block.to.wrapping_add(line * block.width);
        // SAFETY: by the caller's contract: every point of every `k` may be read, and all lines written.
        unsafe {
            match <&[u32; GROUP]>::try_from(&offsets[..offsets.len().min(GROUP)]) {
                Ok(offsets) if !ends.is_empty() => along::<GROUP>(block, ends, offsets, to),
                _ => {
                    let lines = run(offsets, 1) / GROUP;
                    if lines > 0 {
                        let from = block.from.wrapping_add(offsets[0] as usize);
                        (layouts.across)(&Block { to, ..*block }, from, lines);
                        line += lines;
                        continue;
                    }
                    scattered::<GROUP>(block, &offsets[..offsets.len().min(GROUP)], to);
                }
            }
            clear(block, to, 1);
        }
        line += 1;
    }
}

/// Writes zeros in the lanes of lines that have no point.
///
/// # Safety
/// The lines may be written.
#[inline(always)]
pub(crate) unsafe fn clear(block: &Block<i32>, to: *mut i32, lines: usize) {
    for line in 0..lines {
        for lane in block.points.len()..block.width {
            // SAFETY: the caller's.
            unsafe { to.add(line * block.width + lane).write_unaligned(0) }
        }
    }
}

/// Packs a line of words whose points lie in runs that end before the lanes `ends`.
///
/// # Safety
/// as [`words`], of the line at `to`.
#[inline(always)]
unsafe fn along<const GROUP: usize>(
    block: &Block<i32>,
    ends: &[u16],
    offsets: &[u32; GROUP],
    to: *mut i32,
) {
    let mut lane = 0;
    for &end in ends {
        let point = block.points[lane] as usize;
        let mut from = [block.from; GROUP];
        for at in 0..GROUP {
            from[at] = block.from.wrapping_add(offsets[at] as usize + point);
        }
        let lanes = end as usize - lane;
        // SAFETY: the caller's. Apart for the compiler to make vectors of each.
        unsafe {
            let to = to.add(lane);
            match block.signed {
                true => pack_line::<GROUP, true>(to, &from, lanes),
                false => pack_line::<GROUP, false>(to, &from, lanes),
            }
        }
        lane = end as usize;
    }
}

/// Packs a line of words whose bytes are at `offsets`, at most `GROUP`.
///
/// # Safety
/// as [`words`], of the line at `to`.
#[inline(always)]
unsafe fn scattered<const GROUP: usize>(block: &Block<i32>, offsets: &[u32], to: *mut i32) {
    for (lane, &point) in block.points.iter().enumerate() {
        let from = block.from.wrapping_add(point as usize);
        let mut word = 0;
        for (at, &offset) in offsets.iter().enumerate() {
            // SAFETY: the caller's.
            let byte = unsafe { from.add(offset as usize).read() };
            word |= part::<GROUP>(byte, block.signed) << (at * 32 / GROUP);
        }
        // SAFETY: the caller's.
        unsafe { to.add(lane).write_unaligned(word as i32) }
    }
}

/// [`WordLayouts::across`] for any machine: word by word.
///
/// # Safety
/// as [`WordLayouts::across`].
#[inline(always)]
pub(crate) unsafe fn across<const GROUP: usize>(block: &Block<i32>, from: *const u8, lines: usize) {
    // SAFETY: the caller's.
    unsafe {
        match block.signed {
            true => across_of::<GROUP, true>(block, from, lines),
            false => across_of::<GROUP, false>(block, from, lines),
        }
        clear(block, block.to, lines);
    }
}

/// [`across`], without the lanes that have no point.
///
/// # Safety
/// as [`WordLayouts::across`].
#[inline(always)]
pub(crate) unsafe fn across_of<const GROUP: usize, const SIGNED: bool>(
    block: &Block<i32>,
    from: *const u8,
    lines: usize,
) {
    for line in 0..lines {
        for (lane, &point) in block.points.iter().enumerate() {
            // SAFETY: the caller's.
            unsafe {
                let from = from.add(point as usize + line * GROUP);
                let bytes = from.cast::<[u8; GROUP]>().read();
                let to = block.to.add(line * block.width + lane);
                to.write_unaligned(word::<GROUP, SIGNED>(bytes));
            }
        }
    }
}

/// The lanes before which a run of consecutive points ends; none if there are many runs.
#[inline(always)]
fn run_ends<'a>(points: &[u32], ends: &'a mut [MaybeUninit<u16>; MOST_POINTS]) -> &'a [u16] {
    let mut runs = 0;
    if points.is_sorted_by(|a, b| a + 1 == *b) {
        ends[0].write(points.len() as u16);
        runs = 1;
    } else {
        for lane in 1..=points.len() {
            if points.get(lane) != Some(&(points[lane - 1] + 1)) {
                ends[runs].write(lane as u16);
                runs += 1;
            }
        }
    }
    let runs = match runs == 1 || 3 * runs <= points.len() {
        true => runs,
        false => 0,
    };
    // SAFETY: the first `runs` were written.
    unsafe { std::slice::from_raw_parts(ends.as_ptr().cast::<u16>(), runs) }
}

/// Packs words of consecutive bytes of each of several lines.
///
/// # Safety
/// `lanes` bytes may be read of each, and as many words written.
#[inline(always)]
unsafe fn pack_line<const GROUP: usize, const SIGNED: bool>(
    to: *mut i32,
    from: &[*const u8; GROUP],
    lanes: usize,
) {
    for lane in 0..lanes {
        // SAFETY: the caller's.
        unsafe {
            let mut bytes = [0; GROUP];
            for at in 0..GROUP {
                bytes[at] = from[at].add(lane).read();
            }
            to.add(lane).write_unaligned(word::<GROUP, SIGNED>(bytes));
        }
    }
}

/// A word of four bytes, or of two numbers of 16 bits.
#[inline(always)]
fn word<const GROUP: usize, const SIGNED: bool>(bytes: [u8; GROUP]) -> i32 {
    let mut word = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        word |= part::<GROUP>(byte, SIGNED) << (at * 32 / GROUP);
    }
    word as i32
}

/// A byte as one of the `GROUP` parts of a word.
#[inline(always)]
fn part<const GROUP: usize>(byte: u8, signed: bool) -> u32 {
    let wide = match signed {
        true => byte as i8 as i32 as u32,
        false => u32::from(byte),
    };
    wide & (u32::MAX >> (32 - 32 / GROUP as u32))
}

/// Bytes to be widened to numbers of 16 bits, two of which are a word.
pub(crate) struct WidenBytes {
    pub(crate) from: *const u8,
    pub(crate) to: *mut i32,
    pub(crate) count: usize,
    pub(crate) signed: bool,
}

/// Widens bytes; where their count is odd, the rest of the last word is not written.
///
/// # Safety
/// `count` bytes may be read, and half as many words written, rounded up.
#[inline(always)]
pub(crate) unsafe fn widen_bytes(bytes: &WidenBytes) {
    let to = bytes.to.cast::<i16>();
    // SAFETY: the caller's.
    unsafe {
        match bytes.signed {
            true => {
                for at in 0..bytes.count {
                    let byte = bytes.from.add(at).cast::<i8>().read();
                    to.add(at).write_unaligned(i16::from(byte));
                }
            }
            false => {
                for at in 0..bytes.count {
                    let byte = bytes.from.add(at).read();
                    to.add(at).write_unaligned(i16::from(byte));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hold_bytes_or_halves() {
        assert_eq!(word::<4, true>([1, 2, 3, 0xff]), 0xff03_0201_u32 as i32);
        assert_eq!(word::<2, true>([0xff, 3]), 0x0003_ffff);
        assert_eq!(word::<2, false>([0xff, 3]), 0x0003_00ff);
    }
}
