//! From a stage, or the inner loops of one, to a program.

use super::Ready;
use super::access::PointerKey;
use super::jam::Jam;
use super::lanes::instruction;
use super::opcodes;
use super::prefetch::Run;
use crate::emit::address::Linear;
use crate::emit::vector::operands_first;
use crate::emit::{Emitter, register};
use crate::strip::program::{Class, Form, Id, Instruction, Operand, Program, Source, Step, Turns};
use crate::strip::{Target, assemble};
use rustc_hash::FxHashMap;
use vinelift_nest::{Axis, AxisId, BufferId, Kind, Scalar, Stage};
use vinelift_tensor::ElementType::{self, Boolean};

/// The values of a scalar at consecutive points. Parts of one register each; one part alone if all
/// are the same.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    pub(super) parts: Vec<Operand>,
    /// Bytes of a lane; of a mask those of its lanes in AVX2, 0 in AVX-512.
    pub(super) width: u8,
}

impl Lanes {
    pub(super) fn new(parts: Vec<Operand>, width: u8) -> Lanes {
        Lanes { parts, width }
    }

    pub(super) fn mask(parts: Vec<Operand>, width: u8) -> Lanes {
        Lanes { parts, width }
    }

    pub(super) fn part(&self, part: usize) -> Operand {
        self.parts[part.min(self.parts.len() - 1)]
    }

    pub(super) fn is_spread(&self) -> bool {
        matches!(self.parts[..], [Operand::Spread(_)])
    }
}

/// What the kernel hands to a strip, one word each.
pub(super) enum Argument<'n> {
    /// Where the elements begin.
    Place {
        buffer: BufferId,
        linear: Linear<'n>,
        /// How the points of the axis that is cut move on.
        pace: Pace,
    },
    /// How many points of the axis that is cut there are to do, less so many.
    Points { less: i64 },
    /// A scalar that does not change; of a boolean, all bits of it.
    Scalar(&'n Scalar),
    /// A constant.
    Bits(u64),
    /// Where the kernel puts what it collects, by number.
    Collected(usize),
    /// All bits, if those of these indices that read zero are in range; else none.
    Inside(&'n [Scalar]),
}

/// That each so many points of an axis move a place on by so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pace {
    pub(super) bytes: i64,
    pub(super) points: i64,
}

impl Pace {
    pub(super) const STILL: Pace = Pace {
        bytes: 0,
        points: 1,
    };
}

/// A loop, or the code around all loops.
pub(super) struct Block {
    pub(super) axis: Option<AxisId>,
    steps: Vec<Step>,
    pub(super) moves: Vec<(u32, i32)>,
    pub(super) turns: Option<Turns>,
    /// Points of the axis.
    pub(super) length: usize,
}

pub(super) struct Builder<'b, 'n, 'f> {
    pub(super) emitter: &'b Emitter<'n, 'f>,
    pub(super) target: Target,
    pub(super) program: Program,
    pub(super) arguments: Vec<Argument<'n>>,
    pub(super) stage: &'n Stage,
    /// Elements in one register.
    pub(super) lanes: usize,
    /// Registers for what depends on the axis that runs over lanes.
    pub(super) parts: usize,
    /// That axis, inside its loop.
    pub(super) lane: Option<AxisId>,
    /// The points of that axis, if it has fewer than a register has lanes: others are left out.
    pub(super) few: Option<usize>,
    /// Masks of so many lanes from the first on.
    pub(super) first: FxHashMap<usize, Id>,
    pub(super) blocks: Vec<Block>,
    /// Which of them instructions go to.
    pub(super) at: usize,
    /// That several rows are done side by side.
    pub(super) jam: Option<Jam<'n>>,
    /// The axis that is cut into parts.
    pub(super) cut: Option<AxisId>,
    /// Axes of which it does a block: from where they stand in the kernel on.
    pub(super) blocked: Vec<AxisId>,
    /// What is read and written side by side in such a block.
    pub(super) runs: Vec<Run>,
    /// Loads that the kernel has collected.
    pub(super) collected: Vec<&'n Scalar>,
    /// Axes that have one value for now.
    pub(super) fixed: FxHashMap<AxisId, i64>,
    known: FxHashMap<usize, (usize, Lanes)>,
    pub(super) order: Vec<usize>,
    /// What is evaluated whatever the guards say.
    pub(super) certain: rustc_hash::FxHashSet<usize>,
    pub(super) pointers: FxHashMap<PointerKey, u32>,
    scalars: FxHashMap<usize, u32>,
    /// Whether an index may be out of range.
    pub(super) may_fault: bool,
    /// What a dump says of how elements are looked up, if any are.
    pub(super) how: String,
}

/// More than this is not worth a strip's registers.
const MOST_NODES: usize = 2000;

impl<'b, 'n, 'f> Builder<'b, 'n, 'f> {
    /// For `lanes` elements at a time, `parts` registers of them.
    pub(super) fn new(
        emitter: &'b Emitter<'n, 'f>,
        target: Target,
        stage: &'n Stage,
        (lanes, parts): (usize, usize),
        certain: rustc_hash::FxHashSet<usize>,
    ) -> Builder<'b, 'n, 'f> {
        Builder {
            emitter,
            target,
            program: Program::default(),
            arguments: Vec::new(),
            stage,
            lanes,
            parts,
            lane: None,
            few: None,
            first: FxHashMap::default(),
            blocks: vec![Block {
                axis: None,
                steps: Vec::new(),
                moves: Vec::new(),
                turns: None,
                length: 1,
            }],
            at: 0,
            jam: None,
            cut: None,
            blocked: Vec::new(),
            runs: Vec::new(),
            collected: Vec::new(),
            fixed: FxHashMap::default(),
            known: FxHashMap::default(),
            order: Vec::new(),
            certain,
            pointers: FxHashMap::default(),
            scalars: FxHashMap::default(),
            may_fault: false,
            how: String::new(),
        }
    }

    /// The strip of what has been built, on registers of so many bytes, inside so many loops of the kernel; `None`
    /// if there are too few registers.
    pub(super) fn ready(self, outer: usize, bytes: usize) -> Option<Ready<'n>> {
        Some(Ready {
            code: assemble(&self.program, self.target)?,
            arguments: self.arguments,
            may_fault: self.may_fault,
            how: self.how,
            outer,
            lanes: self.lanes * self.parts,
            bits: bytes * 8,
        })
    }

    /// Builds the loops over `outer`, and over `lane` if the target is written along it. Of the axis `cut`
    /// only a part may have to be done.
    pub(super) fn stage(
        &mut self,
        outer: &[Axis],
        lane: Option<Axis>,
        cut: Option<AxisId>,
    ) -> Option<()> {
        self.cut = cut;
        for axis in outer {
            match axis.extent {
                1 => drop(self.fixed.insert(axis.id, 0)),
                _ => self.open(*axis)?,
            }
        }
        if let Some(lane) = lane {
            self.open_lanes(lane)?;
        }
        self.finish()
    }

    /// The same with several points of the innermost axis of `outer` at once, as the jam says.
    pub(super) fn stage_in_rows(
        &mut self,
        outer: &[Axis],
        lane: Axis,
        cut: Option<AxisId>,
    ) -> Option<()> {
        self.cut = cut;
        let (_, outer) = outer.split_last()?;
        for axis in outer {
            self.open(*axis)?;
        }
        self.turns_of_rows(lane)?;
        self.close_all()
    }

    pub(super) fn open_lanes(&mut self, lane: Axis) -> Option<()> {
        let step = i32::try_from(self.lanes * self.parts).ok()?;
        let extent = i32::try_from(lane.extent).ok()?;
        let turns = match self.cut == Some(lane.id) {
            true => Turns::LanesUntil {
                argument: self.points(step.into()),
                extent,
                step,
            },
            false => Turns::Lanes { extent, step },
        };
        self.push(lane, turns);
        self.lane = Some(lane.id);
        Some(())
    }

    /// The value and its store, inside the loops that are open.
    fn finish(&mut self) -> Option<()> {
        let value = self.value(&self.stage.value)?;
        self.store(&value)?;
        if let Some(lane) = self.blocks.last().filter(|_| !self.runs.is_empty()) {
            self.fetch_ahead(lane.length)?;
        }
        self.close_all()
    }

    fn close_all(&mut self) -> Option<()> {
        while self.blocks.len() > 1 {
            self.close();
        }
        self.program.steps = std::mem::take(&mut self.blocks[0].steps);
        Some(())
    }

    pub(super) fn open(&mut self, axis: Axis) -> Option<()> {
        let turns = match self.cut == Some(axis.id) {
            true => Turns::Argument(self.points(0)),
            false => Turns::Count(i32::try_from(axis.extent).ok()?),
        };
        self.push(axis, turns);
        Some(())
    }

    fn points(&mut self, less: i64) -> u32 {
        self.arguments.push(Argument::Points { less });
        self.arguments.len() as u32 - 1
    }

    pub(super) fn push(&mut self, axis: Axis, turns: Turns) {
        self.blocks.push(Block {
            axis: Some(axis.id),
            steps: Vec::new(),
            moves: Vec::new(),
            turns: Some(turns),
            length: axis.extent,
        });
        self.at = self.blocks.len() - 1;
    }

    /// Puts the innermost loop behind what comes before it, and forgets what was computed in it.
    pub(super) fn close(&mut self) {
        let Some(block) = self.blocks.pop() else {
            return;
        };
        let depth = self.blocks.len();
        let known = &mut self.known;
        self.order.retain(|address| {
            let inside = known.get(address).is_some_and(|(at, _)| *at >= depth);
            if inside {
                known.remove(address);
            }
            !inside
        });
        self.at = depth - 1;
        let steps = &mut self.blocks[depth - 1].steps;
        match block.turns {
            Some(turns) => steps.push(Step::Loop {
                turns,
                moves: block.moves,
                body: block.steps,
            }),
            None => steps.extend(block.steps),
        }
    }

    /// Which loop instructions go to from now on; which they went to is returned.
    pub(super) fn go_to(&mut self, block: usize) -> usize {
        std::mem::replace(&mut self.at, block)
    }

    pub(super) fn add(&mut self, i: Instruction) {
        self.blocks[self.at].steps.push(Step::Do(i));
    }

    /// Bytes of the register that holds lanes of so many.
    pub(super) fn bytes(&self, width: u8) -> u8 {
        (self.lanes * usize::from(width)).max(16) as u8
    }

    pub(super) fn width(&self, ty: ElementType) -> u8 {
        register(ty).bytes() as u8
    }

    /// The innermost loop that a scalar depends on.
    fn depth(&self, x: &Scalar) -> usize {
        let free = self.emitter.facts.free(x);
        let inside = |block: &Block| block.axis.is_some_and(|axis| free.contains(&axis));
        self.blocks.iter().rposition(inside).unwrap_or(0)
    }

    /// Whether a scalar is the same throughout the strip, and can be computed before it.
    pub(super) fn is_invariant(&self, x: &Scalar) -> bool {
        let free = self.emitter.facts.free(x);
        self.depth(x) == 0
            && !free.iter().any(|axis| self.fixed.contains_key(axis))
            && !self.emitter.facts.converts_halves(x)
    }

    /// The lanes of a scalar.
    pub(super) fn value(&mut self, root: &'n Scalar) -> Option<Lanes> {
        for x in self.pending(root)? {
            let depth = self.depth(x);
            let before = std::mem::replace(&mut self.at, depth);
            let lanes = self.compute(x)?;
            self.at = before;
            self.know(x, depth, lanes);
        }
        self.lanes_of(root)
    }

    pub(super) fn know(&mut self, x: &Scalar, depth: usize, lanes: Lanes) {
        self.known.insert(x.address(), (depth, lanes));
        self.order.push(x.address());
    }

    /// Forgets what is known since `mark` and depends on one of the axes, or on the row.
    pub(super) fn forget(&mut self, mark: usize, axes: &[Axis]) {
        let row = self.jam.as_ref().map(|jam| jam.axis);
        let axes = axes.iter().map(|axis| axis.id).chain(row);
        for address in self.order.split_off(mark) {
            let varies = |axis| self.emitter.facts.depends(address, axis);
            match axes.clone().any(varies) {
                true => drop(self.known.remove(&address)),
                false => self.order.push(address),
            }
        }
    }

    /// What is not known yet under `root`, operands first.
    fn pending(&self, root: &'n Scalar) -> Option<Vec<&'n Scalar>> {
        let order = operands_first(root, |x| {
            self.known.contains_key(&x.address()) || self.is_invariant(x)
        });
        (order.len() <= MOST_NODES).then_some(order)
    }

    /// The lanes of a scalar that has been computed, or is the same throughout.
    pub(super) fn lanes_of(&mut self, x: &'n Scalar) -> Option<Lanes> {
        if let Some((_, lanes)) = self.known.get(&x.address()) {
            return Some(lanes.clone());
        }
        if !self.is_invariant(x) || x.ty().is_packed() {
            return None;
        }
        let width = self.width(x.ty());
        if let (Some(bits), true) = (x.as_const(), x.ty() != Boolean) {
            return Some(self.constant(bits, width));
        }
        // Computed ahead of its guard.
        if !self.certain.contains(&x.address()) && self.emitter.facts.has_effect(x) {
            return None;
        }
        let argument = match self.scalars.get(&x.address()) {
            Some(known) => *known,
            None => {
                self.arguments.push(Argument::Scalar(x));
                let argument = self.arguments.len() as u32 - 1;
                self.scalars.insert(x.address(), argument);
                argument
            }
        };
        if x.ty() != Boolean {
            let spread = self.program.spread(Source::Argument(argument), width);
            return Some(Lanes::new(vec![spread], width));
        }
        if self.target == Target::Avx2 {
            return None;
        }
        let mut mask = instruction(Form::Argument(argument), opcodes::NOT_MASK, 16);
        let before = std::mem::replace(&mut self.at, 0);
        mask.to = Some(self.program.value(Class::Mask));
        self.add(mask);
        self.at = before;
        let lanes = Lanes::mask(mask.to.map(Operand::Value).into_iter().collect(), 0);
        self.known.insert(x.address(), (0, lanes.clone()));
        Some(lanes)
    }

    fn compute(&mut self, x: &'n Scalar) -> Option<Lanes> {
        if x.ty().is_packed() {
            return None;
        }
        if let Some([sum, a, b]) = x.as_sum().filter(|_| opcodes::is_float(x.ty())) {
            let (sum, a, b) = (self.lanes_of(sum)?, self.lanes_of(a)?, self.lanes_of(b)?);
            return Some(self.multiply_add(&a, &b, &sum));
        }
        match x.kind() {
            Kind::Load { buffer, at } => self.load(x, *buffer, at),
            Kind::Unary(op, a) => {
                let a = self.lanes_of(a)?;
                self.unary(*op, x.ty(), &a)
            }
            Kind::Binary(op, a, b) => {
                let (ty, bits) = (a.ty(), b.as_const());
                let (a, b) = (self.lanes_of(a)?, self.lanes_of(b)?);
                self.binary(*op, ty, &a, &b, bits)
            }
            Kind::Select(c, yes, no) => {
                let (c, yes) = (self.lanes_of(c)?, self.lanes_of(yes)?);
                let no = self.lanes_of(no)?;
                self.select(&c, x.ty(), &yes, &no)
            }
            Kind::Cast(a) => {
                let from = a.ty();
                let a = self.lanes_of(a)?;
                self.cast(&a, from, x.ty())
            }
            Kind::Bitcast(a) => {
                let from = a.ty();
                let a = self.lanes_of(a)?;
                self.bitcast(&a, from, x.ty())
            }
            Kind::Reduce { .. } => self.fold(x),
            Kind::Const(_) | Kind::Axis(_) | Kind::Wrap(_) => None,
        }
    }
}
