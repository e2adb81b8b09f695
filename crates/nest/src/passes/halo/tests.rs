use super::*;
use crate::analysis::verify;
use crate::build::*;
use crate::ir::{Binary, Role};
use crate::{BufferBytes, interpret};
use vinelift_tensor::ElementType::F32;
use vinelift_tensor::symbols::Symbols;

/// `t: [4, 6, 8]`, which is `x`, doubled, if that is an input.
fn picture(role: Role) -> (Nest, BufferId) {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[4, 6, 8], Role::Input);
    nest.buffer("w", F32, &[5, 5, 8], Role::Input);
    if role == Role::Input {
        return (nest, x);
    }
    let t = nest.buffer("t", F32, &[4, 6, 8], role);
    nest.define(vec![], t, |n, at| {
        n.load(x, at.to_vec()) + n.load(x, at.to_vec())
    });
    (nest, t)
}

/// `y[i, j, c] = Σ_{k, l} t[i + k - size/2, j + l - size/2, c] · w[k, l, c]`, zero outside of `t`; or along the last
/// two dims.
fn window(nest: &mut Nest, t: BufferId, size: usize, last: bool) {
    let y = nest.buffer("y", F32, &[4, 6, 8], Role::Output);
    let layer = nest.layer("window", "GroupConvolution, opset1");
    let extents = nest.buf(t).example();
    nest.define(vec![layer], y, |n, at| {
        let axes = n.axes(&[size, size]);
        let mut place = at.to_vec();
        let mut guard = Vec::new();
        for (dim, axis) in axes.iter().enumerate() {
            let dim = dim + usize::from(last);
            place[dim] = &at[dim] + Scalar::axis(axis.id) - (size / 2) as i64;
            guard.push(inside(&place[dim], 0, extents[dim] as i64));
        }
        let guard = guard.into_iter().reduce(|a, b| a & b).unwrap();
        let x = select(guard, n.load(t, place), zero(F32));
        let tap = |d: usize| Scalar::axis(axes[d].id);
        let w = n.load(BufferId(1), vec![tap(0), tap(1), at[2].clone()]);
        let term = Scalar::binary(Binary::Term, x, w);
        Scalar::reduce(Binary::Add, axes.clone(), zero(F32), term)
    });
}

/// The stages with halos, which must compute the same as without.
fn with_halos(mut nest: Nest) -> Vec<String> {
    let expected = run(&nest);
    store_halos(&mut nest);
    verify(&nest).unwrap();
    assert!(run(&nest) == expected, "{:#?}", nest.stage_texts());
    nest.stage_texts()
}

/// The bytes of all outputs, memory being full of something else before.
fn run(nest: &Nest) -> Vec<Vec<u8>> {
    let value = |k: usize| ((k * 7919) % 23) as f32 - 11.0;
    let mut memory: Vec<Vec<u8>> = (nest.buffers.iter())
        .map(|b| b.example().iter().product::<usize>())
        .map(|n| (0..n).flat_map(|k| value(k).to_le_bytes()).collect())
        .collect();
    let mut buffers: Vec<BufferBytes<'_>> = (memory.iter_mut().zip(&nest.buffers))
        .map(|(bytes, buffer)| match buffer.role {
            Role::Input => BufferBytes::Read(bytes),
            _ => BufferBytes::Write(bytes),
        })
        .collect();
    interpret(nest, &mut buffers).unwrap();
    drop(buffers);
    let outputs = memory.into_iter().zip(&nest.buffers);
    outputs
        .filter_map(|(bytes, b)| (b.role == Role::Output).then_some(bytes))
        .collect()
}

#[test]
fn a_window_reads_what_is_stored_with_its_border() {
    let (mut nest, t) = picture(Role::Temporary);
    window(&mut nest, t, 3, false);
    assert_eq!(
        with_halos(nest),
        [
            "for i<1, j<8, k<8: t[i, j, k] = 0.0",
            "for i<1, j<8, k<8: t[(i + 5), j, k] = 0.0",
            "for i<4, j<1, k<8: t[(i + 1), j, k] = 0.0",
            "for i<4, j<1, k<8: t[(i + 1), (j + 7), k] = 0.0",
            "for i<4, j<6, k<8: t[(i + 1), (j + 1), k] = (x[i, j, k] + x[i, j, k])",
            "for i<4, j<6, k<8: y[i, j, k] = \
             add[l<3, m<3; 0.0](term(t[(i + l), (j + m), k], w[l, m, k]))",
        ]
    );
}

#[test]
fn the_widest_border_serves_all_windows() {
    let (mut nest, t) = picture(Role::Temporary);
    for size in [3, 5, 3] {
        window(&mut nest, t, size, false);
    }
    let stages = with_halos(nest);
    assert_eq!(stages.len(), 4 + 1 + 3, "{stages:#?}");
    assert!(
        stages[5].contains("term(t[((i + l) + 1), ((j + m) + 1), k]"),
        "{stages:#?}"
    );
    assert!(
        stages[6].contains("term(t[(i + l), (j + m), k]"),
        "{stages:#?}"
    );
}

/// `y[i, j, c] = Σ_f Σ_{k, l} t[i + k - size_f/2, j + l - size_f/2, c] · w[k, l, c]`
#[test]
fn all_windows_of_a_stage_read_the_border() {
    let (mut nest, t) = picture(Role::Temporary);
    let y = nest.buffer("y", F32, &[4, 6, 8], Role::Output);
    nest.define(vec![], y, |n, at| {
        let sums = [3, 1, 5].map(|size: usize| {
            let axes = n.axes(&[size, size]);
            let tap = |d: usize| Scalar::axis(axes[d].id);
            let place = |d: usize| &at[d] + tap(d) - (size / 2) as i64;
            let guard = inside(&place(0), 0, 4) & inside(&place(1), 0, 6);
            let load = n.load(t, vec![place(0), place(1), at[2].clone()]);
            let x = match size {
                1 => load,
                _ => select(guard, load, zero(F32)),
            };
            let w = n.load(BufferId(1), vec![tap(0), tap(1), at[2].clone()]);
            let term = Scalar::binary(Binary::Term, x, w);
            Scalar::reduce(Binary::Add, axes.clone(), zero(F32), term)
        });
        let [a, b, c] = sums;
        a + b + c
    });
    let stages = with_halos(nest);
    assert_eq!(stages.len(), 4 + 1 + 1, "{stages:#?}");
    let window = stages.last().unwrap();
    let is_read = |place: &str| window.contains(&format!("term(t[{place}, "));
    assert!(
        is_read("((i + l) + 1), ((j + m) + 1)") && !window.contains("select"),
        "{window}"
    );
}

#[test]
fn rows_that_need_borders_and_inputs_are_copied() {
    let (mut nest, t) = picture(Role::Temporary);
    window(&mut nest, t, 3, true);
    let stages = with_halos(nest);
    assert!(
        stages[0].starts_with("for i<4, j<6, k<8: t[i, j, k]"),
        "{stages:#?}"
    );
    let (mut nest, x) = picture(Role::Input);
    window(&mut nest, x, 3, false);
    let stages = with_halos(nest);
    assert!(
        stages[0].starts_with("for i<6, j<8, k<8: y.padded[i, j, k] = select"),
        "{stages:#?}"
    );
}

#[test]
fn a_copy_of_a_copy_stays() {
    let (mut nest, t) = picture(Role::Temporary);
    let wide = nest.buffer("wide", F32, &[6, 6, 8], Role::Temporary);
    nest.define(vec![], wide, |n, at| {
        let row = at[0].clone() - 1;
        let guard = inside(&row, 0, 4);
        let place = vec![row, at[1].clone(), at[2].clone()];
        select(guard, n.load(t, place), zero(F32))
    });
    window(&mut nest, wide, 3, false);
    let part = nest.buffer("part", F32, &[6, 6, 8], Role::Output);
    nest.define(vec![], part, |n, at| n.load(wide, at.to_vec()));
    let stages = with_halos(nest);
    let copy = "for i<6, j<8, k<8: y.padded[i, j, k] = select";
    assert!(
        stages.iter().any(|stage| stage.starts_with(copy)),
        "{stages:#?}"
    );
}

/// A picture of one pixel, with a border along either dim for a window of its own.
#[test]
fn copies_without_a_dim_have_it_where_others_have_a_border() {
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[1, 1, 8], Role::Input);
    let t = nest.buffer("t", F32, &[1, 1, 8], Role::Temporary);
    nest.define(vec![], t, |n, at| {
        n.load(x, at.to_vec()) + n.load(x, at.to_vec())
    });
    for dim in 0..2 {
        let wide = nest.buffer("wide", F32, &[3, 8], Role::Temporary);
        nest.define(vec![], wide, |n, at| {
            let mut place = vec![index(0), index(0), at[1].clone()];
            place[dim] = at[0].clone() - 1;
            let guard = inside(&place[dim], 0, 1);
            select(guard, n.load(t, place), zero(F32))
        });
        let y = nest.buffer("y", F32, &[3, 8], Role::Output);
        nest.define(vec![], y, |n, at| n.load(wide, at.to_vec()));
    }
    let stages = with_halos(nest);
    assert_eq!(
        stages[5..],
        [
            "for i<3, j<8: y[i, j] = t[i, 1, j]",
            "for i<3, j<8: y.5[i, j] = t[1, i, j]",
        ]
    );
}

/// A copy with a dim of a single element, to which no axis belongs, or one that stands elsewhere in the domain.
#[test]
fn dims_of_a_single_element_need_no_axis() {
    for single in [0, 3] {
        let (mut nest, t) = picture(Role::Temporary);
        let wide = nest.buffer("wide", F32, &[1, 6, 6, 8], Role::Temporary);
        let mut domain = nest.axes(&[6, 6, 8]);
        let [line, column, channel] = [0, 1, 2].map(|d| Scalar::axis(domain[d].id));
        let row = line.clone() - 1;
        let place = vec![row.clone(), column.clone(), channel.clone()];
        let value = select(
            boolean(true) & inside(&row, 0, 4),
            nest.load(t, place),
            zero(F32),
        );
        domain.insert(single, nest.axis(1));
        nest.stages.push(Stage {
            domain,
            target: wide,
            at: vec![index(0), line, column, channel],
            mode: Mode::Set,
            value,
            layers: vec![],
            group: None,
        });
        let y = nest.buffer("y", F32, &[6, 6, 8], Role::Output);
        nest.define(vec![], y, |n, at| n.load(wide, [&[index(0)], at].concat()));
        let stages = with_halos(nest);
        assert_eq!(
            stages[2..],
            [
                "for i<4, j<6, k<8: t[(i + 1), j, k] = (x[i, j, k] + x[i, j, k])",
                "for i<6, j<6, k<8: y[i, j, k] = t[i, j, k]",
            ]
        );
    }
}

#[test]
fn a_copy_of_what_is_written_again_stays() {
    let (mut nest, t) = picture(Role::Temporary);
    window(&mut nest, t, 3, false);
    nest.define(vec![], t, |_, _| number(1.0, F32));
    window(&mut nest, t, 3, false);
    let stages = with_halos(nest);
    let copy = "for i<6, j<8, k<8: y.padded[i, j, k] = select";
    assert!(stages[5].starts_with(copy), "{stages:#?}");
    assert_eq!(stages.len(), 4 + 5, "{stages:#?}");
}

/// Windows of 3×3 in steps of 2 over a picture of `s0` lines, whose last window may reach beyond it or not.
#[test]
fn borders_of_a_picture_with_symbols_suit_all_its_numbers() {
    let mut symbols = Symbols::default();
    let lines = symbols.add(9).unwrap();
    let mut nest = Nest::new();
    symbols.record(|| {
        let [line, eight] = [lines, 8.into()];
        let x = nest.buffer("x", F32, &[line, 6.into(), eight], Role::Input);
        let w = nest.buffer("w", F32, &[3, 3, 8], Role::Input);
        let t = nest.buffer("t", F32, &[line, 6.into(), eight], Role::Temporary);
        nest.define(vec![], t, |n, at| {
            n.load(x, at.to_vec()) + n.load(x, at.to_vec())
        });
        let steps = line.sum(1.into()).quotient(2.into());
        let y = nest.buffer("y", F32, &[steps, 3.into(), eight], Role::Output);
        let layer = nest.layer("window", "GroupConvolution, opset1");
        nest.define(vec![layer], y, |n, at| {
            let axes = n.axes(&[3, 3]);
            let tap = |d: usize| Scalar::axis(axes[d].id);
            let place = |d: usize| &at[d] * 2 + tap(d) - 1;
            let below = place(0).ge(index(0)) & place(0).lt(Scalar::extent(line));
            let guard = below & inside(&place(1), 0, 6);
            let load = n.load(t, vec![place(0), place(1), at[2].clone()]);
            let x = select(guard, load, zero(F32));
            let w = n.load(w, vec![tap(0), tap(1), at[2].clone()]);
            let term = Scalar::binary(Binary::Term, x, w);
            Scalar::reduce(Binary::Add, axes.clone(), zero(F32), term)
        });
        nest.adopt_symbols();
    });
    let plain = nest.clone();
    store_halos(&mut nest);
    verify(&nest).unwrap();
    assert_eq!(
        nest.stage_texts(),
        [
            "for i<1, j<7, k<8: t[i, j, k] = 0.0",
            "for i<1, j<7, k<8: t[((i + extent(s0)) + 1), j, k] = 0.0",
            "for i<s0, j<1, k<8: t[(i + 1), j, k] = 0.0",
            "for i<s0, j<6, k<8: t[(i + 1), (j + 1), k] = (x[i, j, k] + x[i, j, k])",
            "for i<s1, j<3, k<8: y[i, j, k] = \
             add[l<3, m<3; 0.0](term(t[((i * 2) + l), ((j * 2) + m), k], w[l, m, k]))",
        ]
    );
    for lines in [3, 4, 8, 9] {
        let values = symbols.bind(&[lines]).unwrap();
        let [with, without] = [&nest, &plain].map(|nest| run(&nest.bound_to(&values).unwrap()));
        assert!(with == without, "{lines} lines");
    }
}
