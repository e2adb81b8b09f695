//! Constant operands of contractions, as contraction kernels take them.

use crate::compile::coding_source::{CodingSource, PointsSource};
use crate::compile::packed_operands::PlanSlots;
use vinelift_kernels::{Code, Coding, Narrow};
use vinelift_nest::{Contraction, Factor, Points, Stride, Strided, SubNest};
use vinelift_tensor::{ElementType, Tensor};

/// Finds the constants of a step.
pub(crate) struct Constants<'a> {
    pub(crate) step: &'a SubNest,
    pub(crate) slots: &'a PlanSlots,
}

impl<'a> Constants<'a> {
    /// The bytes of a factor from its first element on, and how they are coded; `Some(None)` if they are not constant. `None` if there
    /// is no kernel for them: they are coded and not constant, and more than [narrow](Self::narrow).
    pub(crate) fn factor(
        &self,
        contraction: &Contraction,
        factor: &Factor,
        moves: usize,
        is_own: fn(&Stride) -> bool,
    ) -> Option<Option<(&'a [u8], Option<CodingSource>)>> {
        let bytes = self.bytes(&factor.tensor).filter(|_| moves == 0);
        let Some(coding) = &factor.coding else {
            return Some(bytes.map(|bytes| (bytes, None)));
        };
        if bytes.is_none() && self.narrow(factor).is_some() {
            return Some(None);
        }
        // Axes of the other factor alone do not count: any number of rows reads the same codes.
        let axes = contraction.axes.iter().enumerate();
        let axes = axes.filter(|(at, axis)| *at >= contraction.outer || is_own(axis));
        let axes: Vec<(usize, usize)> = axes.map(|(at, axis)| (at, axis.extent)).collect();
        let points = |points: &Option<Points>| match points {
            Some(points) => self.points(points, &axes).map(Some),
            None => Some(None),
        };
        let source = CodingSource {
            code: code(self.tensor(&factor.tensor)?.element_type())?,
            group: contraction.group(coding),
            extents: axes.iter().map(|(_, extent)| *extent).collect(),
            zero: points(&coding.zero)?,
            scale: points(&coding.scale)?,
        };
        Some(Some((bytes?, Some(source))))
    }

    /// How the elements of a factor that is not constant are stored, if as numbers of 16 bits that they equal.
    pub(crate) fn narrow(&self, factor: &Factor) -> Option<Narrow> {
        let coding = factor.coding.as_ref()?;
        let is_number = coding.zero.is_none() && coding.scale.is_none();
        match self.step.nest.buf(factor.tensor.buffer).ty {
            _ if !is_number || self.tensor(&factor.tensor).is_some() => None,
            ElementType::F16 => Some(Narrow::F16),
            ElementType::BF16 => Some(Narrow::BF16),
            _ => None,
        }
    }

    /// The zero points and scales of a factor whose coding comes from `source`; `is_own` says which axes are those of the factor alone.
    pub(crate) fn coding(
        &self,
        contraction: &Contraction,
        factor: &Factor,
        source: &CodingSource,
        is_own: fn(&Stride) -> bool,
    ) -> Option<Coding> {
        let points = |points: Option<&Points>| match points {
            Some(points) => self
                .values(points, contraction, source.group, is_own)
                .map(Some),
            None => Some(None),
        };
        let coding = factor.coding.as_ref();
        Some(Coding {
            code: source.code,
            group: source.group,
            zero: points(coding.and_then(|c| c.zero.as_ref()))?,
            scale: points(coding.and_then(|c| c.scale.as_ref()))?,
        })
    }

    /// Where zero points or scales over these axes come from; `None` if that is no constant.
    fn points(&self, points: &Points, axes: &[(usize, usize)]) -> Option<PointsSource> {
        Some(match points {
            Points::Value(bits) => PointsSource::Value(*bits),
            Points::Tensor { from, steps } => PointsSource::Tensor {
                constant: self.tensor(from)?.bytes().as_ptr() as usize,
                base: from.base,
                steps: axes.iter().map(|(at, _)| steps[*at]).collect(),
            },
        })
    }

    /// Where the bytes of the constant that a factor reads begin; 0 if it is none.
    pub(crate) fn address(&self, factor: &Factor) -> usize {
        let tensor = self.tensor(&factor.tensor);
        tensor.map_or(0, |t| t.bytes().as_ptr() as usize)
    }

    fn tensor(&self, from: &Strided) -> Option<&'a Tensor> {
        self.slots
            .constant(self.step.buffers[from.buffer.0 as usize])
    }

    fn bytes(&self, from: &Strided) -> Option<&'a [u8]> {
        let tensor = self.tensor(from)?;
        let ty = tensor.element_type();
        // A part that starts in the middle of a byte has no bytes of its own.
        let is_whole = !ty.is_packed() || (from.base * ty.bits()).is_multiple_of(8);
        tensor
            .bytes()
            .get(ty.byte_len(from.base).filter(|_| is_whole)?..)
    }

    /// The values at all points of the axes of one factor in row-major order, for each `group` of points of the axes
    /// summed over.
    fn values(
        &self,
        points: &Points,
        contraction: &Contraction,
        group: usize,
        is_own: fn(&Stride) -> bool,
    ) -> Option<Vec<f32>> {
        let (domain, sums) = contraction.axes.split_at(contraction.outer);
        let all: usize = sums.iter().map(|axis| axis.extent).product();
        let own = domain.iter().enumerate().filter(|(_, axis)| is_own(axis));
        let (from, steps) = match points {
            Points::Value(bits) => {
                let count: usize = own.map(|(_, axis)| axis.extent).product();
                return Some(vec![f32::from_bits(*bits); count * (all / group.max(1))]);
            }
            Points::Tensor { from, steps } => (from, steps),
        };
        // The axes of the groups come first, which step together with the first point of each.
        let mut inside = group;
        let is_inside = |axis: &&Stride| {
            let is_inside = inside > 1 || axis.extent == 1;
            inside /= if is_inside { axis.extent } else { 1 };
            is_inside
        };
        let inner = sums.iter().rev().take_while(is_inside).count();
        let groups = sums[..sums.len() - inner].iter().enumerate();
        let groups = groups.map(|(at, axis)| (contraction.outer + at, axis));
        let places = groups
            .chain(own)
            .fold(vec![from.base], |places, (at, axis)| {
                let step = steps[at];
                let along = |place: usize| (0..axis.extent).map(move |n| place + n * step);
                places.into_iter().flat_map(along).collect()
            });
        // Of a type whose values an `f32` has.
        let values = self.tensor(from)?.to_f64_vec().ok()?;
        let value = |place: usize| Some(*values.get(place)? as f32);
        places.into_iter().map(value).collect()
    }
}

/// The contraction kernels' name for an element type.
fn code(ty: ElementType) -> Option<Code> {
    match ty {
        ElementType::I8 => Some(Code::I8),
        ElementType::U8 => Some(Code::U8),
        ElementType::F16 => Some(Code::F16),
        ElementType::BF16 => Some(Code::BF16),
        ElementType::I4 => Some(Code::I4),
        ElementType::U4 => Some(Code::U4),
        ElementType::NF4 => Some(Code::NF4),
        ElementType::F4E2M1 => Some(Code::F4E2M1),
        ElementType::F8E4M3 => Some(Code::F8E4M3),
        ElementType::F8E5M2 => Some(Code::F8E5M2),
        _ => None,
    }
}

/// Whether an axis is of the first factor alone, of those of the domain.
pub(crate) fn is_of_left(axis: &Stride) -> bool {
    axis.left > 0 && axis.right == 0
}

/// Whether an axis is of the second factor alone.
pub(crate) fn is_of_right(axis: &Stride) -> bool {
    axis.left == 0 && axis.right > 0
}
