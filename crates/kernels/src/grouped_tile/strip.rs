//! Where the panels of a strip are: see [`GroupedCodes`](super::GroupedCodes).

use super::{LINE_BYTES, STRIP, Steps};

/// How far ahead of a line codes are prefetched, in bytes: as far as memory is slow.
pub(crate) const AHEAD: usize = 4 << 10;

/// Some panels of a strip, one after another.
#[derive(Clone, Copy)]
pub(crate) struct Strip {
    /// Where the strip begins.
    start: *const u8,
    /// How many panels it has.
    panels: usize,
    /// The number of the first of these panels in it.
    first: usize,
}

impl Strip {
    /// Panels of packed codes, the first of which has number `panel` among all.
    pub(crate) fn of(steps: &Steps, packed: *const u8, panel: usize) -> Strip {
        let before = panel / STRIP * STRIP;
        Strip {
            start: packed.wrapping_add(before * steps.panel_bytes),
            panels: STRIP.min(steps.panels - before),
            first: panel - before,
        }
    }

    /// The panels from number `more` of these on.
    pub(crate) fn skip(&self, more: usize) -> Strip {
        Strip {
            first: self.first + more,
            ..*self
        }
    }

    /// Where a group of the first panel has its zero points and scales. Those of the next panel are
    /// [`points_bytes`](Steps::points_bytes) further.
    #[inline(always)]
    pub(crate) fn points(&self, steps: &Steps, group: usize) -> *const u8 {
        let own = self.first * steps.points_bytes;
        self.group(steps, group).wrapping_add(own)
    }

    /// Where a group of the first panel has its first line. That of the next panel follows it, and the next line of the same
    /// panel is [`line_step`](Strip::line_step) further.
    #[inline(always)]
    pub(crate) fn lines(&self, steps: &Steps, group: usize) -> *const u8 {
        let points = self.panels * steps.points_bytes;
        let own = self.first * LINE_BYTES;
        self.group(steps, group).wrapping_add(points + own)
    }

    /// Where a tile prefetches from on while it takes the lines of a group, which begin at `lines`, of its panels from number `part`
    /// on alone: all such parts of a tile prefetch the next group without gaps, one after the other.
    #[inline(always)]
    pub(crate) fn next_group(&self, steps: &Steps, lines: *const u8, part: usize) -> *const u8 {
        lines.wrapping_add(steps.lines * (self.line_step() + part * LINE_BYTES))
    }

    /// How far it is, in bytes, from a line of a panel to the next one.
    #[inline(always)]
    pub(crate) fn line_step(&self) -> usize {
        self.panels * LINE_BYTES
    }

    /// Where a group of the strip begins.
    #[inline(always)]
    fn group(&self, steps: &Steps, group: usize) -> *const u8 {
        self.start
            .wrapping_add(group * self.panels * steps.group_bytes)
    }
}
