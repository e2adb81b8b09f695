//! The symbols of a nest, and the extents that have them.

use crate::ir::{Kind, Nest, visit_stage};
use vinelift_tensor::{Extent, symbols};

impl Nest {
    /// Takes in the symbols of the recorder that this runs in, and what is known of them by now.
    pub fn adopt_symbols(&mut self) {
        (self.symbols, self.relations) = symbols::known();
    }

    /// The extents that have symbols, each once.
    pub fn symbolic_extents(&self) -> Vec<Extent> {
        let mut found: Vec<Extent> = Vec::new();
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
}
