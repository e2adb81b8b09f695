//! Sums of products of a factor on a grid with weights of 8 bits, or of two factors on grids.

use super::channels::{MOST_CHANNELS, channel};
use super::concatenation::Piece;
use super::grid::{Grid, OnGrid};
use super::{MOST_DEPTH, Pass, other_type, pays, reads_zero, varies};
use crate::analysis::CodedLoad;
use crate::build::{fma, integer, lowest, number, select, zero};
use crate::ir::{Axis, Binary, BufferId, Definition, Kind, Nest, Role, Scalar, Stage, free_axes};
use vinelift_tensor::ElementType::{self, F32, I8, I32, U8};
use vinelift_tensor::Extent;

/// A factor `(code - zero) · scale + poison`.
struct Bytes {
    /// A `u8` or an `i8`.
    code: Scalar,
    zero: i64,
    scale: Scale,
    /// 0, or NaN where the factor is; nothing if it never is.
    poison: Option<Scalar>,
    /// Whether some of it is 0 by a guard, so that a sum of it alone differs from point to point.
    is_guarded: bool,
}

impl Bytes {
    /// No `code - zero` is larger.
    fn largest(&self) -> i64 {
        let (low, high) = if self.code.ty() == I8 {
            (-128, 127)
        } else {
            (0, 255)
        };
        (low - self.zero).abs().max((high - self.zero).abs())
    }

    /// The code of 0.
    fn zero_code(&self) -> Option<Scalar> {
        let ty = self.code.ty();
        let codes = if ty == I8 { -128..=127 } else { 0..=255 };
        codes.contains(&self.zero).then(|| integer(self.zero, ty))
    }
}

enum Scale {
    Value(f64),
    Tensor(Scalar),
}

impl Pass<'_> {
    /// The scalar that replaces `sum`, one of values on grids.
    pub(super) fn of_grids(
        &mut self,
        nest: &mut Nest,
        stage: &Stage,
        sum: &Scalar,
    ) -> Option<Scalar> {
        let Kind::Reduce { axes, body, .. } = sum.kind() else {
            return None;
        };
        let (left, right) = body.as_term()?;
        if self.grids.is_empty() || sum.ty() != F32 || !pays(stage, axes, left, right) {
            return None;
        }
        let (left, right) = self.factors(nest, axes, left, right)?;
        let tensors = [&left.scale, &right.scale].into_iter();
        if tensors.filter_map(Scale::tensor).any(|x| varies(x, axes)) {
            return None;
        }
        // The sum of weights alone would be one for each result.
        let has_own_total = |x: &Bytes, other: &Bytes| x.is_guarded && other.zero != 0;
        if has_own_total(&left, &right) || has_own_total(&right, &left) {
            return None;
        }
        // Whether no sum overflows depends on the number.
        let count: usize = axes.iter().map(|axis| axis.extent.pin()).product();
        let count = i64::try_from(count).ok()?;
        let largest = left.largest().saturating_mul(right.largest());
        i32::try_from(largest.saturating_mul(count)).ok()?;
        Some(self.scaled_sum(nest, stage, (axes, count), left, right))
    }

    /// The sum over `axes`, which have `count` points, of the products of two factors: that of their codes, less what
    /// zero points add to it.
    fn scaled_sum(
        &mut self,
        nest: &mut Nest,
        stage: &Stage,
        (axes, count): (&[Axis], i64),
        left: Bytes,
        right: Bytes,
    ) -> Scalar {
        let name = nest.buf(stage.target).name.clone();
        let wide = |x: &Scalar| x.clone().cast(I32);
        let term = Scalar::binary(Binary::Term, wide(&left.code), wide(&right.code));
        let mut total = Scalar::reduce(Binary::Add, axes.to_vec(), zero(I32), term);
        for (factor, other, side) in [(&left, &right, "left"), (&right, &left, "right")] {
            // `Σ code · (other - zero)` is `Σ code · other` less `zero` times the sum of the codes.
            if other.zero != 0 {
                let name = format!("{name}.{side}.total");
                let (code, zero) = (wide(&factor.code), integer(other.zero, I32));
                total = total - self.fold(nest, stage, &name, axes, code, Some(zero));
            }
        }
        let both = left.zero * right.zero * count;
        if both != 0 {
            total = total + integer(both, I32);
        }
        let nans = [(left.poison, "left"), (right.poison, "right")].map(|(poison, side)| {
            let name = format!("{name}.{side}.nan");
            Some(self.nans_along(nest, stage, &name, axes, poison?))
        });
        let mut nans = nans.into_iter().flatten();
        let (total, scale) = (
            total.cast(F32),
            self.product(nest, &name, left.scale, right.scale),
        );
        // Rounded once, as a product, as it adds 0 or NaN.
        let first = nans.next().map(|nan| fma(&total, &scale, &nan));
        nans.fold(first.unwrap_or_else(|| total * scale), |value, nan| {
            value + nan
        })
    }

    /// The product of two scales. With the elements of a constant, it is a table.
    fn product(&self, nest: &mut Nest, name: &str, left: Scale, right: Scale) -> Scalar {
        match (left, right) {
            (Scale::Value(a), Scale::Value(b)) => number(a * b, F32),
            (Scale::Tensor(a), Scale::Tensor(b)) => a * b,
            (Scale::Tensor(x), Scale::Value(by)) | (Scale::Value(by), Scale::Tensor(x)) => {
                let table = self.table_of(nest, &format!("{name}.scales"), &x, by as f32);
                table.unwrap_or_else(|| x * number(by, F32))
            }
        }
    }

    /// The elements of a constant times a number.
    fn table_of(&self, nest: &mut Nest, name: &str, x: &Scalar, by: f32) -> Option<Scalar> {
        let Kind::Load { buffer, .. } = x.kind() else {
            return None;
        };
        let (index, bytes) = (channel(nest, x)?, (self.constant)(*buffer)?);
        let (numbers, _) = bytes.as_chunks::<4>();
        let products = numbers.iter().map(|x| f32::from_le_bytes(*x) * by);
        let products: Vec<u8> = products.flat_map(f32::to_le_bytes).collect();
        let fits = numbers.len() <= MOST_CHANNELS;
        let table = fits.then(|| nest.table(name, F32, numbers.len(), &products))?;
        Some(nest.load(table, vec![index]))
    }

    /// The factors of a product, at least one of them on a grid, with codes of one signed and one unsigned type.
    fn factors(
        &mut self,
        nest: &mut Nest,
        axes: &[Axis],
        left: &Scalar,
        right: &Scalar,
    ) -> Option<(Bytes, Bytes)> {
        let (left_number, right_number) = (self.numbers(nest, left), self.numbers(nest, right));
        match (left_number, right_number) {
            (Some(_), Some(_)) => None,
            (Some(left), None) => {
                let ty = other_type(left.code.ty());
                Some((left, self.codes_of(nest, axes, right, ty, 0)?))
            }
            (None, Some(right)) => {
                let ty = other_type(right.code.ty());
                Some((self.codes_of(nest, axes, left, ty, 0)?, right))
            }
            (None, None) => Some((
                self.codes_of(nest, axes, left, U8, 0)?,
                self.codes_of(nest, axes, right, I8, 0)?,
            )),
        }
    }

    /// A factor of numbers of 8 bits, a constant zero point, and a scale; under a guard too, outside of which it is 0.
    fn numbers(&self, nest: &mut Nest, x: &Scalar) -> Option<Bytes> {
        if let Kind::Select(condition, inner, outside) = x.kind() {
            let inner = self.numbers(nest, inner)?;
            let zero_code = inner.zero_code()?;
            // The scale is used where the guard does not hold, too.
            let free = free_axes(condition);
            let scale = inner.scale.tensor().map(free_axes).unwrap_or_default();
            let may_be_guarded = outside.as_const() == Some(0) && scale.is_disjoint(&free);
            return may_be_guarded.then(|| Bytes {
                code: select(condition.clone(), inner.code, zero_code),
                is_guarded: true,
                ..inner
            });
        }
        let x = self.definitions.expanded(nest, x, MOST_DEPTH);
        let coded = CodedLoad::of(&x)?;
        let zero = match coded.zero {
            Some(zero) => f64::from(f32::from_bits(zero.as_const()? as u32)),
            None => 0.0,
        };
        let is_zero = zero.fract() == 0.0 && zero.abs() <= 255.0;
        let is_byte = matches!(coded.numbers.ty(), U8 | I8);
        (is_zero && is_byte).then(|| Bytes {
            code: coded.numbers.clone(),
            zero: zero as i64,
            scale: match coded.scale {
                Some(scale) => Scale::Tensor(scale.clone()),
                None => Scale::Value(1.0),
            },
            poison: None,
            is_guarded: false,
        })
    }

    /// A factor on a grid, as codes of the given type, in a sum over `axes`.
    fn codes_of(
        &mut self,
        nest: &mut Nest,
        axes: &[Axis],
        x: &Scalar,
        ty: ElementType,
        depth: usize,
    ) -> Option<Bytes> {
        match x.kind() {
            // Padding.
            Kind::Select(condition, inner, outside) if outside.as_const() == Some(0) => {
                let inner = self.codes_of(nest, axes, inner, ty, depth)?;
                let zero_code = inner.zero_code()?;
                Some(Bytes {
                    code: select(condition.clone(), inner.code, zero_code),
                    poison: inner
                        .poison
                        .map(|poison| select(condition.clone(), poison, zero(F32))),
                    ..inner
                })
            }
            Kind::Load { buffer, at } => self.codes_of_load(nest, axes, (*buffer, at), ty, depth),
            _ => None,
        }
    }

    /// As [`Pass::codes_of`], of a load from a buffer on a grid, or from a move of such, with zeros around it or without.
    fn codes_of_load(
        &mut self,
        nest: &mut Nest,
        axes: &[Axis],
        (buffer, at): (BufferId, &[Scalar]),
        ty: ElementType,
        depth: usize,
    ) -> Option<Bytes> {
        let Some(stage) = self.definitions.get(&buffer).cloned() else {
            return self.codes_of_pieces(nest, axes, (buffer, at), ty);
        };
        let Some(values) = self.grids.get(&buffer).cloned() else {
            let is_move = match stage.value.kind() {
                Kind::Load { .. } => true,
                // With zeros around it, between its elements, or where a mask says so.
                Kind::Select(_, inner, outside) => {
                    outside.as_const() == Some(0) && matches!(inner.kind(), Kind::Load { .. })
                }
                _ => false,
            };
            if depth == MOST_DEPTH || !is_move {
                return None;
            }
            let moved = Definition::of(&stage).instantiate(nest, at);
            return self.codes_of(nest, axes, &moved, ty, depth + 1);
        };
        if reads_zero(at) {
            return None;
        }
        let code = self.grid_codes(nest, &stage, &values, ty)?;
        let extents: Vec<Extent> = stage.domain.iter().map(|axis| axis.extent).collect();
        let dims = summed_dims(axes, at, &extents);
        let poison = self.nan_sum(nest, (&stage, &values), &dims, at)?;
        Some(values.grid().bytes(nest.load(code, at.to_vec()), poison))
    }

    /// As [`Pass::codes_of_load`], of a concatenation of values on one grid.
    fn codes_of_pieces(
        &mut self,
        nest: &mut Nest,
        axes: &[Axis],
        (buffer, at): (BufferId, &[Scalar]),
        ty: ElementType,
    ) -> Option<Bytes> {
        let whole = self.concatenations.get(&buffer)?.clone();
        let of = |piece: &Piece| {
            let stage = self.definitions.get(&piece.from)?.clone();
            Some((stage, self.grids.get(&piece.from)?.clone()))
        };
        let parts: Vec<(Stage, OnGrid)> = whole.pieces.iter().map(of).collect::<Option<_>>()?;
        if reads_zero(at) {
            return None;
        }
        if !whole.symbolic.is_empty() {
            // With numbers in place of symbols, it may be one.
            let mut axes = axes.iter();
            let along = axes.find(|axis| at[whole.dim] == Scalar::axis(axis.id));
            let extents = whole.symbolic.iter().copied();
            for extent in extents.chain(along.map(|axis| axis.extent)) {
                extent.pin();
            }
            return None;
        }
        let dims = summed_dims(axes, at, &nest.buf(buffer).shape);
        if !dims.0.contains(&whole.dim) {
            return None;
        }
        let mut codes = Vec::with_capacity(parts.len());
        let mut sums = Vec::with_capacity(parts.len());
        for (stage, values) in &parts {
            codes.push(self.grid_codes(nest, stage, values, ty)?);
            sums.push(self.nan_sum(nest, (stage, values), &dims, at)?);
        }
        let poison = sums.into_iter().reduce(|sum, part| sum + part)?;
        let (_, values) = parts.first()?;
        let target = match self.codes.get(&(buffer, ty)) {
            Some(target) => *target,
            None => {
                let name = format!("{}.{ty}", nest.buf(buffer).name);
                let shape = nest.buf(buffer).shape.clone();
                let target = nest.buffer(&name, ty, &shape, Role::Temporary);
                self.made.extend(whole.moves(nest, target, &codes));
                self.codes.insert((buffer, ty), target);
                target
            }
        };
        Some(values.grid().bytes(nest.load(target, at.to_vec()), poison))
    }

    /// The buffer of the codes of values on a grid.
    fn grid_codes(
        &mut self,
        nest: &mut Nest,
        stage: &Stage,
        values: &OnGrid,
        ty: ElementType,
    ) -> Option<BufferId> {
        let key = (stage.target, ty);
        if let Some(target) = self.codes.get(&key) {
            return Some(*target);
        }
        let code = match values {
            OnGrid::Rounded(rounded) => rounded.code(ty),
            OnGrid::Largest(_, window) => {
                let of = self.definitions.get(&window.buffer)?.clone();
                let values = self.grids.get(&window.buffer)?.clone();
                let codes = self.grid_codes(nest, &of, &values, ty)?;
                let code = nest.load(codes, window.at.clone());
                window.fold(Binary::Max, lowest(ty), window.guarded(code, lowest(ty)))
            }
        };
        let name = format!("{}.{ty}", nest.buf(stage.target).name);
        let made = self.store(nest, &name, stage, &stage.domain, &code);
        self.codes.insert(key, made);
        Some(made)
    }
}

impl Grid {
    fn bytes(&self, code: Scalar, poison: Scalar) -> Bytes {
        Bytes {
            zero: self.zero - Grid::less(code.ty()),
            scale: Scale::Value(self.scale),
            code,
            poison: Some(poison),
            is_guarded: false,
        }
    }
}

/// The dims that an axis of a sum goes along by itself from end to end, where each has as many elements as `extents` say, and the
/// others.
fn summed_dims(axes: &[Axis], at: &[Scalar], extents: &[Extent]) -> (Vec<usize>, Vec<usize>) {
    let is_summed = |dim: &usize| {
        let alone = |axis: &Axis| {
            let mut readers = (0..at.len()).filter(|d| free_axes(&at[*d]).contains(&axis.id));
            readers.all(|d| d == *dim) && axis.extent == extents[*dim]
        };
        let axis = axes.iter().find(|axis| at[*dim] == Scalar::axis(axis.id));
        axis.is_some_and(alone)
    };
    (0..at.len()).partition(is_summed)
}

impl Scale {
    fn tensor(&self) -> Option<&Scalar> {
        match self {
            Scale::Value(_) => None,
            Scale::Tensor(scale) => Some(scale),
        }
    }
}
