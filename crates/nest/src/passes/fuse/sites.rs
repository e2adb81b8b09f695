//! Where a stage loads a buffer, and how often.

use super::cost::Cost;
use crate::analysis::{Linear, Ranges, flat_offset};
use crate::ir::{Axis, AxisId, Binary, BufferId, Kind, Scalar, Stage, free_axes, row_major, visit};
use rustc_hash::{FxHashMap, FxHashSet};
use vinelift_tensor::{Extent, element_count, numbers};

/// One place where a stage loads a buffer.
pub(super) struct Site {
    pub(super) at: Vec<Scalar>,
    /// All axes around it.
    axes: Vec<Axis>,
    /// How often it is carried out.
    pub(super) executions: usize,
    /// Whether a fold is around it.
    pub(super) in_reduce: bool,
    conditional: bool,
}

impl Site {
    /// Whether every index is linear in the axes, or would be if an axis were divided in two, and lies within
    /// its dim of `shape` whether or not the element there is needed.
    pub(super) fn is_strided(&self, shape: &[Extent]) -> bool {
        let mut ranges = Ranges::new();
        ranges.bind(&self.axes);
        let mut inside = |(i, n): (&Scalar, &Extent)| ranges.is_index(i, *n);
        self.at.iter().all(|i| self.is_linear(i)) && self.at.iter().zip(shape).all(&mut inside)
    }

    /// Whether an index is linear in the axes, or would be if an axis were divided in two.
    fn is_linear(&self, index: &Scalar) -> bool {
        let extent = |id: AxisId| self.axes.iter().find(|a| a.id == id).map(|a| a.extent);
        let is_linear = |(atom, _): &(Scalar, i64)| match atom.kind() {
            Kind::Axis(_) => true,
            Kind::Binary(Binary::Div | Binary::Rem, x, c) => match (x.kind(), c.as_index()) {
                (Kind::Axis(id), Some(c @ 1..)) => {
                    extent(*id).is_some_and(|n| n.is_multiple_of(c as usize))
                }
                _ => false,
            },
            _ => false,
        };
        Linear::of(index).terms.iter().all(is_linear)
    }

    /// Whether elements that lie side by side in the buffer are read one after the other: by the innermost axis, which moves along the
    /// last dim alone.
    pub(super) fn keeps_rows(&self) -> bool {
        let inner = self.axes.iter().rfind(|axis| axis.extent > 1);
        let moves = |index: &Scalar| inner.is_some_and(|axis| free_axes(index).contains(&axis.id));
        let last = self.at.split_last();
        last.is_none_or(|(last, others)| {
            inner.is_none() || moves(last) && !others.iter().any(moves)
        })
    }

    /// Whether the guards of a stage that is read here would be of linear indices, so that they hold for whole runs of lanes: those
    /// that ask where an element is, as of padding.
    pub(super) fn keeps_guards(&self, stage: &Stage) -> bool {
        let mut guarded: FxHashSet<AxisId> = FxHashSet::default();
        visit(&stage.value, &mut |x| {
            if let Kind::Select(c, ..) = x.kind()
                && !c.loads()
            {
                guarded.extend(free_axes(c));
            }
        });
        let mut dims = stage.domain.iter().zip(&self.at);
        dims.all(|(axis, index)| !guarded.contains(&axis.id) || self.is_linear(index))
    }

    /// Whether fusion of `stage` here leaves index arithmetic linear, where the stage's value divides some of its axes or takes rests of
    /// them: each of these dims must be read by an axis, or by a quotient or rest of one that can be divided further, not by a sum.
    pub(super) fn keeps_divided(&self, stage: &Stage) -> bool {
        let mut divided: FxHashMap<AxisId, Vec<usize>> = FxHashMap::default();
        visit(&stage.value, &mut |x| {
            if let Kind::Binary(Binary::Div | Binary::Rem, x, by) = x.kind() {
                let by = by.as_index().and_then(|by| usize::try_from(by).ok());
                for axis in free_axes(x) {
                    divided.entry(axis).or_default().push(by.unwrap_or(0));
                }
            }
        });
        let mut dims = stage.domain.iter().zip(&self.at);
        dims.all(|(axis, index)| match divided.get(&axis.id) {
            None => true,
            Some(divisors) => divisors.iter().all(|by| self.can_divide(index, *by)),
        })
    }

    /// Whether an index is still linear in axes that are divided once it is divided by `by`.
    fn can_divide(&self, index: &Scalar, by: usize) -> bool {
        let extent = |x: &Scalar| self.axes.iter().find(|a| x.is_axis(a.id)).map(|a| a.extent);
        match index.kind() {
            Kind::Axis(_) | Kind::Const(_) => true,
            Kind::Binary(op @ (Binary::Div | Binary::Rem), x, c) => {
                let c = c.as_index().and_then(|c| usize::try_from(c).ok());
                let whole = match (op, c) {
                    (Binary::Div, Some(c)) => c.checked_mul(by).filter(|whole| *whole > 0),
                    (_, Some(c)) => Some(c).filter(|c| by > 0 && c.is_multiple_of(by)),
                    _ => None,
                };
                whole.is_some_and(|whole| extent(x).is_some_and(|n| n.is_multiple_of(whole)))
            }
            _ => false,
        }
    }

    /// Whether every element of a buffer of `shape` is certainly read, one after the other: the offset is a mixed-radix
    /// number over some of the axes, in their order.
    pub(super) fn covers_in_order(&self, shape: &[Extent]) -> bool {
        let is_number = |axis: &Axis| !axis.extent.is_symbolic();
        let Some(shape) = &numbers(shape).filter(|_| self.axes.iter().all(is_number)) else {
            return false;
        };
        if self.conditional || self.executions == 0 {
            return false;
        }
        let mut ranges = Ranges::new();
        ranges.bind(&self.axes);
        let form = Linear::of(&flat_offset(&self.at, &row_major(shape), &mut ranges));
        let digit = |(atom, k): &(Scalar, i64)| {
            let Kind::Axis(id) = atom.kind() else {
                return None;
            };
            let place = self.axes.iter().position(|a| a.id == *id)?;
            let extent = self.axes[place].extent.example();
            Some((usize::try_from(*k).ok()?, extent, place))
        };
        let Some(mut digits) = form.terms.iter().map(digit).collect::<Option<Vec<_>>>() else {
            return false;
        };
        digits.sort_unstable();
        let (mut weight, mut outside) = (1usize, self.axes.len());
        for (k, extent, place) in digits {
            if extent == 1 {
                continue;
            }
            if k != weight || place > outside {
                return false;
            }
            (weight, outside) = (weight.saturating_mul(extent), place);
        }
        form.constant == 0 && Some(weight) == element_count(shape)
    }
}

/// The axes that are certainly evaluated where `value` is.
fn evaluated_axes(value: &Scalar) -> FxHashSet<AxisId> {
    fn go(x: &Scalar, done: &mut FxHashMap<usize, FxHashSet<AxisId>>) -> FxHashSet<AxisId> {
        if let Some(known) = done.get(&x.address()) {
            return known.clone();
        }
        let mut all = |parts: &[&Scalar]| -> FxHashSet<AxisId> {
            parts.iter().flat_map(|part| go(part, done)).collect()
        };
        let axes = match x.kind() {
            Kind::Axis(id) => [*id].into_iter().collect(),
            Kind::Select(c, yes, no) => {
                let (yes, no) = (all(&[yes]), all(&[no]));
                let mut axes = all(&[c]);
                axes.extend(yes.intersection(&no));
                axes
            }
            Kind::Reduce {
                axes, init, body, ..
            } => match axes.iter().all(|a| a.extent > 0) {
                true => all(&[init, body]),
                false => all(&[init]),
            },
            // Where one index is out of range, the load reads 0 and needs no other index.
            Kind::Load { at, .. } if at.iter().any(Scalar::reads_zero) => all(&at
                .iter()
                .find(|i| i.reads_zero())
                .into_iter()
                .collect::<Vec<_>>()),
            Kind::Wrap(w) => all(&[&w.index]),
            _ => all(&x.children().collect::<Vec<_>>()),
        };
        done.insert(x.address(), axes.clone());
        axes
    }
    go(value, &mut FxHashMap::default())
}

/// Whether an index of one of the sites, which load what `stage` stores, may fail, and the stage's value need not evaluate it.
pub(super) fn drops_failing_index(stage: &Stage, sites: &[Site]) -> bool {
    let mut evaluated = None;
    sites.iter().any(|site| {
        let mut indices = stage.domain.iter().zip(&site.at);
        indices.any(|(axis, index)| {
            Cost::of(index).may_fail
                && !evaluated
                    .get_or_insert_with(|| evaluated_axes(&stage.value))
                    .contains(&axis.id)
        })
    })
}

/// Every place in a stage that loads `buffer`.
pub(super) fn sites_of(stage: &Stage, buffer: BufferId) -> Vec<Site> {
    let mut finder = Finder {
        buffer,
        axes: stage.domain.clone(),
        depth: stage.domain.len(),
        sites: Vec::new(),
        seen: FxHashSet::default(),
    };
    // A stage whose `at` may skip the write does not need its value there.
    let skips = stage.at.iter().any(Scalar::reads_zero);
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
    /// Shared nodes met, with the number of axes around them and whether under a condition.
    seen: FxHashSet<(usize, usize, bool)>,
}

impl Finder {
    fn walk(&mut self, x: &Scalar, conditional: bool) {
        let node = (x.address(), self.axes.len(), conditional);
        if !x.loads() || (x.is_shared() && !self.seen.insert(node)) {
            return;
        }
        match x.kind() {
            Kind::Load { buffer, at } => {
                if *buffer == self.buffer {
                    self.site(at, conditional);
                }
                // A load that reads zero because of one index need not evaluate the others.
                let skips = at.iter().any(Scalar::reads_zero);
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
            .map(|a| a.extent.example())
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
