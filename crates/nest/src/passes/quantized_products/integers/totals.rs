//! Sums of codes, which zero points are multiplied by. Those of constants are computed here, once.

use crate::build::index;
use crate::ir::{Axis, AxisId, Binary, BufferId, Kind, Nest, Scalar, Stage, free_axes};
use crate::passes::quantized_products::Pass;
use vinelift_tensor::ElementType::{self, F32, I8, I32, U8};

impl Pass<'_> {
    /// The sum of `x`, an `i32`, over `axes`: a load from a table if it is of a constant, and else from a stage of its own.
    pub(super) fn total(
        &mut self,
        nest: &mut Nest,
        stage: &Stage,
        name: &str,
        axes: &[Axis],
        x: &Scalar,
    ) -> Scalar {
        let free = free_axes(x);
        let mut outer = stage.domain.clone();
        outer.retain(|axis| free.contains(&axis.id));
        match self.constant_total(nest, &outer, axes, x) {
            Some(sums) => {
                let bytes: Vec<u8> = sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
                let table = nest.table(name, I32, sums.len(), &bytes);
                let position = outer.iter().fold(index(0), |position, axis| {
                    position * Scalar::extent(axis.extent) + Scalar::axis(axis.id)
                });
                nest.load(table, vec![position])
            }
            None => self.fold(nest, stage, name, axes, x.clone(), None),
        }
    }

    /// The sums over `axes`, for each point of `outer`, if `x` is a load from a constant along whole axes, and some
    /// number more.
    fn constant_total(
        &self,
        nest: &Nest,
        outer: &[Axis],
        axes: &[Axis],
        x: &Scalar,
    ) -> Option<Vec<i32>> {
        let (buffer, at, more) = constant_load(x)?;
        let bytes = (self.constant)(buffer)?;
        let buffer = nest.buf(buffer);
        let number = |axis: &Axis| axis.extent.number();
        // By how many results a step along an axis leads on.
        let mut steps: Vec<(AxisId, usize, usize)> = Vec::new();
        let mut results = 1;
        for axis in outer.iter().rev() {
            steps.push((axis.id, number(axis)?, results));
            results *= number(axis)?;
        }
        let mut points = 1i32;
        for axis in axes {
            steps.push((axis.id, number(axis)?, 0));
            points = points.wrapping_mul(number(axis)? as i32);
        }
        let mut dims: Vec<(usize, usize)> = Vec::with_capacity(at.len());
        for (i, extent) in at.iter().zip(&buffer.shape) {
            let extent = extent.number()?;
            if i.as_index() == Some(0) && extent == 1 {
                continue;
            }
            let whole = |(id, n, _): &(AxisId, usize, usize)| i.is_axis(*id) && *n == extent;
            let (_, _, step) = steps.swap_remove(steps.iter().position(whole)?);
            dims.push((extent, step));
        }
        // The steps that are left index no dim: each element is counted once for each of their points.
        let times = steps.iter().map(|(_, n, _)| *n as i32);
        let times = times.fold(1, i32::wrapping_mul);
        let mut sums = vec![0i32; results];
        match buffer.ty {
            U8 => add_up(bytes, &dims, &mut sums, |[x]| i32::from(x)),
            I8 => add_up(bytes, &dims, &mut sums, |[x]| i32::from(x as i8)),
            I32 => add_up(bytes, &dims, &mut sums, i32::from_le_bytes),
            F32 => add_up(bytes, &dims, &mut sums, |x| f32::from_le_bytes(x) as i32),
            _ => return None,
        }
        let more = points.wrapping_mul(more);
        for sum in &mut sums {
            *sum = sum.wrapping_mul(times).wrapping_add(more);
        }
        Some(sums)
    }
}

/// The load that `x` is a conversion of, and the constant that is added to it.
fn constant_load(x: &Scalar) -> Option<(BufferId, &[Scalar], i32)> {
    let constant = |x: &Scalar| Some(x.as_const()? as u32 as i32);
    let (mut x, mut more) = (x, 0i32);
    loop {
        match x.kind() {
            Kind::Binary(Binary::Add, a, b) => {
                (x, more) = (a, more.wrapping_add(constant(b)?));
            }
            Kind::Binary(Binary::Sub, a, b) => {
                (x, more) = (a, more.wrapping_sub(constant(b)?));
            }
            Kind::Cast(inner) if x.ty() == I32 && is_number(inner.ty()) => x = inner,
            Kind::Load { buffer, at } => return Some((*buffer, at, more)),
            _ => return None,
        }
    }
}

fn is_number(ty: ElementType) -> bool {
    matches!(ty, U8 | I8 | I32 | F32)
}

/// Adds the elements of a tensor to `sums`. `dims` has the extent of each dim, and by how many sums a step along it
/// leads on.
fn add_up<const N: usize>(
    bytes: &[u8],
    dims: &[(usize, usize)],
    sums: &mut [i32],
    value: impl Fn([u8; N]) -> i32,
) {
    let ((extent, step), rest) = match dims.split_last() {
        Some((last, rest)) => (*last, rest),
        None => ((1, 0), dims),
    };
    let (elements, _) = bytes.as_chunks::<N>();
    let mut at = vec![0; rest.len()];
    let mut first = 0;
    for row in elements.chunks_exact(extent.max(1)) {
        match step {
            0 => {
                let row = row.iter().map(|x| value(*x));
                sums[first] = sums[first].wrapping_add(row.fold(0, i32::wrapping_add));
            }
            _ => {
                let sums = sums[first..].iter_mut().step_by(step);
                let pairs = sums.zip(row);
                pairs.for_each(|(sum, x)| *sum = sum.wrapping_add(value(*x)));
            }
        }
        for (k, (extent, step)) in rest.iter().enumerate().rev() {
            at[k] += 1;
            first += step;
            if at[k] < *extent {
                break;
            }
            first -= extent * step;
            at[k] = 0;
        }
    }
}
