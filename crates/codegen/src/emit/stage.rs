//! Stages: the loops over a domain, and the store inside.

use super::copy::CopyStage;
use super::emitter::{Emitter, Result};
use super::interleave::Interleave;
use super::scan::ScanRows;
use super::transpose::Transpose;
use super::update::BLOCK;
use crate::analysis::indices::{CheckedIndex, has_checks, how_all_checked};
use crate::analysis::runs::Runs;
use crate::analysis::work::{first_inner, usual_points};
use crate::vectorize::{BlockColumns, BlockLoop, Collected, KernelLoop, VectorLoop};
use cranelift_codegen::ir::{Block, InstBuilder};
use vinelift_nest::{Axis, Mode, Scalar, Stage};

impl<'n> Emitter<'n, '_> {
    pub(super) fn stage(&mut self, number: usize, stage: &'n Stage) -> Result {
        if stage.domain.iter().any(|axis| axis.extent == 0) {
            return Ok(());
        }
        let many: Vec<Axis> = stage
            .domain
            .iter()
            .filter(|a| a.extent > 1)
            .copied()
            .collect();
        let legal = stage;
        let stage = self.with_halves(number, stage, &many).unwrap_or(stage);
        self.know(stage);
        self.open_scope();
        let loops = self.loops.len();
        for &axis in stage.domain.iter().filter(|axis| axis.extent == 1) {
            self.bind_point(axis);
        }
        let mut way = self.way(stage, &many);
        let mut exact = None;
        self.runs[number] = way.runs();
        self.notes[number] = self.note(stage, &way, &many);
        for (k, &axis) in many.iter().enumerate() {
            if let Way::Columns(columns) = &mut way
                && k + 2 == many.len()
            {
                let depth = self.loops.len();
                let instead = self.open_columns(stage, [axis, many[k + 1]], &mut columns.columns);
                exact = Some((depth, instead));
                if let BlockLoop::Function(function) = &mut columns.block
                    && let Some(ready) = function.take()
                {
                    self.run_vector_loop_of_columns(number, stage, ready, instead)?;
                    break;
                }
            }
            if self.open_axis(number, [stage, legal], &mut way, (k, &many))? {
                break;
            }
        }
        if many.is_empty() {
            self.assign(stage)?;
        }
        if let Some((depth, exact)) = exact {
            while self.loops.len() > depth {
                self.close_loop(&[]);
            }
            (self.narrowed, self.instead_of_faults) = (None, None);
            self.analysis.panels.clear();
            self.point_by_point(stage, exact, &many[many.len() - 2..])?;
        }
        while self.loops.len() > loops {
            self.close_loop(&[]);
        }
        self.close_scope();
        Ok(())
    }

    /// Opens the loop over the axis of number `k` among `many`, or does all from it on in another way: true then.
    fn open_axis(
        &mut self,
        number: usize,
        [stage, legal]: [&'n Stage; 2],
        way: &mut Way<'n>,
        (k, many): (usize, &[Axis]),
    ) -> Result<bool> {
        // The value of a point that may be skipped is not evaluated in any case.
        let value = Some(&stage.value).filter(|_| !stage.at.iter().any(Scalar::reads_zero));
        self.hoist(stage.at.iter().chain(value))?;
        let (axis, inner) = (many[k], &many[k..]);
        let is_last = inner.len() == 1;
        match way {
            Way::VectorLoop(ready) if ready.as_ref().map(|ready| ready.outer) == Some(k) => {
                if let Some(ready) = ready.take() {
                    self.run_vector_loop(number, [stage, legal], ready, inner)?;
                }
                return Ok(true);
            }
            Way::Collected(collected) if collected.as_ref().map(|c| c.ready.outer) == Some(k) => {
                if let Some(collected) = collected.take() {
                    self.collected_loops(number, stage, *collected, inner)?;
                }
                return Ok(true);
            }
            Way::Copy(copy) if k == copy.outermost => {
                self.copy(stage, *copy, inner)?;
                return Ok(true);
            }
            Way::Interleave(of) if inner.len() == 2 => {
                self.interleave(stage, of, inner)?;
                return Ok(true);
            }
            Way::Transpose(of) if k == of.outermost => {
                self.transpose(stage, of, inner)?;
                return Ok(true);
            }
            Way::Scan(rows) if k == rows.outermost => {
                self.rows(stage, rows, inner)?;
                return Ok(true);
            }
            Way::Vectors(kernel_loop) if is_last => {
                self.kernel_loop_or_points(stage, kernel_loop)?;
            }
            Way::Columns(columns) if is_last => match &columns.block {
                BlockLoop::InKernel(kernel_loop) => {
                    self.kernel_loop_or_points(stage, kernel_loop)?;
                }
                BlockLoop::Update(checks) => self.update_loop(stage, axis, checks)?,
                BlockLoop::Function(_) => {}
            },
            Way::Update(checks) if is_last => self.update_loop(stage, axis, checks)?,
            _ => {
                let turns = self.turns(stage, axis);
                self.open_loop(axis, turns, 1, &[]);
                if is_last {
                    self.assign(stage)?;
                }
            }
        }
        Ok(false)
    }

    pub(super) fn know(&mut self, stage: &'n Stage) {
        self.analysis.begin(stage);
        self.note_work(stage);
    }

    /// The stage of that number as it is with casts of `f16`, if it has any and becomes a vector loop: only vector loops have
    /// instructions for them.
    fn with_halves(&mut self, number: usize, stage: &Stage, many: &[Axis]) -> Option<&'n Stage> {
        let halves = self.halves?.stages.get(number).filter(|s| *s != stage)?;
        if self.analysis.chunks.dim.is_some() {
            // No vector loop goes through several loops.
            return None;
        }
        self.know(halves);
        let first = first_inner(stage);
        if first >= many.len() {
            return None;
        }
        if self.analysis.vector_loop_of(halves).is_some() {
            return Some(halves);
        }
        // The loads that are collected, and the exact way for wrong indices, are scalar code.
        let collected = self.analysis.collected_loop(halves, many, first)?;
        if collected.may_be_few().next().is_some() {
            return None;
        }
        let mut loads = collected.loads.iter();
        let fits = loads.all(|x| {
            let is_exact = collected.rows.is_none() || !has_checks(x);
            is_exact && !self.analysis.facts.converts_halves(x)
        });
        fits.then_some(halves)
    }

    fn way(&mut self, stage: &'n Stage, many: &[Axis]) -> Way<'n> {
        let first = first_inner(stage);
        if first >= many.len() {
            return Way::Points;
        }
        if self.analysis.chunks.dim.is_some() {
            return self.way_of_columns(stage, many);
        }
        let copy = self.copy_of(stage, many);
        if let Some(copy) = copy.filter(|copy| copy.outermost >= first) {
            return Way::Copy(copy);
        }
        if let Some(vector_loop) = self.analysis.vector_loop_of(stage) {
            return Way::VectorLoop(Some(vector_loop));
        }
        let transpose = self.transpose_of(stage, many);
        if let Some(of) = transpose.filter(|of| of.outermost >= first) {
            return Way::Transpose(Box::new(of));
        }
        if let Some(of) = self.interleave_of(stage, &many[first..]) {
            return Way::Interleave(Box::new(of));
        }
        let columns = self.analysis.columns_of(stage, many);
        let is_function =
            |columns: &BlockColumns<'n>| matches!(columns.block, BlockLoop::Function(_));
        if !columns.as_ref().is_some_and(is_function)
            && let Some(collected) = self.analysis.collected_loop(stage, many, first)
        {
            return Way::Collected(Some(Box::new(collected)));
        }
        if let Some(columns) = columns {
            return Way::Columns(Box::new(columns));
        }
        if let Some(kernel_loop) = self.analysis.kernel_loop_of(stage) {
            return Way::Vectors(Box::new(kernel_loop));
        }
        if let Some(rows) = self.rows_of(stage, many).filter(|r| r.outermost >= first) {
            return Way::Scan(rows);
        }
        self.way_of_updates(stage, many)
    }

    /// How a stage runs in a nest that is cut along an inner dim. A chunk then has some points of every row, so a way that runs several
    /// loops at once is not among them.
    fn way_of_columns(&mut self, stage: &'n Stage, many: &[Axis]) -> Way<'n> {
        match self.analysis.kernel_loop_of(stage) {
            Some(kernel_loop) => Way::Vectors(Box::new(kernel_loop)),
            None => self.way_of_updates(stage, many),
        }
    }

    fn way_of_updates(&self, stage: &'n Stage, many: &[Axis]) -> Way<'n> {
        let checks = match many.last() {
            Some(axis) if self.analysis.has_vectors && usual_points(axis.extent) >= BLOCK => {
                self.analysis.checks(stage, axis.id)
            }
            _ => Vec::new(),
        };
        match checks.is_empty() {
            true => Way::Points,
            false => Way::Update(checks),
        }
    }

    /// The note in the heading of a stage.
    fn note(&self, stage: &'n Stage, way: &Way<'n>, many: &[Axis]) -> String {
        match way {
            Way::Copy(copy) => {
                let bytes = self.bytes_of(*copy, stage);
                let why = self
                    .analysis
                    .why_copied(stage)
                    .map(|why| format!(", {why}"));
                format!("copies of {bytes} bytes{}", why.unwrap_or_default())
            }
            Way::Interleave(of) => of.note(),
            Way::Transpose(of) => of.note(),
            Way::Update(checks) => format!("unrolled ×{BLOCK}, {}", how_all_checked(checks)),
            Way::Scan(rows) if rows.count > 1 => format!("{} rows side by side", rows.count),
            Way::Points | Way::Scan(_) => match self.analysis.why_points(stage, many) {
                Some(why) => format!("point by point: {why}"),
                None => String::new(),
            },
            Way::Collected(Some(collected)) => {
                let (lane, rows) = (collected.lane.1, collected.rows);
                let rows = rows.map_or(String::new(), |(_, count)| format!("{count} × "));
                format!("collected in blocks of {rows}{lane}")
            }
            Way::Vectors(kernel_loop) => kernel_loop.how.clone(),
            Way::Columns(columns) => {
                let lane = many.last().map(|axis| self.analysis.checks(stage, axis.id));
                let checks = how_all_checked(&lane.unwrap_or_default());
                format!("{checks}, {}", columns.columns)
            }
            Way::VectorLoop(Some(ready)) => {
                let rows = ready
                    .rows
                    .map(|(_, each)| format!("{each} rows side by side"));
                let least = ready.least;
                let least = least.map(|(_, points)| format!("from {points} points on"));
                let how = Some(ready.how.clone()).filter(|how| !how.is_empty());
                let notes: Vec<String> = rows.into_iter().chain(least).chain(how).collect();
                notes.join(", ")
            }
            Way::VectorLoop(None) | Way::Collected(None) => String::new(),
        }
    }

    /// `target[at] mode= value` at one point, or nothing if an index that reads zero is out of range.
    pub(super) fn assign(&mut self, stage: &'n Stage) -> Result {
        let linear = self.analysis.linear(stage.target, &stage.at);
        self.compute(linear.leaves())?;
        let after = self.unless_skipped(&stage.at);
        self.compute([&stage.value])?;
        let mut value = self.get(&stage.value);
        let place = self.place(stage.target, &linear);
        let ty = self.analysis.nest.buf(stage.target).ty;
        if let Mode::Combine(op) = stage.mode {
            let old = self.load(stage.target, ty, &place);
            value = self.binary(op, ty, old, value, stage.value.as_const())?;
        }
        self.store(stage.target, ty, &place, value);
        self.end_unless_skipped(after);
        Ok(())
    }

    /// Opens a block for what is done only if all indices of `at`, which have been computed, are in range;
    /// none if that is always so.
    pub(super) fn unless_skipped(&mut self, at: &[Scalar]) -> Option<Block> {
        let inside = self.all_inside(at)?;
        let (store, after) = (self.builder.create_block(), self.builder.create_block());
        self.builder.ins().brif(inside, store, &[], after, &[]);
        self.builder.switch_to_block(store);
        self.open_scope();
        Some(after)
    }

    /// Closes that block.
    pub(super) fn end_unless_skipped(&mut self, after: Option<Block>) {
        if let Some(after) = after {
            self.close_scope();
            self.builder.ins().jump(after, &[]);
            self.builder.switch_to_block(after);
        }
    }
}

/// How the points of a stage are done.
enum Way<'n> {
    /// One by one.
    Points,
    /// Several at once, inside the kernel.
    Vectors(Box<KernelLoop<'n>>),
    /// Several at once, in blocks of columns.
    Columns(Box<BlockColumns<'n>>),
    /// One by one, with the indices of several checked at once.
    Update(Vec<CheckedIndex<'n>>),
    /// One by one, each from the one before.
    Scan(ScanRows<'n>),
    /// As copies of neighbours.
    Copy(CopyStage<'n>),
    /// Elements of several planes in turn, some points of all planes at once.
    Interleave(Box<Interleave<'n>>),
    /// By squares in registers.
    Transpose(Box<Transpose<'n>>),
    /// By a vector loop, until it is called.
    VectorLoop(Option<VectorLoop<'n>>),
    /// By a vector loop over blocks for which loads are collected, until it is called.
    Collected(Option<Box<Collected<'n>>>),
}

impl Way<'_> {
    fn runs(&self) -> Runs {
        match self {
            Way::VectorLoop(Some(ready)) => ready.runs(),
            Way::Collected(Some(collected)) => collected.ready.runs(),
            Way::Vectors(kernel_loop) => kernel_loop.runs(),
            Way::Columns(columns) => columns.runs(),
            Way::Interleave(of) => of.runs(),
            Way::Transpose(of) => of.runs(),
            _ => Runs::SCALAR,
        }
    }
}
