//! How the factors of a sum of products are taken: as they are, or from where they are stored first.

use crate::analysis::{Numbered, byte, is_coded, narrow_step, strided_load};
use crate::ir::{Axis, BufferId, Nest, Scalar, Stage, free_axes, loaded_by};
use crate::passes::operand::Operand;

/// A factor that is stored in 16 bits is taken as it is, if each of its elements is used fewer times than this: used more often,
/// it is cheaper to widen all of them once.
const MOST_NARROW_USES: usize = 16;

/// The properties on which it depends how the factors of a sum of products are taken.
pub(super) struct Factors<'a> {
    pub(super) stage: &'a Stage,
    /// The axes of the result, without the turn.
    pub(super) outer: &'a [Axis],
    /// The axes of the sum.
    pub(super) axes: &'a [Axis],
    pub(super) turn: Option<&'a Axis>,
    /// The number of products of the whole sum.
    pub(super) products: usize,
    pub(super) is_constant: &'a dyn Fn(BufferId) -> bool,
}

impl Factors<'_> {
    /// The factor `x`, whose partner is `other`, as the sum takes it: as it is, or as a load of what a stage in `stored` stores.
    /// `None` if neither is worth it.
    pub(super) fn taken(
        &self,
        nest: &mut Nest,
        side: &str,
        x: &Scalar,
        other: &Scalar,
        stored: &mut Vec<Stage>,
    ) -> Option<Scalar> {
        let whole = x;
        let x = byte(x).unwrap_or(x);
        if strided_load(Numbered::example(nest), x).is_some() {
            return Some(whole.clone());
        }
        let operand = Operand::forward(x, other, self.outer, self.axes);
        // Each element should be used a few times; what is constant is stored before the first run.
        let constant = loaded_by([x]).into_iter().all(self.is_constant);
        if constant && is_coded(nest, x, other, self.outer, self.axes) {
            return Some(x.clone());
        }
        let uses_less = |times| operand.elements().saturating_mul(times) > self.products;
        let is_much = uses_less(2);
        let innermost = self.outer.iter().rfind(|a| a.extent > 1);
        let step = innermost.and_then(|axis| narrow_step(nest, x, axis.id));
        // Loops have vectors of what is contiguous, too.
        let pays = step.is_some_and(|step| step > 1 || step == 1 && !is_much);
        if !constant && pays && uses_less(MOST_NARROW_USES) && self.turn.is_none() {
            return Some(x.clone());
        }
        let turn = self.turn.map(|turn| turn.id);
        let in_turns = turn.is_some_and(|turn| !constant || free_axes(x).contains(&turn));
        if in_turns || (!constant && is_much) {
            return None;
        }
        let name = format!("{}.{side}", nest.buf(self.stage.target).name);
        let (store, load) = operand.store(nest, &name, self.stage, x)?;
        stored.push(store);
        Some(load.cast(whole.ty()))
    }
}
