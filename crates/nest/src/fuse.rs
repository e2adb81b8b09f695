//! Fusion is substitution: a stage that sets its whole buffer is a definition, and its readers may
//! take the value in place of the load.
//!
//! The one predicate is [`Reason`]: what keeps a definition from being put into its readers.
//! 1. What is read once per element, or costs nothing (loads and index arithmetic), is inlined; the
//!    rest is kept.
//! 2. A reduction is never inlined under another one, nor where it would run more than once per
//!    element.
//! 3. A value that can end the run with an error is inlined only where every element is still
//!    evaluated, so that fusion never hides an error.

use crate::linear::Linear;
use crate::nest::{Axis, BufferId, Mode, Nest, Role, Stage};
use crate::range::Ranges;
use crate::rewrite::{Definition, loaded, visit, visit_stage};
use crate::row_major;
use crate::scalar::{Binary, Kind, Scalar};
use crate::simplify::{flat_offset, simplify_stage};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;
use vinelift_tensor::{ElementType, element_count};

/// The most distinct nodes of a fused stage: past that, code grows faster than it gains.
const MAX_NODES: usize = 400;

/// Why a definition stays a stage of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Nothing reads it, but it may fail.
    MayFail,
    /// It may fail, and its reader does not evaluate every element unconditionally.
    WouldHideErrors,
    /// It is read `reads` times for `elements` elements and costs `cost`.
    Recomputed {
        /// Loads carried out by all readers together.
        reads: usize,
        /// Elements of the buffer.
        elements: usize,
        /// Arithmetic of one element, roughly in additions.
        cost: usize,
    },
    /// It folds, and its reader would run it inside another fold or more than once.
    ReduceInside,
    /// A buffer that it reads is written again before its reader runs.
    Overwritten,
    /// The fused stage would have too many nodes.
    TooLarge,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::MayFail => f.write_str("unread, but may fail"),
            Reason::WouldHideErrors => f.write_str("may fail, and not every element is read"),
            Reason::Recomputed {
                reads,
                elements,
                cost,
            } => write!(f, "{reads} reads of {elements} elements of cost {cost}"),
            Reason::ReduceInside => f.write_str("a fold inside another"),
            Reason::Overwritten => f.write_str("reads what is written again"),
            Reason::TooLarge => f.write_str("too large"),
        }
    }
}

/// A definition that stayed, by the name of its buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Name of the buffer.
    pub buffer: String,
    /// Why.
    pub reason: Reason,
}

/// Inlines every definition that [`Reason`] allows, drops stages that nothing needs, and simplifies
/// what has changed. Tells what was kept and why.
pub fn fuse(nest: &mut Nest) -> Vec<Kept> {
    let mut fuse = Fuse::new(nest);
    let mut kept = Vec::new();
    for position in 0..fuse.stages.len() {
        if let Err(reason) = fuse.definition(position) {
            let target = fuse.stages[position].as_ref().map(|s| s.target);
            kept.extend(target.map(|t| Kept {
                buffer: fuse.nest.buf(t).name.clone(),
                reason,
            }));
        }
    }
    let changed = std::mem::take(&mut fuse.changed);
    let stages = std::mem::take(&mut fuse.stages);
    for (position, stage) in stages.into_iter().enumerate() {
        let Some(mut stage) = stage else { continue };
        if changed.contains(&position) {
            simplify_stage(&mut stage);
        }
        nest.stages.push(stage);
    }
    kept
}

struct Fuse<'a> {
    /// Without its stages, which are in `stages`.
    nest: &'a mut Nest,
    /// By position; `None` once inlined everywhere.
    stages: Vec<Option<Stage>>,
    changed: FxHashSet<usize>,
    /// Positions of the stages that load and that write a buffer, ascending.
    readers: FxHashMap<BufferId, Vec<usize>>,
    writers: FxHashMap<BufferId, Vec<usize>>,
}

impl<'a> Fuse<'a> {
    fn new(nest: &'a mut Nest) -> Fuse<'a> {
        let mut readers: FxHashMap<BufferId, Vec<usize>> = FxHashMap::default();
        let mut writers: FxHashMap<BufferId, Vec<usize>> = FxHashMap::default();
        for (position, stage) in nest.stages.iter().enumerate() {
            writers.entry(stage.target).or_default().push(position);
            for buffer in loaded(stage) {
                readers.entry(buffer).or_default().push(position);
            }
        }
        let stages = std::mem::take(&mut nest.stages)
            .into_iter()
            .map(Some)
            .collect();
        Fuse {
            nest,
            stages,
            changed: FxHashSet::default(),
            readers,
            writers,
        }
    }

    /// Inlines the stage at `position` into all its readers if it is a definition and nothing speaks
    /// against it. `Ok` also for stages that are no definitions, which nobody expects to go.
    fn definition(&mut self, position: usize) -> Result<(), Reason> {
        let Some(stage) = self.stages[position].clone() else {
            return Ok(());
        };
        let target = stage.target;
        if !self.is_definition(&stage) {
            return Ok(());
        }
        let readers: Vec<usize> = self.readers.get(&target).cloned().unwrap_or_default();
        let cost = Cost::of(&stage.value);
        if readers.is_empty() {
            if cost.may_fail {
                return Err(Reason::MayFail);
            }
            self.remove(position);
            return Ok(());
        }
        self.check(position, &stage, &readers, cost)?;
        for &reader in &readers {
            let Some(mut into) = self.stages[reader].take() else {
                continue;
            };
            let definition = Definition {
                target,
                axes: &stage.domain,
                value: &stage.value,
            };
            definition.inline_into(self.nest, &mut into);
            for layer in &stage.layers {
                if !into.layers.contains(layer) {
                    into.layers.push(*layer);
                }
            }
            for buffer in loaded(&stage) {
                let list = self.readers.entry(buffer).or_default();
                if let Err(at) = list.binary_search(&reader) {
                    list.insert(at, reader);
                }
            }
            self.stages[reader] = Some(into);
            self.changed.insert(reader);
        }
        self.remove(position);
        Ok(())
    }

    /// Whether the stage is all that writes its buffer, sets every element of it, and does not read it.
    fn is_definition(&self, stage: &Stage) -> bool {
        let buffer = self.nest.buf(stage.target);
        let identity = stage.at.len() == stage.domain.len()
            && stage
                .at
                .iter()
                .zip(&stage.domain)
                .all(|(i, a)| matches!(i.kind(), Kind::Axis(id) if *id == a.id));
        stage.mode == Mode::Set
            && buffer.role == Role::Temporary
            && identity
            && stage
                .domain
                .iter()
                .map(|a| a.extent)
                .eq(buffer.shape.iter().copied())
            && self
                .writers
                .get(&stage.target)
                .is_some_and(|w| w.len() == 1)
            && !loaded(stage).contains(&stage.target)
    }

    fn check(
        &self,
        position: usize,
        stage: &Stage,
        readers: &[usize],
        cost: Cost,
    ) -> Result<(), Reason> {
        let last = readers.iter().copied().max().unwrap_or(position);
        for buffer in loaded(stage) {
            let written = self.writers.get(&buffer).into_iter().flatten();
            if written.into_iter().any(|&w| w > position && w <= last) {
                return Err(Reason::Overwritten);
            }
        }
        let buffer = self.nest.buf(stage.target);
        let elements = element_count(&buffer.shape).unwrap_or(usize::MAX);
        let mut reads = 0usize;
        let mut sites = Vec::new();
        for &reader in readers {
            let Some(into) = &self.stages[reader] else {
                continue;
            };
            sites.extend(sites_of(into, stage.target));
            if node_count(into) + cost.nodes > MAX_NODES {
                return Err(Reason::TooLarge);
            }
        }
        for site in &sites {
            reads = reads.saturating_add(site.executions);
        }
        if cost.may_fail && !(sites.len() == 1 && sites.iter().all(|s| s.covers(&buffer.shape))) {
            return Err(Reason::WouldHideErrors);
        }
        if cost.reduces
            && (sites.len() != 1 || sites.iter().any(|s| s.in_reduce) || reads > elements)
        {
            return Err(Reason::ReduceInside);
        }
        if cost.arithmetic > 0 && reads > elements {
            return Err(Reason::Recomputed {
                reads,
                elements,
                cost: cost.arithmetic,
            });
        }
        Ok(())
    }

    fn remove(&mut self, position: usize) {
        if let Some(stage) = self.stages[position].take() {
            self.writers.remove(&stage.target);
            for buffer in loaded(&stage) {
                if let Some(list) = self.readers.get_mut(&buffer) {
                    list.retain(|&r| r != position);
                }
            }
        }
    }
}

/// What evaluating a value once takes.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    nodes: usize,
    /// Operations on values; index arithmetic, loads and widening are free.
    arithmetic: usize,
    reduces: bool,
    may_fail: bool,
}

impl Cost {
    fn of(value: &Scalar) -> Cost {
        let mut cost = Cost::default();
        visit(value, &mut |x| {
            cost.nodes += 1;
            match x.kind() {
                Kind::Reduce { .. } => {
                    cost.reduces = true;
                    cost.arithmetic += 1;
                }
                Kind::Wrap(w) => {
                    cost.may_fail |= !w.policy.zero;
                    cost.arithmetic += 1;
                }
                Kind::Unary(op, _) if !is_index(x.ty()) => {
                    cost.arithmetic += if op.is_primitive() { 1 } else { 20 }
                }
                Kind::Binary(op, a, _) if !is_index(a.ty()) => {
                    cost.arithmetic += match op {
                        Binary::Pow => 40,
                        Binary::Div | Binary::Rem => 5,
                        _ => 1,
                    }
                }
                _ => {}
            }
        });
        cost
    }
}

fn is_index(ty: ElementType) -> bool {
    matches!(ty, ElementType::I64 | ElementType::Boolean)
}

fn node_count(stage: &Stage) -> usize {
    let mut nodes = 0;
    visit_stage(stage, &mut |_| nodes += 1);
    nodes
}

/// One place where a stage loads a buffer.
struct Site {
    at: Vec<Scalar>,
    /// All axes around it.
    axes: Vec<Axis>,
    /// How often it is carried out.
    executions: usize,
    in_reduce: bool,
    conditional: bool,
}

impl Site {
    /// Whether every element of a buffer of `shape` is certainly read: the offset is a mixed-radix
    /// number over some of the axes.
    fn covers(&self, shape: &[usize]) -> bool {
        if self.conditional {
            return false;
        }
        let mut ranges = Ranges::new();
        ranges.bind(&self.axes);
        let form = Linear::of(&flat_offset(&self.at, &row_major(shape), &mut ranges));
        let digit = |(atom, k): &(Scalar, i64)| {
            let Kind::Axis(id) = atom.kind() else {
                return None;
            };
            let axis = self.axes.iter().find(|a| a.id == *id)?;
            Some((usize::try_from(*k).ok()?, axis.extent))
        };
        let Some(mut digits) = form.terms.iter().map(digit).collect::<Option<Vec<_>>>() else {
            return false;
        };
        digits.sort_unstable();
        let mut weight = 1usize;
        for (k, extent) in digits {
            if extent == 1 {
                continue;
            }
            if k != weight {
                return false;
            }
            weight = weight.saturating_mul(extent);
        }
        form.constant == 0 && Some(weight) == element_count(shape)
    }
}

fn sites_of(stage: &Stage, buffer: BufferId) -> Vec<Site> {
    let mut finder = Finder {
        buffer,
        axes: stage.domain.clone(),
        depth: stage.domain.len(),
        sites: Vec::new(),
        seen: FxHashSet::default(),
    };
    // A stage whose `at` may skip the write does not need its value there.
    let skips = stage
        .at
        .iter()
        .any(|i| matches!(i.kind(), Kind::Wrap(w) if w.policy.zero));
    for index in &stage.at {
        finder.walk(index, false);
    }
    finder.walk(&stage.value, skips);
    finder.sites
}

struct Finder {
    buffer: BufferId,
    axes: Vec<Axis>,
    /// Number of axes of the stage itself.
    depth: usize,
    sites: Vec<Site>,
    /// Nodes met, with the number of axes around them and whether under a condition.
    seen: FxHashSet<(usize, usize, bool)>,
}

impl Finder {
    fn walk(&mut self, x: &Scalar, conditional: bool) {
        if !self
            .seen
            .insert((x.address(), self.axes.len(), conditional))
        {
            return;
        }
        match x.kind() {
            Kind::Load { buffer, at } => {
                if *buffer == self.buffer {
                    self.site(at, conditional);
                }
                // A load that reads zero because of one index need not evaluate the others.
                let skips = at
                    .iter()
                    .any(|i| matches!(i.kind(), Kind::Wrap(w) if w.policy.zero));
                at.iter().for_each(|i| self.walk(i, conditional || skips));
            }
            Kind::Select(c, yes, no) => {
                self.walk(c, conditional);
                self.walk(yes, true);
                self.walk(no, true);
            }
            Kind::Reduce {
                axes, init, body, ..
            } => {
                self.walk(init, conditional);
                let outer = self.axes.len();
                self.axes.extend_from_slice(axes);
                self.walk(body, conditional);
                self.axes.truncate(outer);
            }
            // The position is only evaluated for a message.
            Kind::Wrap(w) => self.walk(&w.index, conditional),
            _ => x.children().for_each(|child| self.walk(child, conditional)),
        }
    }

    fn site(&mut self, at: &[Scalar], conditional: bool) {
        let known = self
            .sites
            .iter()
            .any(|s| s.at == at && s.axes == self.axes && s.conditional <= conditional);
        if known {
            return;
        }
        let executions = self
            .axes
            .iter()
            .map(|a| a.extent)
            .fold(1usize, usize::saturating_mul);
        self.sites.push(Site {
            at: at.to_vec(),
            axes: self.axes.clone(),
            executions,
            in_reduce: self.axes.len() > self.depth,
            conditional,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::*;
    use crate::{Policy, nest};
    use vinelift_tensor::ElementType::{F32, I64};

    fn temporary(nest: &mut Nest, name: &str, shape: &[usize]) -> BufferId {
        nest.buffer(name, F32, shape, Role::Temporary)
    }

    fn stages(nest: &Nest) -> Vec<String> {
        nest.stages
            .iter()
            .map(|s| nest.display_stage(s).to_string())
            .collect()
    }

    #[test]
    fn chains_layout_and_epilogues_become_one_stage() {
        let mut nest = Nest::new();
        let a = nest.buffer("a", F32, &[2, 3], Role::Input);
        let b = nest.buffer("b", F32, &[3, 4], Role::Input);
        let bias = nest.buffer("bias", F32, &[2], Role::Input);
        let (t0, t1, t2) = (
            temporary(&mut nest, "t0", &[2, 4]),
            temporary(&mut nest, "t1", &[4, 2]),
            temporary(&mut nest, "t2", &[4, 2]),
        );
        let out = nest.buffer("out", F32, &[4, 2], Role::Output);
        nest.define(vec![], t0, |n, at| {
            let axes = n.axes(&[3]);
            let k = Scalar::axis(axes[0].id);
            let body =
                n.load(a, vec![at[0].clone(), k.clone()]) * n.load(b, vec![k, at[1].clone()]);
            Scalar::reduce(Binary::Add, axes, number(0.0, F32), body)
        });
        nest.define(vec![], t1, |n, at| {
            n.load(t0, vec![at[1].clone(), at[0].clone()])
        });
        nest.define(vec![], t2, |n, at| {
            n.load(t1, at.to_vec()) + n.load(bias, vec![at[1].clone()])
        });
        nest.define(vec![], out, |n, at| {
            number(0.0, F32).max(n.load(t2, at.to_vec()))
        });
        assert_eq!(fuse(&mut nest), []);
        assert_eq!(
            stages(&nest),
            ["for i<4, j<2: out[i, j] = max(0.0, (add[k<3; 0.0]((a[j, k] * b[k, i])) + bias[j]))"]
        );
        crate::verify(&nest).unwrap();
    }

    /// With axes by position instead of by identity, `k` would be captured here.
    #[test]
    fn a_fold_inlined_twice_has_axes_of_its_own() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[2, 3], Role::Input);
        let sum = temporary(&mut nest, "sum", &[2]);
        let (p, q) = (
            nest.buffer("p", F32, &[2], Role::Output),
            nest.buffer("q", F32, &[2], Role::Output),
        );
        nest.define(vec![], sum, |n, at| {
            let axes = n.axes(&[3]);
            let body = n.load(x, vec![at[0].clone(), Scalar::axis(axes[0].id)]);
            Scalar::reduce(Binary::Add, axes, number(0.0, F32), body)
        });
        nest.define(vec![], p, |n, at| n.load(sum, at.to_vec()));
        nest.define(vec![], q, |n, at| n.load(sum, at.to_vec()));
        assert_eq!(
            fuse(&mut nest),
            [Kept {
                buffer: "sum".into(),
                reason: Reason::ReduceInside
            }]
        );
        nest.stages.truncate(2);
        fuse(&mut nest);
        assert_eq!(stages(&nest), ["for i<2: p[i] = add[j<3; 0.0](x[i, j])"]);
        crate::verify(&nest).unwrap();
    }

    #[test]
    fn what_costs_is_not_computed_twice() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[4], Role::Input);
        let e = temporary(&mut nest, "e", &[4]);
        let out = nest.buffer("out", F32, &[3, 4], Role::Output);
        nest.define(vec![], e, |n, at| n.load(x, at.to_vec()).exp());
        nest.define(vec![], out, |n, at| n.load(e, vec![at[1].clone()]));
        let reason = Reason::Recomputed {
            reads: 12,
            elements: 4,
            cost: 20,
        };
        assert_eq!(
            fuse(&mut nest),
            [Kept {
                buffer: "e".into(),
                reason
            }]
        );
    }

    fn gather(nest: &mut Nest, target: BufferId, data: BufferId, indices: BufferId) {
        let layer = nest.layer("g", "Gather, opset8");
        nest.define(vec![layer], target, |n, at| {
            let index = n.load(indices, at.to_vec());
            let site = nest::Site {
                layer,
                input: "indices".into(),
            };
            let i = n.wrap(index, 9, Policy::WRAP, site, at.to_vec());
            n.load(data, vec![i])
        });
    }

    #[test]
    fn an_error_is_not_fused_away() {
        let mut nest = Nest::new();
        let data = nest.buffer("data", F32, &[9], Role::Input);
        let indices = nest.buffer("indices", I64, &[6], Role::Input);
        let (all, some) = (
            temporary(&mut nest, "all", &[6]),
            temporary(&mut nest, "some", &[6]),
        );
        let (p, q) = (
            nest.buffer("p", F32, &[2, 3], Role::Output),
            nest.buffer("q", F32, &[5], Role::Output),
        );
        gather(&mut nest, all, data, indices);
        gather(&mut nest, some, data, indices);
        nest.define(vec![], p, |n, at| {
            n.load(all, vec![&at[0] * 3 + &at[1]]).exp()
        });
        nest.define(vec![], q, |n, at| n.load(some, at.to_vec()));
        assert_eq!(
            fuse(&mut nest),
            [Kept {
                buffer: "some".into(),
                reason: Reason::WouldHideErrors
            }]
        );
        let text = stages(&nest);
        assert_eq!(
            text[1],
            "for i<2, j<3: p[i, j] = exp(data[wrap(indices[((i * 3) + j)], 9)])"
        );
    }

    #[test]
    fn what_is_overwritten_is_read_before() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[4], Role::Input);
        let (a, b) = (
            temporary(&mut nest, "a", &[4]),
            temporary(&mut nest, "b", &[4]),
        );
        let out = nest.buffer("out", F32, &[4], Role::Output);
        nest.define(vec![], a, |n, at| n.load(x, at.to_vec()));
        nest.define(vec![], b, |n, at| n.load(a, at.to_vec()));
        nest.define(vec![], a, |_, _| number(1.0, F32));
        nest.define(vec![], out, |n, at| {
            n.load(a, at.to_vec()) + n.load(b, at.to_vec())
        });
        assert_eq!(
            fuse(&mut nest),
            [Kept {
                buffer: "b".into(),
                reason: Reason::Overwritten
            }]
        );
        assert_eq!(nest.stages.len(), 4);
    }
}
