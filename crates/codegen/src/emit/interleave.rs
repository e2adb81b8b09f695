//! Interleaving: `to[n·l + k] = planes[k][l]` for `k < n`, with elements of all planes in registers.

use super::emitter::{Emitter, Result};
use crate::analysis::linear::Linear;
use crate::analysis::runs::Runs;
use crate::analysis::work::usual_points;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use vinelift_nest::{Axis, AxisId, Binary, BufferId, Kind, Mode, Scalar, Stage};
use vinelift_tensor::ElementType;

/// A stage whose two inner loops interleave planes.
pub(super) struct Interleave<'n> {
    buffer: BufferId,
    at: &'n [Scalar],
    /// Along it lie the points of a plane.
    lane: Axis,
    planes: Axis,
    /// The plane of each element of a group, one of each.
    order: Vec<usize>,
    /// The bytes of an element.
    width: usize,
}

/// The bytes of a plane that are done at once: a register.
const REGISTER: usize = 16;

/// The bytes of the largest elements of which a register holds enough.
const MOST_WIDTH: usize = 4;

/// A register of the result takes a step for each plane.
const MOST_PLANES: usize = 8;

impl Interleave<'_> {
    pub(super) fn runs(&self) -> Runs {
        Runs {
            lanes: self.points(),
            bits: 8 * REGISTER,
        }
    }

    /// The note in the heading of a stage.
    pub(super) fn note(&self) -> String {
        let (points, planes) = (self.points(), self.order.len());
        format!("{points} points of {planes} planes at once")
    }

    /// The points of a plane that are done at once.
    fn points(&self) -> usize {
        REGISTER / self.width
    }
}

impl<'n> Emitter<'n, '_> {
    /// How a stage takes elements in turn, if that is what it does. `many` are its axes of more than one point.
    pub(super) fn interleave_of(&self, stage: &'n Stage, many: &[Axis]) -> Option<Interleave<'n>> {
        let (buffer, at) = self.plain_copy(stage)?;
        let &[.., outer, inner] = many else {
            return None;
        };
        let width = stage.value.ty().bits() / 8;
        if width > MOST_WIDTH {
            return None;
        }
        let from = self.analysis.linear(buffer, at);
        let to = self.analysis.linear(stage.target, &stage.at);
        [[outer, inner], [inner, outer]]
            .into_iter()
            .find_map(|[planes, lane]| {
                let count = planes.extent.number().filter(|n| *n <= MOST_PLANES)?;
                let chunks = self.analysis.chunks;
                let cut = chunks.axis(stage).filter(|_| chunks.extent > 1);
                let moves = [&from, &to].map(|linear| self.analysis.moves_with(lane.id, linear));
                let fits = moves == [Some(1.into()), Some((count as i64).into())]
                    && usual_points(lane.extent) >= REGISTER / width
                    && cut.is_none_or(|cut| cut.id != planes.id);
                Some(Interleave {
                    buffer,
                    at,
                    lane,
                    planes,
                    order: fits.then(|| self.order(&to, planes.id, count)).flatten()?,
                    width,
                })
            })
    }

    /// The buffer and the index that a stage copies from, if it changes no element, no index can fault, and elements have whole bytes.
    pub(super) fn plain_copy(&self, stage: &'n Stage) -> Option<(BufferId, &'n [Scalar])> {
        let Kind::Load { buffer, at } = stage.value.kind() else {
            return None;
        };
        // Booleans are made 0 or 1 on their way.
        let ty = stage.value.ty();
        let is_plain = !ty.is_packed() && ty != ElementType::Boolean;
        let is_copy = stage.mode == Mode::Set && is_plain && *buffer != stage.target;
        let mut indices = at.iter().chain(&stage.at);
        let is_free = !indices.any(|index| index.may_fault() || index.reads_zero());
        (self.analysis.has_vectors && is_copy && is_free).then_some((*buffer, &**at))
    }

    /// The plane of each of `count` neighbours, if each has one of its own.
    fn order(&self, to: &Linear<'n>, planes: AxisId, count: usize) -> Option<Vec<usize>> {
        let offset = |plane: i64| {
            to.terms().try_fold(0i64, |sum, (leaf, factor)| {
                if !self.analysis.facts.free(leaf).contains(&planes) {
                    return Some(sum);
                }
                let leaf = at_plane(leaf, planes, plane)?;
                sum.checked_add(leaf.checked_mul(factor.number()?)?)
            })
        };
        let offsets = (0..count as i64)
            .map(offset)
            .collect::<Option<Vec<i64>>>()?;
        let least = *offsets.iter().min()?;
        let mut order = vec![None; count];
        for (plane, offset) in offsets.iter().enumerate() {
            *order.get_mut(usize::try_from(offset - least).ok()?)? = Some(plane);
        }
        order.into_iter().collect()
    }

    /// The loops over the points and the planes, `inner`: some points of all planes at once, or point by point where there are too few.
    pub(super) fn interleave(
        &mut self,
        stage: &'n Stage,
        of: &Interleave<'n>,
        inner: &[Axis],
    ) -> Result {
        self.chunk_at_least(stage, of.lane, of.points());
        let turns = self.turns(stage, of.lane);
        let are_enough = of.lane.extent >= of.points();
        let few = (!are_enough).then(|| self.fewer_than(turns, of.points()));
        self.unless_few(few, (stage, inner), |this| this.groups(stage, of))
    }

    fn groups(&mut self, stage: &'n Stage, of: &Interleave<'n>) -> Result {
        let points = of.points();
        let turns = self.turns(stage, of.lane);
        self.open_loop(of.lane, turns, points as i64, &[]);
        self.stay_before(of.lane, turns, points);
        let flags = |this: &Self, buffer: BufferId| this.flags[buffer.0 as usize];
        let mut planes = Vec::with_capacity(of.order.len());
        for plane in 0..of.order.len() {
            let (from, offset) = self.place_of_plane(of.planes, plane, of.buffer, of.at)?;
            let flags = flags(self, of.buffer);
            planes.push(self.builder.ins().load(types::I8X16, flags, from, offset));
        }
        let (to, offset) = self.place_of_plane(of.planes, of.order[0], stage.target, &stage.at)?;
        let flags: MemFlagsData = flags(self, stage.target);
        for register in 0..of.order.len() {
            let first = register * REGISTER;
            if let Some(bytes) = self.taken_in_turn(&planes, of, first) {
                let offset = offset + first as i32;
                self.builder.ins().store(flags, bytes, to, offset);
            }
        }
        self.close_loop(&[]);
        Ok(())
    }

    /// Where an element lies whose plane has this number.
    fn place_of_plane(
        &mut self,
        planes: Axis,
        plane: usize,
        buffer: BufferId,
        at: &'n [Scalar],
    ) -> Result<(Value, i32)> {
        self.open_scope();
        let number = self.index(plane as i64);
        self.bind_to(planes, number);
        let place = self.first_element(buffer, at)?;
        self.axes.remove(&planes.id);
        self.close_scope();
        Ok(place)
    }

    /// The bytes from number `first` on of the elements that the registers of all planes have in turn.
    fn taken_in_turn(
        &mut self,
        planes: &[Value],
        of: &Interleave<'n>,
        first: usize,
    ) -> Option<Value> {
        let mut taken: Option<Value> = None;
        for (plane, register) in planes.iter().enumerate() {
            // Other bytes are zero.
            let lane = |byte: usize| {
                let (element, byte) = (byte / of.width, byte % of.width);
                let (point, turn) = (element / of.order.len(), element % of.order.len());
                match of.order[turn] == plane {
                    true => (point * of.width + byte) as u8,
                    false => u8::MAX,
                }
            };
            let lanes: Vec<u8> = (first..first + REGISTER).map(lane).collect();
            if lanes.iter().all(|lane| *lane == u8::MAX) {
                continue;
            }
            let lanes = self.builder.func.dfg.constants.insert(lanes.into());
            let lanes = self.builder.ins().vconst(types::I8X16, lanes);
            let bytes = match self.is_x86 {
                true => self.builder.ins().x86_pshufb(*register, lanes),
                false => self.builder.ins().swizzle(*register, lanes),
            };
            taken = Some(match taken {
                Some(others) => self.builder.ins().bor(others, bytes),
                None => bytes,
            });
        }
        taken
    }
}

/// The value of an index that depends on one axis alone, where it is at `point`.
fn at_plane(index: &Scalar, axis: AxisId, point: i64) -> Option<i64> {
    match index.kind() {
        Kind::Const(_) => index.as_index(),
        Kind::Axis(id) => (*id == axis).then_some(point),
        Kind::Binary(op, a, b) => {
            let (a, b) = (at_plane(a, axis, point)?, at_plane(b, axis, point)?);
            match op {
                Binary::Add => a.checked_add(b),
                Binary::Sub => a.checked_sub(b),
                Binary::Mul => a.checked_mul(b),
                Binary::Div => a.checked_div(b),
                Binary::Rem => a.checked_rem(b),
                _ => None,
            }
        }
        _ => None,
    }
}
