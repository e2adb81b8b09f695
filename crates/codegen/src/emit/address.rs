//! Where an element lies: the indices of all dims as one sum.

use super::emitter::Emitter;
use super::state::Binding;
use crate::analysis::coefficient::Coefficient;
use crate::analysis::linear::Linear;
use cranelift_codegen::ir::{InstBuilder, Value};
use vinelift_nest::{BufferId, Kind, Scalar};

/// The address of an element.
pub(crate) enum ElementAddress {
    /// An element with bytes of its own: at `address + offset`.
    Bytes { address: Value, offset: i32 },
    /// An element that shares bytes with others: its number, counted from `base`.
    Packed { base: Value, element: Value },
}

impl<'n> Emitter<'n, '_> {
    /// The address of an element whose leaves have been computed.
    ///
    /// Terms that depend on outer loops alone are added first, so that their sum can be moved out of the inner.
    pub(crate) fn place(&mut self, buffer: BufferId, linear: &Linear<'n>) -> ElementAddress {
        let base = match linear.panel() {
            Some(number) => self.panel_bases[number],
            None => self.bases[buffer.0 as usize],
        };
        let ty = self.analysis.nest.buf(buffer).ty;
        let (terms, constant) = self.addends(linear);
        if ty.is_packed() {
            let first = self.index(constant);
            let element = self.sum(first, linear.symbolic(), terms, 1);
            return ElementAddress::Packed { base, element };
        }
        let size = (ty.bits() / 8) as i64;
        let address = self.sum(base, linear.symbolic(), terms, size);
        let constant = constant.wrapping_mul(size);
        // Elements behind it, up to a few registers, must have an offset too.
        match i32::try_from(constant)
            .ok()
            .filter(|offset| *offset < i32::MAX - 256)
        {
            Some(offset) => ElementAddress::Bytes { address, offset },
            None => {
                let address = self.builder.ins().iadd_imm_s(address, constant);
                ElementAddress::Bytes { address, offset: 0 }
            }
        }
    }

    /// The terms of an offset whose leaves have been computed, outer loops first, and the number to add to them.
    fn addends(&mut self, linear: &Linear<'n>) -> (Vec<(Value, Coefficient)>, i64) {
        let mut constant = linear.constant();
        let mut terms: Vec<(usize, Value, Coefficient)> = Vec::new();
        for (leaf, coefficient) in linear.terms().filter(|(_, k)| *k != 0.into()) {
            let value = match leaf.kind() {
                Kind::Axis(id) if self.axes.contains_key(id) => {
                    let Binding { value, plus, .. } = self.axes[id];
                    match coefficient.number() {
                        // Neighbours along an axis differ by a constant.
                        Some(number) => {
                            constant = constant.wrapping_add(plus.wrapping_mul(number));
                            value
                        }
                        None if plus == 0 => value,
                        None => self.builder.ins().iadd_imm_s(value, plus),
                    }
                }
                _ => self.get(leaf),
            };
            terms.push((self.depth(leaf), value, coefficient));
        }
        terms.sort_by_key(|(depth, ..)| *depth);
        let terms = terms.into_iter().map(|(_, value, k)| (value, k));
        (terms.collect(), constant)
    }

    /// `first + Σ constants · size + Σ terms · size`
    fn sum(
        &mut self,
        first: Value,
        constants: &[Coefficient],
        terms: Vec<(Value, Coefficient)>,
        size: i64,
    ) -> Value {
        let mut sum = first;
        for constant in constants {
            let constant = self.coefficient(*constant, size);
            sum = self.builder.ins().iadd(sum, constant);
        }
        for (value, coefficient) in terms {
            let scaled = self.scaled(value, coefficient, size);
            sum = self.builder.ins().iadd(sum, scaled);
        }
        sum
    }

    /// The number of loops that must be open for `x` to be known.
    fn depth(&self, x: &Scalar) -> usize {
        let depth = |id| self.axes.get(id).map_or(0, |binding| binding.depth);
        self.analysis
            .facts
            .free(x)
            .iter()
            .map(depth)
            .max()
            .unwrap_or(0)
    }
}
