//! The schedule: how a stage runs, decided apart from the values that it computes.
//!
//! It consists of passes, which the table in [`passes`](super) lists. Their order matters: copies, halos and padded arrays
//! settle which buffers there are, with indices for each dim; guards are simplified and peeled while each asks about one dim;
//! flattening then makes an access one offset, by which `collapse` sees which axes are one loop; how kernels are cut into
//! chunks comes last.

use crate::compiler_threads;
use crate::ir::Nest;
use crate::passes::array_padding::pad_arrays;
use crate::passes::clamp::clamp_quantized;
use crate::passes::coalesce::coalesce_outer_loops;
use crate::passes::collapse::collapse_axes;
use crate::passes::flatten::flatten_buffers;
use crate::passes::guard_to_index::move_guards_to_indices;
use crate::passes::halo::store_halos;
use crate::passes::in_place::reuse_in_place;
use crate::passes::peel::peel_borders;
use crate::passes::planes::store_planes;
use crate::passes::simplify::simplify_stage;
use crate::passes::split::split_innermost_axes;
use crate::passes::strip_mine::strip_mine_windows;

/// Schedules every stage. Buffers that all stages can address by offset become one-dimensional.
pub fn schedule(nest: &mut Nest) {
    reuse_in_place(nest);
    store_halos(nest);
    pad_arrays(nest);
    let Nest {
        buffers, stages, ..
    } = nest;
    compiler_threads::for_each(stages, |stage| {
        simplify_stage(stage);
        clamp_quantized(buffers, stage);
        move_guards_to_indices(buffers, stage);
    });
    peel_borders(nest);
    store_planes(nest);
    flatten_buffers(nest);
    split_innermost_axes(nest);
    compiler_threads::for_each(&mut nest.stages, collapse_axes);
    coalesce_outer_loops(nest);
    strip_mine_windows(nest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::verify;
    use crate::build::*;
    use crate::ir::{Role, Scalar};
    use vinelift_tensor::ElementType::F32;

    fn scheduled(nest: &mut Nest) -> Vec<String> {
        schedule(nest);
        verify(nest).unwrap();
        nest.stage_texts()
    }

    #[test]
    fn a_contiguous_map_is_one_loop() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[2, 3, 4], Role::Input);
        let y = nest.buffer("y", F32, &[6, 4], Role::Output);
        nest.define(vec![], y, |n, at| {
            n.load(x, vec![&at[0] / 3, at[0].rem(index(3)), at[1].clone()])
                .exp()
        });
        assert_eq!(scheduled(&mut nest), ["for i<24: y[i] = exp(x[i])"]);
    }

    #[test]
    fn the_middle_has_no_guards() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[80], Role::Input);
        let y = nest.buffer("y", F32, &[80], Role::Output);
        nest.define(vec![], y, |n, at| {
            let k = n.axis(3);
            let i = &at[0] + Scalar::axis(k.id) - 1;
            let guard = inside(&i, 0, 80);
            let body = select(guard, n.load(x, vec![i]), zero(F32));
            Scalar::reduce(crate::Binary::Add, vec![k], zero(F32), body)
        });
        assert_eq!(
            scheduled(&mut nest),
            [
                "for i<1: y[0] = add[j<2; 0.0](x[j])",
                "for i<1: y[79] = add[j<2; 0.0](x[(j + 78)])",
                "for i<78: y[(i + 1)] = add[j<3; 0.0](x[(i + j)])",
            ]
        );
    }

    /// A guard in an index, as a pad that repeats the ends has it.
    #[test]
    fn the_middle_of_an_index_has_no_guards() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[80], Role::Input);
        let y = nest.buffer("y", F32, &[83], Role::Output);
        nest.define(vec![], y, |n, at| {
            let i = &at[0] - 1;
            let repeated = i.max(index(0)).min(index(79));
            n.load(x, vec![select(inside(&i, 0, 80), i, repeated)])
        });
        assert_eq!(
            scheduled(&mut nest),
            [
                "for i<1: y[0] = x[0]",
                "for i<2: y[(i + 81)] = x[79]",
                "for i<80: y[(i + 1)] = x[i]",
            ]
        );
    }

    #[test]
    fn only_what_steps_together_joins() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[4, 2, 3], Role::Input);
        let y = nest.buffer("y", F32, &[2, 3, 4], Role::Output);
        nest.define(vec![], y, |n, at| {
            n.load(x, vec![at[2].clone(), at[0].clone(), at[1].clone()])
        });
        assert_eq!(
            scheduled(&mut nest),
            ["for i<6, j<4: y[((i * 4) + j)] = x[((j * 6) + i)]"]
        );
        let mut nest = Nest::new();
        let bias = nest.buffer("bias", F32, &[3], Role::Input);
        let y = nest.buffer("y", F32, &[2, 3], Role::Output);
        nest.define(vec![], y, |n, at| n.load(bias, vec![at[1].clone()]));
        assert_eq!(
            scheduled(&mut nest),
            ["for i<2, j<3: y[((i * 3) + j)] = bias[j]"]
        );
    }
}
