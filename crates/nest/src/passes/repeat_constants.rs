//! Repeated constants: what changes along a short innermost axis alone is stored for all points of the axis around it, too.
//!
//! > `for i<80, j<2: y[2·i + j] = x[2·i + j] + c[j]` becomes `for i<80, j<2: t[i, j] = c[j]`, which is computed once before all
//! > runs unless extents have symbols, and `for i<80, j<2: y[2·i + j] = x[2·i + j] + t[i, j]`
//!
//! `collapse` then makes one loop of the two axes, which is long enough for vectors. Biases before [DepthToSpace] and scales of
//! pixels whose three colours follow each other are like that.
//!
//! [DepthToSpace]: https://docs.openvino.ai/2026/documentation/openvino-ir-format/operation-sets/operation-specs/movement/depth-to-space-1.html

use crate::analysis::Linear;
use crate::ir::{
    Axis, AxisId, BufferId, Kind, Mode, Nest, Role, Scalar, Stage, computes_with, free_axes,
    rewrite_those, visit_accesses,
};
use crate::passes::collapse::SHORT_AXIS;
use rustc_hash::FxHashMap;

/// A constant is repeated if the stage that reads it has at least this many points for each element that is stored …
const LEAST_READS: usize = 4;

/// … and if no more elements than this are stored.
const MOST_ELEMENTS: usize = 1 << 16;

/// Repeats the constants that keep the two innermost axes of stages from being one.
pub fn repeat_constants(nest: &mut Nest, is_constant: &dyn Fn(BufferId) -> bool) {
    let mut repeated = Vec::new();
    for mut stage in std::mem::take(&mut nest.stages) {
        if let Some(constants) = short_constants(nest, &stage, is_constant) {
            let mut stored: FxHashMap<(BufferId, Vec<Scalar>), Scalar> = FxHashMap::default();
            for (constant, at, axes) in constants {
                let (store, load) = repeat(nest, &stage, constant, &at, &axes);
                repeated.push(store);
                stored.insert((constant, at), load);
            }
            rewrite_those(&mut stage, Scalar::loads, &mut |x| match x.kind() {
                Kind::Load { buffer, at } => {
                    let load = stored.get(&(*buffer, at.to_vec()));
                    load.cloned().unwrap_or(x)
                }
                _ => x,
            });
        }
        nest.stages.push(stage);
    }
    // They depend on constants alone, and must not come between a contraction and what is run with its tasks.
    nest.stages.splice(0..0, repeated);
}

/// A constant, where a stage loads it, and the axes of what is stored in its place.
type ShortConstant = (BufferId, Vec<Scalar>, Vec<Axis>);

/// The constants that a stage reads along its innermost axis alone, if all else steps along the two innermost axes as along one.
fn short_constants(
    nest: &Nest,
    stage: &Stage,
    is_constant: &dyn Fn(BufferId) -> bool,
) -> Option<Vec<ShortConstant>> {
    let (inner, rest) = stage.domain.split_last()?;
    let outer = rest.last()?;
    let short = inner.extent.number()?;
    let is_plain = stage.mode == Mode::Set && stage.group.is_none() && !stage.value.folds();
    if !is_plain || !(2..SHORT_AXIS).contains(&short) || outer.extent <= 1 {
        return None;
    }
    if computes_with(&stage.value, &[outer.id, inner.id], None) {
        return None;
    }
    let mut constants: Vec<ShortConstant> = Vec::new();
    let mut fits = true;
    visit_accesses(
        stage,
        &mut |buffer, at| match steps(nest, buffer, at, [outer, inner]) {
            Some([a, b]) if b.checked_mul(short as i64) == Some(a) => {}
            Some([0, _]) if is_constant(buffer) && !nest.buf(buffer).ty.is_packed() => {
                if !constants
                    .iter()
                    .any(|(b, place, _)| *b == buffer && place == at)
                {
                    let used = |axis: &&Axis| {
                        axis.id == outer.id || at.iter().any(|x| free_axes(x).contains(&axis.id))
                    };
                    let axes = stage.domain.iter().filter(used).copied().collect();
                    constants.push((buffer, at.to_vec(), axes));
                }
            }
            _ => fits = false,
        },
    );
    let points = |axes: &[Axis]| {
        let extents = axes.iter().map(|axis| axis.extent.example());
        extents.fold(1, usize::saturating_mul)
    };
    let all = points(&stage.domain);
    let is_small = |(_, _, axes): &ShortConstant| {
        let count = points(axes);
        count <= MOST_ELEMENTS && count * LEAST_READS <= all
    };
    (fits && !constants.is_empty() && constants.iter().all(is_small)).then_some(constants)
}

/// How far an access steps along each of two axes, in elements, at the example; `None` if it is not affine in them.
fn steps(nest: &Nest, buffer: BufferId, at: &[Scalar], axes: [&Axis; 2]) -> Option<[i64; 2]> {
    let form = Linear::of_access(at, &nest.buf(buffer).strides());
    let mut steps = [0; 2];
    for (atom, k) in &form.terms {
        let free = free_axes(atom);
        for (step, axis) in steps.iter_mut().zip(axes) {
            match atom.is_axis(axis.id) {
                true => *step = *k,
                false if free.contains(&axis.id) => return None,
                false => {}
            }
        }
    }
    Some(steps)
}

/// The stage that stores a constant for all points of `axes`, for `reader`, and the load of what it stores.
fn repeat(
    nest: &mut Nest,
    reader: &Stage,
    constant: BufferId,
    at: &[Scalar],
    axes: &[Axis],
) -> (Stage, Scalar) {
    let of = nest.buf(constant);
    let (name, ty) = (format!("{}.repeated", of.name), of.ty);
    let shape: Vec<_> = axes.iter().map(|axis| axis.extent).collect();
    let target = nest.buffer(&name, ty, &shape, Role::Temporary);
    let domain: Vec<Axis> = shape.iter().map(|n| nest.axis(*n)).collect();
    let places = domain.iter().map(|axis| Scalar::axis(axis.id));
    let mut store = Stage {
        at: places.collect(),
        value: Scalar::load(constant, at.to_vec(), ty),
        domain,
        target,
        mode: Mode::Set,
        layers: reader.layers.clone(),
        group: None,
    };
    let by: FxHashMap<AxisId, AxisId> = (axes.iter().zip(&store.domain))
        .map(|(old, new)| (old.id, new.id))
        .collect();
    rewrite_those(&mut store, |_| true, &mut |x| match x.kind() {
        Kind::Axis(id) => by.get(id).map_or(x, |new| Scalar::axis(*new)),
        _ => x,
    });
    let load = axes.iter().map(|axis| Scalar::axis(axis.id)).collect();
    let load = Scalar::load(target, load, ty);
    (store, load)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::verify;
    use crate::parse;
    use crate::passes::schedule::schedule;

    /// The stages after this pass and `schedule`, where `c` is constant.
    fn scheduled(text: &str) -> Vec<String> {
        let mut nest = parse(text).unwrap();
        verify(&nest).unwrap();
        let names: Vec<String> = nest.buffers.iter().map(|b| b.name.clone()).collect();
        repeat_constants(&mut nest, &|b| names[b.0 as usize].starts_with('c'));
        schedule(&mut nest);
        verify(&nest).unwrap();
        nest.stage_texts()
    }

    #[test]
    fn biases_of_blocks_of_pixels() {
        let text = "input x: f32[6, 20, 2, 20, 2]
            input c: f32[24]
            output y: f32[6, 40, 40]
            for i<6, j<20, k<2, l<20, m<2: y[i, ((j * 2) + k), ((l * 2) + m)] = \
              (x[i, j, k, l, m] + c[(((i * 4) + (k * 2)) + m)])";
        assert_eq!(
            scheduled(text),
            [
                "for i<12, j<20, k<2: c.repeated[(((i * 40) + (j * 2)) + k)] = c[((i * 2) + k)]",
                "for i<6, j<20, k<80: y[(((i * 1600) + (j * 80)) + k)] = \
                 (x[(((i * 1600) + (j * 80)) + k)] + c.repeated[((i * 80) + k)])",
            ]
        );
    }

    #[test]
    fn what_stays() {
        let stages = |constant: &str, points: usize, value: &str| {
            scheduled(&format!(
                "input x: f32[{points}, 20, 3]
                input {constant}: f32[3]
                output y: f32[{points}, 20, 3]
                for i<{points}, j<20, k<3: y[i, j, k] = {value}"
            ))
            .len()
        };
        assert_eq!(stages("c", 4, "(x[i, j, k] * c[k])"), 2);
        // Of three lines there are too few; the other is not constant, or moves in other ways.
        assert_eq!(stages("c", 3, "(x[i, j, k] * c[k])"), 1);
        assert_eq!(stages("d", 4, "(x[i, j, k] * d[k])"), 1);
        assert_eq!(stages("c", 4, "(x[i, j, 0] * c[k])"), 1);
        assert_eq!(stages("c", 4, "(x[i, j, k] * f32(k))"), 1);
    }
}
