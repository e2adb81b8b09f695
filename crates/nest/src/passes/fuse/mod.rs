//! Fusion is substitution: a stage that sets its whole buffer is a definition, and its readers may
//! take the value in place of the load.
//!
//! The one predicate is [`Reason`]: what keeps a definition from being put into its readers.
//! 1. What is read once per element, or costs nothing (loads and linear index arithmetic, or a copy of one matrix for
//!    several whose rows a contraction multiplies it with), is inlined; the rest is kept.
//! 2. A reduction is never inlined under another one, nor where it would run more than once per
//!    element.
//! 3. A value that can end the run with an error is inlined only where every element is still
//!    evaluated, in the same order, so that fusion never hides an error.

mod cost;
mod rows;
mod sites;
#[cfg(test)]
mod tests;

use crate::analysis::{Scan, is_grouped, sums};
use crate::compiler_threads;
use crate::ir::{BufferId, Definition, Nest, Role, Scalar, Stage, loaded_by, visit_accesses};
use crate::passes::simplify::simplify_stage;
use cost::{Cost, node_count};
use rustc_hash::{FxHashMap, FxHashSet};
use sites::{Site, drops_failing_index, sites_of};
use std::collections::BTreeMap;
use std::fmt;
use vinelift_tensor::element_count;

/// The most primitive nodes of a fused stage, roughly: past that, code grows faster than it gains, and
/// whoever walks an expression recursively needs too much stack.
const MAX_NODES: usize = 600;

/// An expression with at least this many loads is as costly as a fold, and may be one that was unrolled; so is a stage that
/// loads a definition at as many places for each point.
const LEAST_UNROLLED: usize = 8;

/// The operations on the way to an index, or to what a scan goes through, that are worth a stage in vectors: those of a coordinate,
/// but not those of most indices.
const LONG_WAY: usize = 6;

/// Whether a stage computes an index of an element of `buffer`.
fn is_in_index(stage: &Stage, buffer: BufferId) -> bool {
    let mut is_found = false;
    visit_accesses(stage, &mut |_, at| {
        is_found |= loaded_by(at).contains(&buffer)
    });
    is_found
}

/// Why a definition stays a stage of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It has no elements: what reads it fails, or reads zero, or does nothing, and needs its extents.
    Empty,
    /// Nothing reads it, but it may fail.
    MayFail,
    /// It may fail, and its reader does not evaluate every element unconditionally and in order: another error might be
    /// the first.
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
    /// It sums products, and is read where a kernel for that could not write: not along its dims, outside
    /// them where a guard says that nothing is read, or sums by groups across their rows.
    Scattered,
    /// A buffer that it reads is written again before its reader runs.
    Overwritten,
    /// It is computed, and read at this many places for each point: vectors of it would become scalars.
    Apart(usize),
    /// It folds, and its reader writes where indices say: no pass and no kernel for folds serves such a stage.
    ByIndex,
    /// Its reader makes an index of it, and looks up the elements that indices choose one by one: vectors of it would become
    /// scalars.
    InIndex,
    /// It is guarded by where its elements are, and its reader goes through rows of another length: vectors of it would become
    /// scalars.
    Unaligned,
    /// Its reader goes on from point to point along its innermost axis: vectors of it would become scalars.
    InScan,
    /// The fused stage would have too many nodes.
    TooLarge,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::MayFail => f.write_str("unread, but may fail"),
            Reason::WouldHideErrors => {
                f.write_str("may fail, and not every element is read in order")
            }
            Reason::Recomputed {
                reads,
                elements,
                cost,
            } => write!(f, "{reads} reads of {elements} elements of cost {cost}"),
            Reason::Scattered => {
                f.write_str("a sum of products, not read along its dims and inside")
            }
            Reason::ReduceInside => f.write_str("a fold inside another"),
            Reason::Overwritten => f.write_str("reads what is written again"),
            Reason::Apart(places) => write!(f, "{places} places for each point"),
            Reason::ByIndex => f.write_str("a fold whose result is written by an index"),
            Reason::InIndex => f.write_str("arithmetic on the way to an index"),
            Reason::Unaligned => f.write_str("padded, and read in rows of another length"),
            Reason::InScan => f.write_str("arithmetic in a stage whose points follow each other"),
            Reason::TooLarge => f.write_str("too large"),
            Reason::Empty => f.write_str("empty"),
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
    fuse.remove_unread();
    let kept = fuse.definitions();
    let changed = std::mem::take(&mut fuse.changed);
    let stages = std::mem::take(&mut fuse.stages);
    let simplified = |(position, stage): (usize, Option<Stage>)| {
        let mut stage = stage?;
        if changed.contains(&position) {
            simplify_stage(&mut stage);
        }
        Some(stage)
    };
    let stages = compiler_threads::map(stages.into_iter().enumerate().collect(), simplified);
    nest.stages = stages.into_iter().flatten().collect();
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
    /// For each position, the last of the stages that take turns with the one there.
    last_turns: Vec<usize>,
}

impl<'a> Fuse<'a> {
    fn new(nest: &'a mut Nest) -> Fuse<'a> {
        let mut readers: FxHashMap<BufferId, Vec<usize>> = FxHashMap::default();
        let mut writers: FxHashMap<BufferId, Vec<usize>> = FxHashMap::default();
        for (position, stage) in nest.stages.iter().enumerate() {
            writers.entry(stage.target).or_default().push(position);
            for buffer in stage.loads() {
                readers.entry(buffer).or_default().push(position);
            }
        }
        let mut last_turns: Vec<usize> = Vec::with_capacity(nest.stages.len());
        while last_turns.len() < nest.stages.len() {
            let end = nest.group_end(last_turns.len());
            last_turns.resize(end, end - 1);
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
            last_turns,
        }
    }

    /// Drops stages that set temporaries which nothing reads, as other passes leave them, and as what only a shape was asked of:
    /// what they read may then be read once alone.
    fn remove_unread(&mut self) {
        for position in (0..self.stages.len()).rev() {
            let is_needed = |stage: &Stage| {
                let is_read = !self.readers_of(stage).is_empty();
                is_read || self.nest.buf(stage.target).role != Role::Temporary || stage.may_fault()
            };
            if !self.stages[position].as_ref().is_none_or(is_needed) {
                self.remove(position);
            }
        }
    }

    /// Inlines what can be inlined, and tells why the rest stays.
    fn definitions(&mut self) -> Vec<Kept> {
        let mut open: Vec<usize> = (0..self.stages.len()).collect();
        let mut kept: BTreeMap<usize, Kept> = BTreeMap::new();
        while !open.is_empty() {
            let mut stayed = Vec::new();
            for position in open {
                kept.remove(&position);
                let Err(reason) = self.definition(position) else {
                    continue;
                };
                if let Some(stage) = &self.stages[position] {
                    let buffer = self.nest.buf(stage.target).name.clone();
                    kept.insert(position, Kept { buffer, reason });
                    stayed.push((position, self.readers_of(stage).len()));
                }
            }
            // Two readers of a value have become one where one of them was put into the other, as in `x · sigmoid(x)`.
            let has_fewer = |&(position, readers): &(usize, usize)| {
                let stage = self.stages[position].as_ref();
                stage.is_some_and(|stage| self.readers_of(stage).len() < readers)
            };
            let again = stayed.into_iter().filter(has_fewer);
            open = again.map(|(position, _)| position).collect();
        }
        kept.into_values().collect()
    }

    /// The positions of the stages that load what a stage writes, ascending.
    fn readers_of(&self, stage: &Stage) -> &[usize] {
        self.readers.get(&stage.target).map_or(&[], Vec::as_slice)
    }

    /// Inlines the stage at `position` into all its readers if it is a definition and nothing speaks
    /// against it. `Ok` also for stages that are no definitions, which nobody expects to go.
    fn definition(&mut self, position: usize) -> Result<(), Reason> {
        let Some(stage) = self.stages[position].clone() else {
            return Ok(());
        };
        if !self.is_definition(&stage) {
            return Ok(());
        }
        let readers = self.readers_of(&stage).to_vec();
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
            Definition::of(&stage).inline_into(self.nest, &mut into);
            for layer in &stage.layers {
                if !into.layers.contains(layer) {
                    into.layers.push(*layer);
                }
            }
            for buffer in stage.loads() {
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
        stage.is_definition(self.nest)
            && self
                .writers
                .get(&stage.target)
                .is_some_and(|w| w.len() == 1)
            && !stage.loads().contains(&stage.target)
    }

    fn check(
        &self,
        position: usize,
        stage: &Stage,
        readers: &[usize],
        cost: Cost,
    ) -> Result<(), Reason> {
        if self.is_overwritten(position, stage, readers) {
            return Err(Reason::Overwritten);
        }
        let buffer = self.nest.buf(stage.target);
        let elements = element_count(&buffer.example()).unwrap_or(usize::MAX);
        if elements == 0 {
            return Err(Reason::Empty);
        }
        let mut sites = Vec::new();
        for &reader in readers {
            let Some(into) = &self.stages[reader] else {
                continue;
            };
            if cost.reduces && into.at.iter().any(Scalar::loads) {
                return Err(Reason::ByIndex);
            }
            if cost.arithmetic >= LONG_WAY && is_in_index(into, stage.target) {
                return Err(Reason::InIndex);
            }
            if cost.arithmetic >= LONG_WAY && self.is_scan_of_lanes(into) {
                return Err(Reason::InScan);
            }
            sites.extend(sites_of(into, stage.target));
            if node_count(into) + cost.nodes > MAX_NODES {
                return Err(Reason::TooLarge);
            }
        }
        let covers = || sites.len() == 1 && sites.iter().all(|s| s.covers_in_order(&buffer.shape));
        if drops_failing_index(stage, &sites) || (cost.may_fail && !covers()) {
            return Err(Reason::WouldHideErrors);
        }
        let reads = sites.iter().map(|site| site.executions);
        let reads = reads.fold(0, usize::saturating_add);
        if cost.reduces
            && (sites.len() != 1 || sites.iter().any(|s| s.in_reduce) || reads > elements)
        {
            return Err(Reason::ReduceInside);
        }
        let is_strided = |site: &Site| site.is_strided(&buffer.shape) && site.keeps_divided(stage);
        if cost.contracts && !sites.iter().all(is_strided) {
            return Err(Reason::Scattered);
        }
        // The kernels for sums by groups write rows.
        let is_of_groups = || cost.contracts && sums(stage).iter().any(is_grouped);
        if !sites.iter().all(Site::keeps_rows) && is_of_groups() {
            return Err(Reason::Scattered);
        }
        if cost.arithmetic > 0 && !sites.iter().all(|site| site.keeps_guards(stage)) {
            return Err(Reason::Unaligned);
        }
        if cost.arithmetic > 0 && sites.len() >= LEAST_UNROLLED {
            return Err(Reason::Apart(sites.len()));
        }
        let is_read_by_rows = || {
            let readers = readers
                .iter()
                .filter_map(|&reader| self.stages[reader].as_ref());
            let mut copy = stage.clone();
            simplify_stage(&mut copy);
            rows::are_shared(&copy, readers)
        };
        if cost.arithmetic > 0 && reads > elements && !is_read_by_rows() {
            return Err(Reason::Recomputed {
                reads,
                elements,
                cost: cost.arithmetic,
            });
        }
        Ok(())
    }

    /// Whether the points of a stage along its innermost axis each go on from one before.
    fn is_scan_of_lanes(&self, stage: &Stage) -> bool {
        if stage.group.is_some() || !stage.loads().contains(&stage.target) {
            return false;
        }
        let lane = stage.domain.iter().rfind(|axis| axis.extent > 1);
        let scan = Scan::of(self.nest, stage);
        scan.is_none_or(|scan| lane.is_some_and(|lane| lane.id == scan.axis.id))
    }

    /// Whether what the stage loads changes between it and its last reader.
    fn is_overwritten(&self, position: usize, stage: &Stage, readers: &[usize]) -> bool {
        let last = readers.iter().map(|&reader| self.last_turns[reader]);
        let last = last.max().unwrap_or(position);
        stage.loads().into_iter().any(|buffer| {
            let mut written = self.writers.get(&buffer).into_iter().flatten();
            written.any(|&w| w > position && w <= last)
        })
    }

    fn remove(&mut self, position: usize) {
        if let Some(stage) = self.stages[position].take() {
            if let Some(list) = self.writers.get_mut(&stage.target) {
                list.retain(|&w| w != position);
            }
            for buffer in stage.loads() {
                if let Some(list) = self.readers.get_mut(&buffer) {
                    list.retain(|&r| r != position);
                }
            }
        }
    }
}
