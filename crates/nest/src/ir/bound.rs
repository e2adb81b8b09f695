//! Numbers in place of symbols.

use crate::ir::{Axis, AxisId, Kind, Nest, Scalar, Wrap, rebound, rewrite_stage, visit_folds};
use rustc_hash::FxHashMap;
use vinelift_tensor::Extent;

impl Nest {
    /// The nest where the symbol of number `k` is `values[k]`; `None` if an extent then is outside of
    /// [`Extent::LEAST`]`..=`[`Extent::MOST`].
    pub fn bound_to(&self, values: &[usize]) -> Option<Nest> {
        let at = |extent: &Extent| -> Option<Extent> {
            if extent.number().is_some() {
                return Some(*extent);
            }
            let number = extent.at(values)?;
            let is_fine = (Extent::LEAST..=Extent::MOST).contains(&number);
            is_fine.then(|| number.into())
        };
        let mut nest = self.clone();
        nest.symbols.clear();
        let mut fits = true;
        for buffer in &mut nest.buffers {
            for extent in &mut buffer.shape {
                *extent = at(extent)?;
            }
        }
        for stage in &mut nest.stages {
            let mut axes: FxHashMap<AxisId, Axis> = FxHashMap::default();
            for axis in &mut stage.domain {
                axis.extent = at(&axis.extent)?;
            }
            visit_folds(stage, &mut |x| {
                if let Kind::Reduce { axes: folded, .. } = x.kind() {
                    for axis in folded {
                        match at(&axis.extent) {
                            Some(extent) => drop(axes.insert(axis.id, Axis { extent, ..*axis })),
                            None => fits = false,
                        }
                    }
                }
            });
            rewrite_stage(stage, &mut |x| match x.kind() {
                Kind::Extent(extent) => match at(extent) {
                    Some(extent) => Scalar::extent(extent),
                    None => {
                        fits = false;
                        x
                    }
                },
                Kind::Wrap(w) if w.extent.is_symbolic() => match at(&w.extent) {
                    Some(extent) => Scalar::wrap(Wrap {
                        extent,
                        ..w.clone()
                    }),
                    None => {
                        fits = false;
                        x
                    }
                },
                _ => rebound(x, &axes),
            });
        }
        fits.then_some(nest)
    }
}
