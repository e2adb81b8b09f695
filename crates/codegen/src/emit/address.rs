//! Where an element lies: the indices of all dims as one sum.

use super::{Binding, Emitter};
use cranelift_codegen::ir::{InstBuilder, Value};
use vinelift_nest::{Binary, BufferId, Kind, Scalar, row_major};

/// `constant + Σ leaf · coefficient`, a flat element offset. Index arithmetic wraps, so it may be
/// taken apart and put together again freely.
pub(crate) struct Linear<'n> {
    terms: Vec<(&'n Scalar, i64)>,
    constant: i64,
    /// The panel that it is counted from, if that is not where the buffer begins.
    panel: Option<usize>,
}

/// Steps taken to take one index apart; what is left then is computed as it stands.
const MOST_STEPS: usize = 256;

impl<'n> Linear<'n> {
    /// What must be computed first, in order of evaluation.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = &'n Scalar> + use<'_, 'n> {
        self.terms.iter().map(|(leaf, _)| *leaf)
    }

    /// The leaves with their coefficients.
    pub(crate) fn terms(&self) -> impl Iterator<Item = (&'n Scalar, i64)> + use<'_, 'n> {
        self.terms.iter().copied()
    }

    pub(crate) fn constant(&self) -> i64 {
        self.constant
    }

    /// The panel that it is counted from.
    pub(crate) fn panel(&self) -> Option<usize> {
        self.panel
    }

    /// The sum without its constant.
    pub(crate) fn at_zero(mut self) -> Linear<'n> {
        self.constant = 0;
        self
    }

    /// The sum without the leaves that are `other`.
    pub(crate) fn without(mut self, other: impl Fn(&Scalar) -> bool) -> Linear<'n> {
        self.terms.retain(|(leaf, _)| !other(leaf));
        self
    }

    fn add(&mut self, leaf: &'n Scalar, coefficient: i64) {
        let same = |known: &Scalar| match (known.kind(), leaf.kind()) {
            (Kind::Axis(a), Kind::Axis(b)) => a == b,
            _ => known.address() == leaf.address(),
        };
        match self.terms.iter_mut().find(|(known, _)| same(known)) {
            Some((_, known)) => *known = known.wrapping_add(coefficient),
            None => self.terms.push((leaf, coefficient)),
        }
    }
}

/// The address of an element.
pub(crate) enum Place {
    /// Of its own bytes: `address + offset`.
    Bytes { address: Value, offset: i32 },
    /// Of one that shares bytes with others: its number, counted from `base`.
    Packed { base: Value, element: Value },
}

impl<'n> Emitter<'n, '_> {
    /// The flat offset of `buffer[at]`, or that in the panel that it is packed in.
    pub(crate) fn linear(&self, buffer: BufferId, at: &'n [Scalar]) -> Linear<'n> {
        let panel = self.panels.iter().position(|panel| panel.holds(at));
        if let Some(number) = panel {
            return Linear {
                terms: self.panels[number].terms.to_vec(),
                constant: 0,
                panel,
            };
        }
        let mut linear = Linear {
            terms: Vec::new(),
            constant: 0,
            panel: None,
        };
        for (index, stride) in at.iter().zip(row_major(&self.nest.buf(buffer).shape)) {
            let mut open = vec![(index, stride as i64)];
            let mut steps = 0;
            while let Some((x, factor)) = open.pop() {
                steps += 1;
                match x.kind() {
                    Kind::Const(bits) => {
                        let value = (bits.0 as i64).wrapping_mul(factor);
                        linear.constant = linear.constant.wrapping_add(value);
                    }
                    Kind::Binary(Binary::Add, a, b) if steps < MOST_STEPS => {
                        open.extend([(b, factor), (a, factor)]);
                    }
                    Kind::Binary(Binary::Sub, a, b) if steps < MOST_STEPS => {
                        open.extend([(b, factor.wrapping_neg()), (a, factor)]);
                    }
                    Kind::Binary(Binary::Mul, a, b) => match (a.as_index(), b.as_index()) {
                        (_, Some(k)) => open.push((a, factor.wrapping_mul(k))),
                        (Some(k), _) => open.push((b, factor.wrapping_mul(k))),
                        _ => linear.add(x, factor),
                    },
                    _ => linear.add(x, factor),
                }
            }
        }
        linear
    }

    /// The address of an element whose leaves have been computed.
    ///
    /// What depends on outer loops alone is added first, so that it can be moved out of the inner.
    pub(crate) fn place(&mut self, buffer: BufferId, linear: &Linear<'n>) -> Place {
        let base = match linear.panel {
            Some(number) => self.panels[number].base,
            None => self.bases[buffer.0 as usize],
        };
        let ty = self.nest.buf(buffer).ty;
        let mut constant = linear.constant;
        let mut terms: Vec<(usize, Value, i64)> = Vec::with_capacity(linear.terms.len());
        for &(leaf, coefficient) in linear.terms.iter().filter(|(_, k)| *k != 0) {
            let value = match leaf.kind() {
                // Neighbours along an axis differ by a constant.
                Kind::Axis(id) if self.axes.contains_key(id) => {
                    let Binding { value, plus, .. } = self.axes[id];
                    constant = constant.wrapping_add(plus.wrapping_mul(coefficient));
                    value
                }
                _ => self.get(leaf),
            };
            terms.push((self.depth(leaf), value, coefficient));
        }
        terms.sort_by_key(|(depth, ..)| *depth);
        if ty.is_packed() {
            let mut element = self.index(constant);
            for (_, value, coefficient) in terms {
                let scaled = self.builder.ins().imul_imm_s(value, coefficient);
                element = self.builder.ins().iadd(element, scaled);
            }
            return Place::Packed { base, element };
        }
        let size = (ty.bits() / 8) as i64;
        let mut address = base;
        for (_, value, coefficient) in terms {
            let scaled = self
                .builder
                .ins()
                .imul_imm_s(value, coefficient.wrapping_mul(size));
            address = self.builder.ins().iadd(address, scaled);
        }
        let constant = constant.wrapping_mul(size);
        // What lies behind it, up to a few registers, must have an offset too.
        match i32::try_from(constant)
            .ok()
            .filter(|offset| *offset < i32::MAX - 256)
        {
            Some(offset) => Place::Bytes { address, offset },
            None => {
                let address = self.builder.ins().iadd_imm_s(address, constant);
                Place::Bytes { address, offset: 0 }
            }
        }
    }

    /// The number of loops that must be open for `x` to be known.
    fn depth(&self, x: &Scalar) -> usize {
        let depth = |id| self.axes.get(id).map_or(0, |binding| binding.depth);
        self.facts.free(x).iter().map(depth).max().unwrap_or(0)
    }
}
