//! Planes: what a stage computes for a few neighbours of each point is computed plane by plane, and then interleaved.
//!
//! > `for p<P, c<3: y[3·p + c] = f(x[P·c + p])` becomes `for c<3, p<P: t[P·c + p] = f(x[P·c + p])` and
//! > `for p<P, c<3: y[3·p + c] = t[P·c + p]`
//!
//! An axis of a few points fills no vectors, while points that lie side by side in what is read do; and code interleaves planes in
//! registers. Pictures whose colours become neighbours on their way out are like that.

use crate::analysis::{Ranges, grouped_offset};
use crate::ir::{Axis, AxisId, BufferId, Kind, Nest, Role, Scalar, Stage, free_axes, visit};
use crate::passes::contract::with_fresh_domain;
use crate::passes::split::{LEAST_OF_PLANE, MOST_BITS, PLANES};
use vinelift_tensor::{ElementType, Formula};

/// Computes the values of stages that write interleaved planes plane by plane.
pub(crate) fn store_planes(nest: &mut Nest) {
    for stage in std::mem::take(&mut nest.stages) {
        match interleaved_axes(nest, &stage) {
            Some(axes) => {
                let both = by_planes(nest, stage, axes);
                nest.stages.extend(both);
            }
            None => nest.stages.push(stage),
        }
    }
}

/// The axes of the points and of the planes, the two innermost of a stage, if its value is computed in vectors of points.
fn interleaved_axes(nest: &Nest, stage: &Stage) -> Option<[Axis; 2]> {
    let is_copy = matches!(stage.value.kind(), Kind::Load { .. });
    if is_copy || stage.value.folds() || !stage.is_unordered() {
        return None;
    }
    let ty = nest.buf(stage.target).ty;
    if ty.is_packed() || ty.bits() > MOST_BITS || ty == ElementType::Boolean {
        return None;
    }
    let mut many = stage.domain.iter().rev().filter(|axis| axis.extent > 1);
    let (planes, points) = (*many.next()?, *many.next()?);
    let count = planes.extent.number().filter(|n| PLANES.contains(n))?;
    if points.extent < LEAST_OF_PLANE {
        return None;
    }
    let axes = [points.id, planes.id];
    let mut ranges = Ranges::of_stage(stage).with_symbols(nest);
    let mut steps = |buffer, at: &[Scalar]| steps(nest, buffer, at, axes, &mut ranges);
    let [zero, one, group] = [0, 1, count as i64].map(Formula::number);
    if steps(stage.target, &stage.at)? != [group, one] {
        return None;
    }
    // Each operand is a plane for each of the planes, or the same for all of them or all points.
    let (mut are_vectors, mut has_planes) = (true, false);
    visit(&stage.value, &mut |x| {
        if let Kind::Load { buffer, at } = x.kind() {
            match steps(*buffer, at) {
                Some([point, plane]) if point == one => has_planes |= plane != zero,
                Some([point, _]) if point == zero => {}
                _ => are_vectors = false,
            }
        }
    });
    (are_vectors && has_planes).then_some([points, planes])
}

/// How many elements apart the elements of two points lie that are neighbours along each of two axes; `None` if that is not the same
/// everywhere.
fn steps(
    nest: &Nest,
    buffer: BufferId,
    at: &[Scalar],
    axes: [AxisId; 2],
    ranges: &mut Ranges,
) -> Option<[Formula; 2]> {
    let mut steps = [Formula::number(0); 2];
    for (stride, linear) in grouped_offset(at, &nest.buf(buffer).shape, ranges)? {
        for (atom, step) in &linear.terms {
            match axes.iter().position(|axis| atom.is_axis(*axis)) {
                Some(axis) => {
                    let step = stride.times(&Formula::number(*step))?;
                    steps[axis] = steps[axis].plus(&step)?;
                }
                None if axes.iter().any(|axis| free_axes(atom).contains(axis)) => return None,
                None => {}
            }
        }
    }
    Some(steps)
}

/// The stage that computes the planes, and the one that interleaves them.
fn by_planes(nest: &mut Nest, stage: Stage, [points, planes]: [Axis; 2]) -> [Stage; 2] {
    let others = stage.domain.iter().copied();
    let others = others.filter(|axis| ![points.id, planes.id].contains(&axis.id));
    let mut domain: Vec<Axis> = others.collect();
    domain.extend([planes, points]);
    let target = nest.buf(stage.target);
    let (name, ty) = (format!("{}.planes", target.name), target.ty);
    let shape: Vec<_> = domain.iter().map(|axis| axis.extent).collect();
    let buffer = nest.buffer(&name, ty, &shape, Role::Temporary);
    let at: Vec<Scalar> = domain.iter().map(|axis| Scalar::axis(axis.id)).collect();
    let interleaved = Stage {
        value: Scalar::load(buffer, at.clone(), ty),
        ..stage.clone()
    };
    let interleaved = with_fresh_domain(nest, interleaved);
    let computed = Stage {
        domain,
        target: buffer,
        at,
        ..stage
    };
    [computed, interleaved]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::verify;
    use crate::ir::parse;

    /// The stages that become of one which writes pixels of `colours` values, made of planes.
    fn stored(colours: usize, value: &str) -> Vec<String> {
        let text = format!(
            "input x: f32[{colours}, 64]\ninput w: f32[64, {colours}]\noutput y: f32[64, {colours}]\n\
             for i<64, j<{colours}: y[i, j] = {value}\n"
        );
        let mut nest = parse(&text).unwrap();
        store_planes(&mut nest);
        verify(&nest).unwrap();
        nest.stage_texts()
    }

    #[test]
    fn colours_are_computed_plane_by_plane() {
        let scaled = stored(3, "min((x[j, i] * 255.0), 255.0)");
        let planes = "for i<3, j<64: y.planes[i, j] = min((x[i, j] * 255.0), 255.0)";
        let copy = "for i<64, j<3: y[i, j] = y.planes[j, i]";
        assert_eq!(scaled, [planes, copy]);
    }

    #[test]
    fn pictures_may_have_any_size() {
        let text = "symbols s0=20, s1=30\ninput x: f32[3, s0, s1]\noutput y: u8[s0, s1, 3]\n\
                    for i<s0, j<s1, k<3: y[i, j, k] = u8(x[k, i, j])\n";
        let mut nest = parse(text).unwrap();
        store_planes(&mut nest);
        verify(&nest).unwrap();
        let planes = "for i<s0, j<3, k<s1: y.planes[i, j, k] = u8(x[j, i, k])";
        let copy = "for i<s0, j<s1, k<3: y[i, j, k] = y.planes[i, k, j]";
        assert_eq!(nest.stage_texts(), [planes, copy]);
    }

    #[test]
    fn others_stay() {
        // Many colours, nothing to compute, and operands whose colours are neighbours already.
        for (colours, value) in [
            (9, "(x[j, i] * 255.0)"),
            (3, "x[j, i]"),
            (3, "(x[j, i] * w[i, j])"),
            (3, "(w[i, j] * 255.0)"),
        ] {
            assert_eq!(stored(colours, value).len(), 1, "{value}");
        }
    }
}
