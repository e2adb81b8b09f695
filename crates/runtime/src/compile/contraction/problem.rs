//! Contractions as the kernels know them.

use crate::compile::constant_operand::{is_of_left, is_of_right};
use std::cmp::Reverse;
use vinelift_kernels as kernels;
use vinelift_kernels::Element;
use vinelift_nest::{BufferId, Contraction, Factor, Stride, SubNest};
use vinelift_tensor::ElementType;

/// The element types of the contraction of a step.
pub(super) fn element(contraction: &Contraction, step: &SubNest) -> Element {
    let left = step.nest.buf(contraction.left.tensor.buffer).ty;
    match contraction.ty {
        ElementType::F32 => Element::F32,
        ElementType::F64 => Element::F64,
        _ if left == ElementType::U8 => Element::U8I8,
        _ => Element::I8U8,
    }
}

/// The contraction as the kernels know it: each axis by the operands that it moves in; of those that move in the buffer
/// `rows_of` alone the one with the largest stride first.
pub(super) fn problem(
    contraction: &Contraction,
    element: Element,
    rows_of: Option<BufferId>,
) -> kernels::Contraction {
    let mut problem = kernels::Contraction {
        element,
        batch: vec![],
        m: vec![],
        n: vec![],
        k: vec![],
    };
    let (outer, inner) = contraction.axes.split_at(contraction.outer);
    for axis in outer {
        let group = match axis {
            axis if is_of_left(axis) => &mut problem.m,
            axis if is_of_right(axis) => &mut problem.n,
            _ => &mut problem.batch,
        };
        group.push(dim(axis));
    }
    problem.k.extend(inner.iter().map(dim));
    let is_rows = |factor: &Factor| rows_of == Some(factor.tensor.buffer);
    if is_rows(&contraction.left) {
        problem.m.sort_by_key(|dim| Reverse(dim.left));
    } else if is_rows(&contraction.right) {
        problem.n.sort_by_key(|dim| Reverse(dim.right));
    }
    problem
}

/// The number of elements of the results.
pub(super) fn results(problem: &kernels::Contraction) -> usize {
    let dims = [&problem.batch, &problem.m, &problem.n]
        .into_iter()
        .flatten();
    dims.map(|dim| dim.extent).fold(1, usize::saturating_mul)
}

/// How far the operands and the result of a contraction move from turn to turn.
pub(super) fn turn(contraction: &Contraction) -> Stride {
    let still = Stride {
        extent: 1,
        left: 0,
        right: 0,
        out: 0,
    };
    contraction.turn.unwrap_or(still)
}

fn dim(axis: &Stride) -> kernels::Dim {
    kernels::Dim::new(axis.extent, axis.left, axis.right, axis.out)
}
