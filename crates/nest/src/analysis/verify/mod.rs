//! The verifier: what must hold before a nest may run.
//!
//! Structure
//! * every axis is bound once, and used only where it is in scope;
//! * `at` has one `i64` for each dim, of the target and of every load;
//! * inputs and tables are only read; buffers exist; ranks are at most [`MAX_RANK`];
//! * a [`Wrap`] that reads zero stands only as an index.
//!
//! Types
//! * operands have the types that [`Unary`](crate::Unary) and [`Binary`] are defined for: arithmetic on arithmetic
//!   types only, strings only compared for equality;
//! * a stage's value has the target's type.
//!
//! Safety
//! * every index is proven to lie within its dim, or is a [`Wrap`] with that extent.
//!
//! Everything wrong is reported, not just the first.

#[cfg(test)]
mod tests;
mod types;

use crate::analysis::Ranges;
use crate::ir::{
    Axis, AxisId, Binary, Buffer, BufferId, Kind, MAX_RANK, Mode, Nest, Role, Scalar, Seen, Stage,
    Wrap,
};
use rustc_hash::FxHashSet;
use std::fmt::Display;
use types::{defined, is_typed};
use vinelift_tensor::ElementType;

/// Something that does not hold: always a bug of whoever built the nest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stage {stage}: {message}")]
pub struct VerifyError {
    /// Index of the stage.
    pub stage: usize,
    /// The message.
    pub message: String,
}

/// Checks everything that the module lists.
pub fn verify(nest: &Nest) -> Result<(), Vec<VerifyError>> {
    let mut bound = FxHashSet::default();
    let mut errors = Vec::new();
    for (number, stage) in nest.stages.iter().enumerate() {
        let turns = |s: &Stage| s.domain.first().map(|axis| axis.extent);
        let mut found = verify_stage(nest, number, stage, &mut bound);
        let end = nest.group_end(number);
        if stage.group.is_some()
            && nest.stages[number..end]
                .iter()
                .any(|s| s.domain.is_empty() || turns(s) != turns(stage))
        {
            found.push(VerifyError {
                stage: number,
                message: "stages that take turns differ in how many".to_owned(),
            });
        }
        errors.extend(found);
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

/// Whether `stage`, on its own in `nest`, is one that [`verify`] finds nothing wrong with.
pub(crate) fn is_proven(nest: &Nest, stage: &Stage) -> bool {
    verify_stage(nest, 0, stage, &mut FxHashSet::default()).is_empty()
}

fn verify_stage(
    nest: &Nest,
    number: usize,
    stage: &Stage,
    bound: &mut FxHashSet<AxisId>,
) -> Vec<VerifyError> {
    let mut errors = Vec::new();
    let check = Check {
        nest,
        number,
        bound,
        errors: &mut errors,
        seen: Seen::default(),
        unproven: FxHashSet::default(),
        guarded: vec![FxHashSet::default()],
        budget: GUARDED,
    };
    check.stage(stage);
    errors
}

/// Accesses looked at under guards, in one stage. Nested guards over shared expressions could take
/// exponential time; no nest that an operator makes comes near.
const GUARDED: usize = 1 << 20;

struct Check<'a> {
    nest: &'a Nest,
    number: usize,
    bound: &'a mut FxHashSet<AxisId>,
    errors: &'a mut Vec<VerifyError>,
    /// Shared nodes whose structure and types are checked.
    seen: Seen,
    /// The nodes among those checked in which some access is not proven without any guard, by address: mostly none.
    unproven: FxHashSet<usize>,
    /// Nodes looked at under guards, by address: a set for each guard that tells something, the innermost
    /// last.
    guarded: Vec<FxHashSet<usize>>,
    /// How many more accesses may be looked at under guards.
    budget: usize,
}

impl<'a> Check<'a> {
    fn stage(mut self, stage: &Stage) {
        let Some(target) = self.buffer(stage.target) else {
            return;
        };
        if matches!(target.role, Role::Input | Role::Table(_)) {
            self.error(format!("writes `{}`, which is read only", target.name));
        }
        if stage.value.ty() != target.ty {
            self.error(format!(
                "a value of {} for `{}` of {}",
                stage.value.ty(),
                target.name,
                target.ty
            ));
        }
        if let Mode::Combine(op) = stage.mode
            && (op.is_comparison() || op == Binary::Term || !defined(op, target.ty))
        {
            self.error(format!("{op:?} does not combine {}", target.ty));
        }
        let mut ranges = Ranges::new().with_symbols(self.nest);
        self.bind(&stage.domain, &mut ranges);
        let empty = stage.domain.iter().any(|a| a.extent == 0);
        self.indices(target, &stage.at);
        let roots: Vec<&Scalar> = parts(&stage.at).chain([&stage.value]).collect();
        for root in &roots {
            if root.as_term().is_some() {
                self.error("a term outside a sum");
            }
            self.structure(root, &mut ranges);
        }
        if empty || !self.errors.is_empty() {
            return;
        }
        self.access(&mut ranges, target, &stage.at);
        for root in &roots {
            self.guarded(&mut ranges, root);
        }
    }

    /// Checks the structure and types of `x` and everything in it, which depend on no guards; notes the nodes that
    /// are not proven without guards. Returns whether `x` is.
    fn structure(&mut self, x: &Scalar, ranges: &mut Ranges) -> bool {
        if x.is_shared() && !self.seen.insert(x.address()) {
            return !self.unproven.contains(&x.address());
        }
        self.types(x);
        self.terms(x);
        match x.kind() {
            Kind::Axis(id) if !self.bound.contains(id) => {
                self.error("an axis is used outside its scope")
            }
            Kind::Reduce { axes, .. } => self.bind(axes, ranges),
            Kind::Load { buffer, at } => {
                if let Some(b) = self.buffer(*buffer) {
                    if b.ty != x.ty() {
                        self.error(format!(
                            "a load of {} from `{}` of {}",
                            x.ty(),
                            b.name,
                            b.ty
                        ));
                    }
                    self.indices(b, at);
                }
            }
            Kind::Wrap(w) => {
                self.wrap(w);
                if w.policy.zero {
                    self.error("a wrap that reads zero is used as a value");
                }
            }
            _ => {}
        }
        let mut is_proven = true;
        match x.kind() {
            Kind::Load { buffer, at } => {
                for part in parts(at) {
                    is_proven &= self.structure(part, ranges);
                }
                let buffer = self.nest.buffers.get(buffer.0 as usize);
                is_proven &= buffer.is_some_and(|b| outside(b, at, ranges).is_none());
            }
            _ => {
                for child in x.children() {
                    is_proven &= self.structure(child, ranges);
                }
            }
        }
        if !is_proven {
            self.unproven.insert(x.address());
        }
        is_proven
    }

    /// The accesses in `x` that need the guards around them.
    fn guarded(&mut self, ranges: &mut Ranges, x: &Scalar) {
        // A node that was proven under fewer facts need not be looked at again.
        let known = self.guarded.iter().any(|set| set.contains(&x.address()));
        if known || !self.unproven.contains(&x.address()) || self.budget == 0 {
            return;
        }
        if let Some(set) = self.guarded.last_mut() {
            set.insert(x.address());
        }
        self.budget -= 1;
        if self.budget == 0 {
            self.error("too many guards inside each other");
            return;
        }
        match x.kind() {
            Kind::Load { buffer, at } => {
                if let Some(b) = self.buffer(*buffer) {
                    self.access(ranges, b, at);
                    parts(at).for_each(|part| self.guarded(ranges, part));
                }
            }
            Kind::Select(c, yes, no) => {
                self.guarded(ranges, c);
                for (holds, side) in [(true, yes), (false, no)] {
                    ranges.assuming(c, holds, |ranges, learnt| {
                        if learnt {
                            self.guarded.push(FxHashSet::default());
                        }
                        self.guarded(ranges, side);
                        if learnt {
                            self.guarded.pop();
                        }
                    });
                }
            }
            Kind::Reduce {
                axes, init, body, ..
            } => {
                self.guarded(ranges, init);
                if axes.iter().all(|a| a.extent > 0) {
                    self.guarded(ranges, body);
                }
            }
            _ => x.children().for_each(|child| self.guarded(ranges, child)),
        }
    }

    /// Number and types of the indices of an access.
    fn indices(&mut self, buffer: &Buffer, at: &[Scalar]) {
        if at.len() != buffer.shape.len() {
            self.error(format!(
                "{} indices for `{}` of rank {}",
                at.len(),
                buffer.name,
                buffer.shape.len()
            ));
        }
        for (d, index) in at.iter().enumerate() {
            if index.ty() != ElementType::I64 {
                self.error(format!(
                    "index {d} of `{}` is of {}, not i64",
                    buffer.name,
                    index.ty()
                ));
            }
            if let Kind::Wrap(w) = index.kind() {
                self.wrap(w);
            }
        }
    }

    fn access(&mut self, ranges: &mut Ranges, buffer: &Buffer, at: &[Scalar]) {
        if let Some(d) = outside(buffer, at, ranges) {
            let (range, extent) = (ranges.of(&at[d]), buffer.shape[d]);
            self.error(format!(
                "index {d} of `{}`, {}, is in {}..={}, not proven in 0..{extent}",
                buffer.name,
                self.nest.display(&at[d]),
                range.low,
                range.high
            ));
        }
    }

    fn wrap(&mut self, w: &Wrap) {
        if !w.index.ty().is_integer() {
            self.error(format!("an index of {}", w.index.ty()));
        }
        if w.site.0 as usize >= self.nest.sites.len() {
            self.error(format!("site {} does not exist", w.site.0));
        }
        if w.position.len() > MAX_RANK {
            self.error(format!(
                "a position of {} coordinates, more than {MAX_RANK}",
                w.position.len()
            ));
        }
    }

    fn types(&mut self, x: &Scalar) {
        if !is_typed(x) {
            self.error(format!(
                "{} is not defined on its operands' types",
                self.nest.display(x)
            ));
        }
    }

    /// A term stands in the sum that adds it, and nowhere else.
    fn terms(&mut self, x: &Scalar) {
        let sum = match x.kind() {
            Kind::Reduce {
                op: Binary::Add,
                body,
                ..
            } => Some(body.address()),
            Kind::Binary(Binary::Add, sum, term) if sum.as_term().is_none() => Some(term.address()),
            _ => None,
        };
        let mut children = x.children();
        if children.any(|c| c.as_term().is_some() && Some(c.address()) != sum) {
            self.error("a term outside a sum");
        }
    }

    fn bind(&mut self, axes: &[Axis], ranges: &mut Ranges) {
        ranges.bind(axes);
        for axis in axes {
            if !self.bound.insert(axis.id) {
                self.error(format!("axis {} is bound twice", axis.id.0));
            }
        }
    }

    fn buffer(&mut self, id: BufferId) -> Option<&'a Buffer> {
        let Some(buffer) = self.nest.buffers.get(id.0 as usize) else {
            self.error(format!("buffer {} does not exist", id.0));
            return None;
        };
        if buffer.shape.len() > MAX_RANK || buffer.byte_len().is_none() {
            self.error(format!(
                "`{}` of shape {:?} is too large",
                buffer.name, buffer.shape
            ));
            return None;
        }
        Some(buffer)
    }

    fn error(&mut self, message: impl Display) {
        self.errors.push(VerifyError {
            stage: self.number,
            message: message.to_string(),
        });
    }
}

/// The first index of an access that is not proven to lie within its dim.
fn outside(buffer: &Buffer, at: &[Scalar], ranges: &mut Ranges) -> Option<usize> {
    (0..at.len()).find(|&d| {
        buffer
            .shape
            .get(d)
            .is_some_and(|n| !ranges.is_index(&at[d], *n))
    })
}

/// The scalars that are evaluated for an access: its indices, and in place of a wrap, which may stand there
/// whatever its policy is, what it checks and its position.
fn parts(at: &[Scalar]) -> impl Iterator<Item = &Scalar> {
    at.iter().flat_map(|index| match index.kind() {
        Kind::Wrap(w) => std::iter::once(&w.index).chain(&w.position),
        _ => std::iter::once(index).chain(&[]),
    })
}
