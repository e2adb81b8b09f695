//! Values on a grid whose codes are stored for products, read as these codes by all others, too.
//!
//! > `x > high ? top : (x <= low ? bottom : round(..)..)`, computed by each reader from four bytes of `x`, becomes
//! > `(code - zero) · scale + nan`, from one byte and what tells where `x` is NaN.
//!
//! So the value before it was rounded is often read by the codes alone, and need not be stored.

use super::Pass;
use crate::ir::{BufferId, Nest, Scalar, Stage};
use rustc_hash::{FxHashMap, FxHashSet};

impl Pass<'_> {
    /// Moves the stages of codes before those of the values that they stand for, and makes those read the codes where it is known
    /// when they are NaN. Grids whose scales are negative stay as they are: a zero of theirs is a negative one.
    pub(super) fn read_stored(&self, nest: &mut Nest) {
        let mut stored: FxHashMap<BufferId, Vec<BufferId>> = FxHashMap::default();
        for ((values, _), codes) in &self.codes {
            // Stages that take turns must follow each other.
            let made_by = self.definitions.get(values);
            let is_alone = made_by.is_some_and(|stage| stage.group.is_none());
            if is_alone && self.grids.contains_key(values) {
                stored.entry(*values).or_default().push(*codes);
            }
        }
        stored.values_mut().for_each(|codes| codes.sort());
        let codes: FxHashSet<BufferId> = stored.values().flatten().copied().collect();
        let stages = std::mem::take(&mut nest.stages).into_iter();
        let (moved, others): (Vec<Stage>, Vec<Stage>) =
            stages.partition(|stage| codes.contains(&stage.target));
        let moved = moved.into_iter().map(|stage| (stage.target, stage));
        let mut moved: FxHashMap<BufferId, Stage> = moved.collect();
        for mut stage in others {
            if let Some(codes) = stored.get(&stage.target) {
                nest.stages
                    .extend(codes.iter().filter_map(|codes| moved.remove(codes)));
                stage.value = self.decoded(nest, &stage, codes[0]).unwrap_or(stage.value);
            }
            nest.stages.push(stage);
        }
    }

    /// The value of `stage`, which is on a grid, from its codes.
    fn decoded(&self, nest: &Nest, stage: &Stage, codes: BufferId) -> Option<Scalar> {
        let known = self.known.get(&stage.target)?;
        let grid = self.grids.get(&stage.target)?.grid();
        let at = stage.domain.iter().map(|axis| Scalar::axis(axis.id));
        let code = nest.load(codes, at.collect());
        (grid.scale > 0.0).then(|| grid.value(code, known.nan()))
    }
}
