//! The steps in which graphs grow, and the families that have some of them more often than others.

mod contraction;
mod elementwise;
mod in_place;
mod index;
mod layout;
mod quantized;
mod recurrent;
mod reduction;
mod state;
mod sub_graph;
mod window;

use super::grow::Step;
use contraction::{attention, mat_mul};
use elementwise::{binary, chain, convert, logic, select, unary};
use in_place::in_place;
use index::{gather, gather_elements, gather_nd, scatter_elements, scatter_nd, scatter_update};
use layout::{concat, pad, reshape, roll, slice, split, transpose, widen};
use quantized::{fake_quantize, quantized};
use recurrent::recurrent;
use reduction::{cum_sum, norm, reduce, softmax, top_k};
use state::variable;
use sub_graph::{condition, iterator, repetition};
use window::{convolution, deconvolution, grouped, pool};

/// Graphs of a kind.
pub(crate) struct Family {
    pub(crate) name: &'static str,
    /// Every graph has at least one of these steps.
    pub(crate) steps: &'static [Step],
    /// Whether the first dim of inputs is unknown.
    pub(crate) batch: bool,
    /// Whether tensors are larger than caches.
    pub(crate) huge: bool,
    /// Whether inputs are of many types.
    pub(crate) types: bool,
}

const fn family(name: &'static str, steps: &'static [Step]) -> Family {
    Family {
        name,
        steps,
        batch: false,
        huge: false,
        types: false,
    }
}

pub(crate) const FAMILIES: &[Family] = &[
    family("updates in place", &[in_place]),
    family("contractions", &[mat_mul]),
    family(
        "scatters",
        &[
            scatter_elements,
            scatter_elements,
            scatter_update,
            scatter_nd,
        ],
    ),
    family("gathers", &[gather, gather_elements, gather_nd]),
    family(
        "windows",
        &[convolution, convolution, grouped, deconvolution, pool],
    ),
    family("variables", &[variable]),
    family("sub-graphs", &[condition, iterator, repetition]),
    family("attention", &[attention]),
    family("quantized", &[quantized, quantized, fake_quantize]),
    family("reductions", &[reduce, softmax, norm, cum_sum, top_k]),
    family(
        "layout",
        &[transpose, reshape, slice, split, concat, pad, widen, roll],
    ),
    Family {
        batch: true,
        ..family("unknown batch", &[mat_mul, unary, in_place, softmax])
    },
    Family {
        huge: true,
        ..family("larger than caches", HUGE)
    },
    Family {
        types: true,
        ..family(
            "many types",
            &[convert, select, logic, binary, scatter_elements, transpose],
        )
    },
    family("recurrent", &[recurrent]),
    family("elementwise", &[chain, binary, select]),
];

/// All steps, as often as they are to be taken.
#[rustfmt::skip]
pub(crate) const ALL: &[Step] = &[
    in_place, in_place, in_place, in_place, unary, unary, unary, binary, binary, binary, binary, chain, chain,
    mat_mul, mat_mul, mat_mul, mat_mul, mat_mul, mat_mul, attention, quantized, fake_quantize, convolution,
    convolution, grouped, deconvolution, pool, reduce, reduce, reduce, softmax, norm, norm, cum_sum, top_k,
    transpose, transpose, transpose, reshape, reshape, slice, slice, split, concat, concat, pad, widen, roll,
    gather, gather_elements, gather_elements, gather_nd, scatter_elements, scatter_elements, scatter_elements,
    scatter_update, scatter_nd, convert, convert, select, logic, variable, condition, iterator, repetition,
];

/// Steps that are quick even if tensors are huge.
pub(crate) const HUGE: &[Step] = &[
    gather,
    gather_elements,
    gather_elements,
    gather_nd,
    scatter_elements,
    scatter_elements,
    scatter_update,
    scatter_nd,
    transpose,
    transpose,
    unary,
    binary,
    slice,
    concat,
    roll,
    cum_sum,
    reduce,
    softmax,
    convert,
];
