//! Plans that are made before the first run.

use super::Unit;
use crate::Error;
use crate::context::Context;
use crate::growth_cache::capacity_for;
use crate::stop::never;
use rustc_hash::FxHashMap;
use vinelift_graph::Known;
use vinelift_tensor::Shape;

impl Unit {
    /// Makes the plans for inputs of these shapes, as far as shapes do not depend on what a run finds.
    pub(crate) fn prepare(&self, shapes: &[Shape], context: &Context) -> Result<(), Error> {
        let mut known = Known::default();
        loop {
            let plan = self.plan(shapes, &known, context, never())?;
            let types = plan.calls.iter().flat_map(|c| &c.outputs);
            let all_static = types.clone().all(|(_, ty)| ty.shape.is_static());
            if plan.calls.is_empty() || !plan.wanted.is_empty() || !all_static {
                return Ok(());
            }
            known.computed.extend(plan.computed());
            known.values.extend(plan.shape_values.iter().cloned());
            known.computed.extend(types.cloned());
            known.forget(&plan.forgotten);
        }
    }

    /// Makes the plan of a run with inputs of the shapes `next`, after a first one with those of `first`, if its variables
    /// then grow.
    ///
    /// # Errors
    /// If there is no plan for either.
    pub(crate) fn prepare_next(
        &self,
        first: &[Shape],
        next: &[Shape],
        context: &Context,
    ) -> Result<(), Error> {
        let plan = self.plan(first, &Known::default(), context, never())?;
        let computed: FxHashMap<_, _> = plan.computed().collect();
        let mut known = Known::default();
        for (read, variable) in &self.interface.reads {
            let mut assigns = self.interface.assigns.iter();
            let source = assigns.find(|(_, assigned)| assigned == variable);
            let ty = source.and_then(|(source, _)| computed.get(source));
            known.computed.extend(ty.map(|ty| (*read, ty.clone())));
        }
        for (tensor, _, extent) in self.growing(next, &known, context, never())? {
            known.room.insert(tensor, capacity_for(extent).into());
        }
        if !known.room.is_empty() {
            self.plan_with_room(next, &known, context, never(), &mut Vec::new())?;
        }
        Ok(())
    }
}
