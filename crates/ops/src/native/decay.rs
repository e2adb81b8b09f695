//! Suppression that lowers the scores of boxes which overlap better ones, instead of dropping them.

use super::real::Real;
use crate::{OpError, Stop};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use vinelift_tensor::memory::{filled, push, room_for};

/// Suppression that lowers scores.
pub(super) struct Decay<R> {
    pub(super) sigma: R,
    /// The intersection over union from which on a box is left out, if any.
    pub(super) cut: Option<R>,
    /// The score that is too low.
    pub(super) threshold: R,
}

impl<R: Real> Decay<R> {
    /// Positions and scores of those selected, from those of `candidates`.
    pub(super) fn select(
        &self,
        candidates: Vec<(usize, R)>,
        most: usize,
        stop: Stop<'_>,
        iou: impl Fn(usize, usize) -> R,
    ) -> Result<Vec<(usize, R)>, OpError> {
        // A score is only brought up to date when it is the highest. Each entry also has the number of
        // selected boxes that its score knows of.
        let entry = |i: usize, score: R, known: usize| (Reverse((score.rank(), i)), known);
        let count = candidates.iter().map(|c| c.0 + 1).max().unwrap_or(0);
        let mut scores = filled(count, R::of(0.0))?;
        let mut entries = room_for(candidates.len())?;
        for (i, score) in candidates {
            scores[i] = score;
            entries.push(entry(i, score, 0));
        }
        // It never holds more entries than now.
        let mut heap = BinaryHeap::from(entries);
        let mut selected: Vec<(usize, R)> = Vec::new();
        while selected.len() < most
            && let Some((Reverse((_, i)), known)) = heap.pop()
        {
            stop.go_on()?;
            if known == selected.len() {
                push(&mut selected, (i, scores[i]))?;
                continue;
            }
            let before = scores[i];
            let mut new = selected[known..].iter().rev();
            let after = new.try_fold(before, |score, (j, _)| {
                Some(score * self.factor(iou(i, *j))?)
            });
            let Some(after) = after else { continue };
            scores[i] = after;
            if after == before {
                push(&mut selected, (i, before))?;
            } else if after > self.threshold {
                heap.push(entry(i, after, selected.len()));
            }
        }
        Ok(selected)
    }

    /// The factor of a score; `None` if the box is left out.
    fn factor(&self, iou: R) -> Option<R> {
        if self.cut.is_some_and(|cut| iou >= cut) {
            return None;
        }
        Some((R::of(-0.5) / self.sigma * iou * iou).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, from the formula.
    #[test]
    fn order_changes_as_scores_fall() {
        let iou = |i: usize, j: usize| if i + j == 1 { 0.5f32 } else { 0.0 };
        let candidates = vec![(0, 0.9), (1, 0.8), (2, 0.7)];
        let decay = Decay {
            sigma: 0.5,
            cut: None,
            threshold: 0.0,
        };
        let lower = 0.8 * (-0.25f32).exp();
        let found = decay
            .select(candidates.clone(), 9, Stop::NEVER, iou)
            .unwrap();
        assert_eq!(found, [(0, 0.9), (2, 0.7), (1, lower)]);
        assert_eq!(
            decay
                .select(candidates.clone(), 2, Stop::NEVER, iou)
                .unwrap(),
            found[..2]
        );
        let least = Decay {
            threshold: lower,
            ..decay
        };
        assert_eq!(
            least
                .select(candidates.clone(), 9, Stop::NEVER, iou)
                .unwrap(),
            found[..2]
        );
        let cut = Decay {
            cut: Some(0.5),
            sigma: 0.5,
            threshold: 0.0,
        };
        assert_eq!(
            cut.select(candidates, 9, Stop::NEVER, iou).unwrap(),
            found[..2]
        );
    }
}
