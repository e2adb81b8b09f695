//! Packing windows, transformed.

use super::WinogradConvolution;
use crate::memory::elements;
use crate::packed::Packed;
use crate::winograd_tile::{POSITIONS, Windows, windows};

/// The most numbers of a line of words: two for each column of a panel.
const MOST_HALVES: usize = 32;

impl WinogradConvolution {
    /// Packs the windows, which are the same in many runs. The originals are not needed afterwards. `None` if there is no memory
    /// for them.
    ///
    /// # Panics
    /// if there are fewer elements than [`elements`](WinogradConvolution::elements) says.
    pub fn pack(&self, bytes: &[u8]) -> Option<Packed> {
        let Windows {
            channels, results, ..
        } = self.convolution.windows;
        elements(bytes, self.convolution.windows.needed, 1);
        let (words, width) = (self.position_words(), self.engine.width());
        let count = (self.panels() * POSITIONS).checked_mul(words)?;
        let mut packed = Packed::transformed(count.checked_mul(size_of::<i32>())?)?;
        let (halves, _) = packed
            .as_mut_slice()
            .as_chunks_mut::<{ size_of::<i16>() }>();
        for (panel, halves) in halves.chunks_exact_mut(POSITIONS * 2 * words).enumerate() {
            let columns = panel * width..results.min((panel + 1) * width);
            for channel in (0..channels).step_by(2) {
                let mut elements = [[0; MOST_HALVES]; 9];
                for (lane, result) in columns.clone().enumerate() {
                    for half in 0..2 {
                        let window = self.window(bytes, channel + half, result);
                        for (to, element) in elements.iter_mut().zip(window) {
                            to[2 * lane + half] = element;
                        }
                    }
                }
                let line = channel * width..(channel + 2) * width;
                let positions = halves.chunks_exact_mut(2 * words).zip(windows(&elements));
                for (to, from) in positions {
                    for (to, half) in to[line.clone()].iter_mut().zip(from) {
                        *to = half.to_ne_bytes();
                    }
                }
            }
        }
        Some(packed)
    }

    /// The elements of a window, row by row.
    fn window(&self, bytes: &[u8], channel: usize, result: usize) -> [i16; 9] {
        let Windows {
            steps: [channel_step, result_step, row_step, column_step],
            is_signed,
            ..
        } = self.convolution.windows;
        let first = channel * channel_step + result * result_step;
        let mut elements = [0; 9];
        for (at, element) in elements.iter_mut().enumerate() {
            let byte = bytes[first + at / 3 * row_step + at % 3 * column_step];
            *element = match is_signed {
                true => i16::from(byte.cast_signed()),
                false => i16::from(byte),
            };
        }
        elements
    }
}
