//! Repeated operands: a small operand that keeps the two innermost axes from being one is stored for all points of both.
//!
//! > `for i<80, j<2: y[2·i + j] = x[2·i + j] + c[j]` becomes `for i<80, j<2: t[i, j] = c[j]` and
//! > `for i<80, j<2: y[2·i + j] = x[2·i + j] + t[i, j]`
//!
//! `collapse` then makes one loop of the two axes, which is long enough for vectors. Biases before [DepthToSpace], scales of
//! pixels whose three colours follow each other, and flags of pixels of which a transposed convolution makes four are like that.
//! A copy of a constant is made once, before the first run, unless extents have symbols; of another operand, in each run.
//!
//! [DepthToSpace]: https://docs.openvino.ai/2026/documentation/openvino-ir-format/operation-sets/operation-specs/movement/depth-to-space-1.html

use crate::analysis::{Contraction, Linear, is_proven};
use crate::ir::{
    Axis, AxisId, BufferId, Kind, Mode, Nest, Role, Scalar, Stage, computes_with, free_axes,
    rewrite_those, visit_accesses,
};
use crate::passes::collapse::SHORT_AXIS;
use rustc_hash::FxHashMap;

/// An operand is repeated if the stage that reads it has at least this many points for each element that is stored …
const LEAST_READS: usize = 4;

/// … and if no more elements than this are stored.
const MOST_ELEMENTS: usize = 1 << 16;

/// Repeats the operands that keep the two innermost axes of stages from being one.
pub fn repeat_operands(nest: &mut Nest, is_constant: &dyn Fn(BufferId) -> bool) {
    let mut stages = std::mem::take(&mut nest.stages);
    let mut stores: Vec<(usize, Stage)> = Vec::new();
    for reader in 0..stages.len() {
        let buffers = nest.buffers.len();
        let repeated = repeated(nest, &stages, reader, is_constant);
        let repeated = repeated.filter(|r| r.iter().all(|r| is_proven(nest, &r.store)));
        let Some(repeated) = repeated else {
            nest.truncate_buffers(buffers);
            continue;
        };
        rewrite_those(
            &mut stages[reader],
            Scalar::loads,
            &mut |x| match x.kind() {
                Kind::Load { buffer, at } => {
                    let operand = repeated.iter().find(|r| r.of == (*buffer, at.to_vec()));
                    operand.map_or(x, |operand| operand.load.clone())
                }
                _ => x,
            },
        );
        stores.extend(repeated.into_iter().map(|r| (r.place, r.store)));
    }
    stores.sort_by_key(|(place, _)| *place);
    for (place, store) in stores.into_iter().rev() {
        stages.insert(place, store);
    }
    nest.stages = stages;
}

/// A copy of an operand over both axes, which a stage reads in its place.
struct Repeated {
    /// The operand, and where the stage loads it.
    of: (BufferId, Vec<Scalar>),
    /// Before which stage the copy is made.
    place: usize,
    /// The stage that makes it.
    store: Stage,
    /// The load from the copy.
    load: Scalar,
}

/// Copies of the operands that keep the two innermost axes of `stages[reader]` from being one; `None` if there are none, or if not all
/// of them can be copied.
fn repeated(
    nest: &mut Nest,
    stages: &[Stage],
    reader: usize,
    is_constant: &dyn Fn(BufferId) -> bool,
) -> Option<Vec<Repeated>> {
    let stage = &stages[reader];
    let operands = operands(nest, stage)?;
    let mut repeated = Vec::new();
    for (operand, at, axes) in operands {
        let place = match is_constant(operand) {
            true => 0,
            false => place(nest, stages, reader, operand)?,
        };
        let (store, load) = repeat(nest, stage, operand, &at, &axes);
        repeated.push(Repeated {
            of: (operand, at),
            place,
            store,
            load,
        });
    }
    Some(repeated)
}

/// Where to store what is made of `operand` for `reader`: behind what writes it, and before the contraction that `reader` may run with
/// the tasks of, if there is one. `None` if there is no such place.
fn place(nest: &Nest, stages: &[Stage], reader: usize, operand: BufferId) -> Option<usize> {
    let written = stages[..reader].iter().rposition(|s| s.target == operand);
    let reads_last = |at: &usize| stages[*at].loads().contains(&stages[at - 1].target);
    let chain = (1..=reader).rev().take_while(reads_last).last();
    let chain = chain.map_or(reader..reader, |second| second - 1..reader);
    let is_run_with =
        |stage: &Stage| stage.group.is_some() || Contraction::of(nest, stage).is_some();
    let place = match stages[chain.clone()].iter().any(is_run_with) {
        true => chain.start,
        false => reader,
    };
    // Nothing may be put between stages that take turns.
    let is_between = stages[place].group.is_some();
    let is_behind = written.is_none_or(|written| written < place);
    (is_behind && !is_between).then_some(place)
}

/// An operand, where a stage loads it, and the axes of what is stored in its place.
type Operand = (BufferId, Vec<Scalar>, Vec<Axis>);

/// The small operands that a stage reads in other steps along its two innermost axes than along one, if all else steps as along one.
fn operands(nest: &Nest, stage: &Stage) -> Option<Vec<Operand>> {
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
    let mut operands: Vec<Operand> = Vec::new();
    let mut fits = true;
    visit_accesses(stage, &mut |buffer, at| {
        let Some([a, b]) = steps(nest, buffer, at, [outer, inner]) else {
            fits = false;
            return;
        };
        if b.checked_mul(short as i64) == Some(a)
            || operands
                .iter()
                .any(|(b, place, _)| *b == buffer && place == at)
        {
            return;
        }
        // An index that is read may be of another time than the operand.
        fits &= buffer != stage.target && !at.iter().any(Scalar::loads);
        fits &= !nest.buf(buffer).ty.is_packed();
        let used = |axis: &&Axis| {
            [outer.id, inner.id].contains(&axis.id)
                || at.iter().any(|x| free_axes(x).contains(&axis.id))
        };
        let axes = stage.domain.iter().filter(used).copied().collect();
        operands.push((buffer, at.to_vec(), axes));
    });
    let points = |axes: &[Axis]| {
        let extents = axes.iter().map(|axis| axis.extent.example());
        extents.fold(1, usize::saturating_mul)
    };
    let all = points(&stage.domain);
    let is_small = |(_, _, axes): &Operand| {
        let count = points(axes);
        count <= MOST_ELEMENTS && count.saturating_mul(LEAST_READS) <= all
    };
    (fits && !operands.is_empty() && operands.iter().all(is_small)).then_some(operands)
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

/// The stage that stores an operand for all points of `axes`, for `reader`, and the load of what it stores.
fn repeat(
    nest: &mut Nest,
    reader: &Stage,
    operand: BufferId,
    at: &[Scalar],
    axes: &[Axis],
) -> (Stage, Scalar) {
    let of = nest.buf(operand);
    let (name, ty) = (format!("{}.repeated", of.name), of.ty);
    let shape: Vec<_> = axes.iter().map(|axis| axis.extent).collect();
    let target = nest.buffer(&name, ty, &shape, Role::Temporary);
    let domain: Vec<Axis> = shape.iter().map(|n| nest.axis(*n)).collect();
    let places = domain.iter().map(|axis| Scalar::axis(axis.id));
    let mut store = Stage {
        at: places.collect(),
        value: Scalar::load(operand, at.to_vec(), ty),
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
        repeat_operands(&mut nest, &|b| names[b.0 as usize].starts_with('c'));
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
    fn flags_of_pixels_of_which_four_are_made() {
        let text = "input x: f32[6, 20, 2, 20, 2]
            input d: f32[20, 20]
            temporary e: f32[20, 20]
            output y: f32[6, 20, 2, 20, 2]
            for i<20, j<20: e[i, j] = (d[i, j] + add[k<4; 0.0](d[k, j]))
            for i<6, j<20, k<2, l<20, m<2: y[i, j, k, l, m] = (x[i, j, k, l, m] + e[j, l])";
        assert_eq!(
            scheduled(text)[1..],
            [
                "for i<400, j<2: e.repeated[((i * 2) + j)] = e[i]",
                "for i<6, j<20, k<2, l<40: y[((((i * 1600) + (j * 80)) + (k * 40)) + l)] = \
                 (x[((((i * 1600) + (j * 80)) + (k * 40)) + l)] + e.repeated[((j * 40) + l)])",
            ]
        );
    }

    /// The epilogue runs with the tasks of the contraction only if it is the next stage.
    #[test]
    fn nothing_comes_between_a_product_and_its_epilogue() {
        let text = "input a: f32[8, 1200]
            input b: f32[8, 9]
            input d: f32[400]
            temporary e: f32[400]
            temporary p: f32[9, 1200]
            output y: f32[9, 400, 3]
            for i<400: e[i] = add[k<4; 0.0](d[k])
            for i<9, j<1200: p[i, j] = add[k<8; 0.0](term(b[k, i], a[k, j]))
            for i<9, j<400, k<3: y[i, j, k] = (p[i, ((j * 3) + k)] + e[j])";
        let stages = scheduled(text);
        assert!(stages[1].contains("e.repeated"), "{stages:#?}");
    }

    #[test]
    fn nothing_comes_between_stages_that_take_turns() {
        let text = "input x: f32[400, 8]
            input w: f32[9, 8]
            input d: f32[400]
            temporary e: f32[400]
            temporary g: f32[9]
            temporary h: f32[9]
            temporary p: f32[400, 9]
            output y: f32[9, 400, 3]
            output z: f32[9]
            for i<400: e[i] = add[k<4; 0.0](d[k])
            turn 0 for i<400, j<9: g[j] = (x[i, 0] * w[j, 1])
            turn 0 for i<400, j<9: h[j] = add[k<8; 0.0](term(x[i, k], w[j, k]))
            turn 0 for i<400, j<9: p[i, j] = (h[j] + 1.0)
            for i<9, j<400, k<3: y[i, j, k] = (p[0, i] + e[j])
            for i<9: z[i] = g[i]";
        let stages = scheduled(text);
        let is_turn = |text: &&String| text.starts_with("turn");
        assert!(
            stages[1..4].iter().all(|text| is_turn(&text)),
            "{stages:#?}"
        );
    }

    #[test]
    fn what_stays() {
        let repeats = |points: usize, value: &str| {
            scheduled(&format!(
                "input x: f32[{points}, 8, 20, 3]
                input c: f32[3]
                input d: f32[6]
                input p: i64[8]
                output y: f32[{points}, 8, 20, 3]
                for i<{points}, j<8, k<20, l<3: y[i, j, k, l] = {value}"
            ))
            .iter()
            .any(|stage| stage.contains("repeated"))
        };
        assert!(repeats(4, "(x[i, j, k, l] * c[l])"));
        assert!(repeats(4, "(x[i, j, k, l] * d[((j / 4) + l)])"));
        // Of an operand that every index is for there are too few points; others move in other ways.
        assert!(!repeats(3, "(x[i, j, k, l] * d[((j / 4) + l)])"));
        assert!(!repeats(4, "(x[i, j, k, 0] * c[l])"));
        assert!(!repeats(4, "((x[i, j, k, l] * c[l]) * f32(l))"));
        // A guard keeps this one inside, and an index is read where it is.
        let guarded = "(x[i, j, k, l] + select((j < 2), d[((j * 3) + l)], 0.0))";
        assert!(!repeats(4, guarded));
        let read = "(x[i, j, k, l] + d[wrap?(p[j], 6)])";
        assert!(!repeats(4, read));
    }
}
