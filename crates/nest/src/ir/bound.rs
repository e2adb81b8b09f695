//! Extents with symbols, and numbers in place of them.

use crate::ir::{
    Axis, AxisId, Kind, Nest, Scalar, Wrap, rebound, rewrite_stage, visit_folds, visit_stage,
};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use vinelift_tensor::{Extent, symbols};

impl Nest {
    /// Takes in the symbols of the recorder that this runs in, and what is known of them by now.
    pub fn adopt_symbols(&mut self) {
        (self.symbols, self.relations) = symbols::known();
    }

    /// The extents that have symbols, each once.
    pub fn symbolic_extents(&self) -> Vec<Extent> {
        let mut found: Vec<Extent> = Vec::new();
        if !self.is_symbolic() {
            return found;
        }
        let mut note = |extent: Extent| {
            if extent.is_symbolic() && !found.contains(&extent) {
                found.push(extent);
            }
        };
        self.buffers
            .iter()
            .flat_map(|b| &b.shape)
            .for_each(|n| note(*n));
        for stage in &self.stages {
            stage.domain.iter().for_each(|axis| note(axis.extent));
            visit_stage(stage, &mut |x| match x.kind() {
                Kind::Extent(extent) => note(*extent),
                Kind::Wrap(w) => note(w.extent),
                Kind::Reduce { axes, .. } => axes.iter().for_each(|axis| note(axis.extent)),
                _ => {}
            });
        }
        found
    }

    /// The nest where the symbol of number `k` is `values[k]`; `None` if an extent that has symbols then is one that it
    /// may not be ([`Extent::may_be`]).
    pub fn bound_to(&self, values: &[usize]) -> Option<Nest> {
        let fits = Cell::new(true);
        let bound = |extent: Extent| match extent.number() {
            Some(_) => extent,
            None => {
                let number = extent.at(values).filter(|n| Extent::may_be(*n));
                fits.set(fits.get() && number.is_some());
                number.map_or(extent, Extent::from)
            }
        };
        let mut nest = self.clone();
        nest.symbols.clear();
        nest.relations.clear();
        for extent in nest.buffers.iter_mut().flat_map(|b| &mut b.shape) {
            *extent = bound(*extent);
        }
        for stage in &mut nest.stages {
            for axis in &mut stage.domain {
                axis.extent = bound(axis.extent);
            }
            let mut axes: FxHashMap<AxisId, Axis> = FxHashMap::default();
            visit_folds(stage, &mut |x| {
                if let Kind::Reduce { axes: folded, .. } = x.kind() {
                    axes.extend(folded.iter().map(|axis| {
                        let extent = bound(axis.extent);
                        (axis.id, Axis { extent, ..*axis })
                    }));
                }
            });
            rewrite_stage(stage, &mut |x| match x.kind() {
                Kind::Extent(extent) => Scalar::extent(bound(*extent)),
                Kind::Wrap(w) if w.extent.is_symbolic() => Scalar::wrap(Wrap {
                    extent: bound(w.extent),
                    ..Wrap::clone(w)
                }),
                _ => rebound(x, &axes),
            });
        }
        fits.get().then_some(nest)
    }
}
