//! Padding: steps of `k` that tiles leave out, as the rows of all of them have elements there that are known to be zero.
//!
//! A window that reaches beyond a picture multiplies the zeros around it. Near the border of a small picture, or if the window is
//! dilated, those are many: of 3×3 windows over 7×7 pixels 18 % of the products, of windows over 33×33 whose taps are 18 apart 59 %.
//! A sum starts at positive zero. If the other factor is finite, such a product is a zero of either sign, which changes no sum
//! that it is added to.

use crate::axes::Axes;
use crate::groups::Side;
use std::ops::Range;

/// A border of zeros of the left operand: its element of offset `o` is zero unless the digit
///
/// > `first + o / stride % extent`
///
/// is in `inside`. No offset of the operand carries over to the digit, nor from it to the next: where they might, the
/// border is as good as not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Padding {
    /// How far apart elements are whose digits differ by one.
    pub stride: usize,
    /// How many digits there are.
    pub extent: usize,
    /// The digit of the first element, and what is left over below it.
    pub first: (usize, usize),
    /// The digits of elements that may be other than zero.
    pub inside: Range<usize>,
}

/// For each panel of rows the steps that its tiles take.
#[derive(Debug)]
pub(crate) struct LiveSteps {
    /// For each panel the number of its list, from 1 on; 0 if it takes all steps.
    of_panel: Box<[u8]>,
    lists: Vec<Box<[u32]>>,
    /// How many products with an element of a column are left out, and of how many.
    left_out: usize,
    all: usize,
}

/// Where blocks of `k` begin and end in each list of [`LiveSteps`].
pub(crate) type LiveBlocks = Vec<Box<[u32]>>;

impl LiveSteps {
    /// The most lists: panels in the middle of a picture take all steps, and those at its edges are of a few kinds.
    const MOST_LISTS: usize = u8::MAX as usize;

    /// The most pairs of a row and a tap that are looked at. In larger pictures there is little to leave out.
    const MOST_PAIRS: usize = 1 << 20;

    /// The tiles of a panel read a list, which takes time, only if it leaves out at least one of this many steps.
    const LEAST_OF_PANEL: usize = 8;

    /// A contraction has lists only if they leave out at least one of this many products.
    const LEAST_OF_ALL: usize = 64;

    /// The steps of these panels of the rows of `side`, if there is enough to leave out.
    pub(crate) fn of(
        side: &Side,
        batch: &Axes<5>,
        panels: impl Iterator<Item = Range<usize>>,
        padding: &[Padding],
    ) -> Option<LiveSteps> {
        let borders: Vec<Border> = padding
            .iter()
            .filter_map(|padding| Border::of(side, batch, padding))
            .collect();
        if borders.is_empty() {
            return None;
        }
        let (tap_of_step, taps) = taps(side, &borders);
        if taps.len() * side.points.len() > LiveSteps::MOST_PAIRS {
            return None;
        }
        let all = side.points.len() * tap_of_step.len();
        let mut lists = Lists::of(tap_of_step);
        let mut left_out = 0;
        let of_panel = panels.map(|rows| {
            let height = rows.len();
            let is_live = |tap: &Vec<usize>| {
                let of_tap = borders.iter().zip(tap);
                let mut rows = rows.clone();
                rows.any(|row| of_tap.clone().all(|(b, digit)| b.is_inside(row, *digit)))
            };
            let (number, dead) = lists.number(taps.iter().map(is_live).collect());
            left_out += height * dead;
            number
        });
        let of_panel = of_panel.collect();
        (all > 0 && left_out * LiveSteps::LEAST_OF_ALL >= all).then_some(LiveSteps {
            of_panel,
            lists: lists.lists,
            left_out,
            all,
        })
    }

    /// Where blocks of `k_block` of `k` steps begin and end in each list.
    pub(crate) fn blocks(&self, k_block: usize, k: usize) -> LiveBlocks {
        let ends = |list: &[u32]| {
            let ends = (0..=k.div_ceil(k_block)).map(|block| {
                let end = block * k_block;
                list.partition_point(|step| (*step as usize) < end) as u32
            });
            ends.collect()
        };
        self.lists.iter().map(|list| ends(list)).collect()
    }

    /// The steps of a block of `k` that tiles of a panel of rows take; `None` if they take all.
    pub(crate) fn steps(&self, panel: usize, block: usize, blocks: &LiveBlocks) -> Option<&[u32]> {
        let number = self.of_panel[panel];
        let list = list(&self.lists, number)?;
        let ends = &blocks[usize::from(number) - 1];
        Some(&list[ends[block] as usize..ends[block + 1] as usize])
    }

    /// Whether at least one of `parts` products is left out.
    pub(crate) fn leave_out(&self, parts: usize) -> bool {
        self.left_out * parts >= self.all
    }
}

/// The list of a number, if it is one of a list.
fn list(lists: &[Box<[u32]>], number: u8) -> Option<&[u32]> {
    let at = usize::from(number).checked_sub(1)?;
    Some(&lists[at])
}

/// The lists of steps that were asked for, each once.
struct Lists {
    tap_of_step: Vec<usize>,
    /// Which taps are live, and the number of the list of their steps.
    known: Vec<(Vec<bool>, u8)>,
    lists: Vec<Box<[u32]>>,
}

impl Lists {
    fn of(tap_of_step: Vec<usize>) -> Lists {
        Lists {
            tap_of_step,
            known: Vec::new(),
            lists: Vec::new(),
        }
    }

    /// The number of the list of the steps of live taps, and how many others there are; 0 if it would be hardly shorter than all
    /// steps.
    fn number(&mut self, live: Vec<bool>) -> (u8, usize) {
        let all = self.tap_of_step.len();
        let number = match self.known.iter().find(|(known, _)| *known == live) {
            Some((_, number)) => *number,
            None => {
                let steps = (0..).zip(&self.tap_of_step);
                let steps = steps.filter(|(_, tap)| live[**tap]).map(|(step, _)| step);
                let steps: Box<[u32]> = steps.collect();
                let pays = (all - steps.len()) * LiveSteps::LEAST_OF_PANEL >= all;
                if pays && self.lists.len() < LiveSteps::MOST_LISTS {
                    self.lists.push(steps);
                    self.known.push((live, self.lists.len() as u8));
                } else {
                    self.known.push((live, 0));
                }
                self.known.last().map_or(0, |(_, number)| *number)
            }
        };
        let dead = list(&self.lists, number).map_or(0, |list| all - list.len());
        (number, dead)
    }
}

/// A border, with the digits of all rows and steps.
struct Border<'a> {
    padding: &'a Padding,
    of_row: Vec<usize>,
    of_step: Vec<usize>,
}

impl<'a> Border<'a> {
    /// `None` if there may be a carry, or if the batch moves along the digit.
    fn of(side: &Side, batch: &Axes<5>, padding: &'a Padding) -> Option<Border<'a>> {
        let Padding {
            stride,
            extent,
            first: (digit, below),
            ..
        } = *padding;
        if stride == 0 || extent == 0 {
            return None;
        }
        let mut below = below;
        for axis in batch.axes() {
            let (step, last) = (axis.strides[0], axis.extent - 1);
            match last.checked_mul(step)? {
                reach if reach < stride => below += reach,
                _ if step.is_multiple_of(stride.checked_mul(extent)?) => {}
                _ => return None,
            }
        }
        let digits = |offsets: &[u32]| -> Vec<usize> {
            offsets
                .iter()
                .map(|o| *o as usize / stride % extent)
                .collect()
        };
        let most_below = |offsets: &[u32]| offsets.iter().map(|o| *o as usize % stride).max();
        let border = Border {
            padding,
            of_row: digits(&side.points),
            of_step: digits(&side.offsets),
        };
        let most = |digits: &[usize]| digits.iter().max().copied();
        let digit = digit + most(&border.of_row)? + most(&border.of_step)?;
        let below = below + most_below(&side.points)? + most_below(&side.offsets)?;
        (below < stride && digit < extent).then_some(border)
    }

    /// Whether the element of a row may be other than zero at steps of a digit.
    fn is_inside(&self, row: usize, of_step: usize) -> bool {
        let digit = self.padding.first.0 + self.of_row[row] + of_step;
        self.padding.inside.contains(&digit)
    }
}

/// The taps of a window: for each step the number of its tap, and the digits of each tap.
fn taps(side: &Side, borders: &[Border<'_>]) -> (Vec<usize>, Vec<Vec<usize>>) {
    let digits = |step: usize| borders.iter().map(|b| b.of_step[step]).collect();
    let of_step: Vec<Vec<usize>> = (0..side.offsets.len()).map(digits).collect();
    let mut taps = of_step.clone();
    taps.sort_unstable();
    taps.dedup();
    let number = |digits: &Vec<usize>| taps.partition_point(|tap| tap < digits);
    (of_step.iter().map(number).collect(), taps)
}
