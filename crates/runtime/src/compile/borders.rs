//! The borders of zeros around the pictures that contractions read: which kernels write these pictures, and where they are zero.

use crate::compile::contraction::operands;
use crate::compile::symbolic_kernel::SymbolicKernel;
use rustc_hash::{FxHashMap, FxHashSet};
use vinelift_nest::{Border, BufferId, Contraction, Nest, Role, Stage};

/// Finds the kernels that write the left operands of contractions, where these are temporaries that are zero in part.
pub(super) fn find_left_writers(nest: &Nest, all: &mut [SymbolicKernel]) {
    let mut writers: FxHashMap<BufferId, Vec<usize>> = FxHashMap::default();
    let mut filled: FxHashSet<BufferId> = FxHashSet::default();
    for (number, symbolic) in all.iter().enumerate() {
        for stage in &symbolic.kernel.stages.nest.stages {
            let target = symbolic.kernel.buffers()[stage.target.0 as usize];
            let of_target = writers.entry(target).or_default();
            if of_target.last() != Some(&number) {
                of_target.push(number);
            }
            if stage.value.as_const() == Some(0) && nest.buf(target).role == Role::Temporary {
                filled.insert(target);
            }
        }
    }
    for symbolic in all.iter_mut().filter(|symbolic| symbolic.is_contraction()) {
        let left = operands(&symbolic.kernel.stages).map(|[left, _]| left);
        if let Some(left) = left.filter(|left| filled.contains(left)) {
            symbolic.left_writers.clone_from(&writers[&left]);
        }
    }
}

/// The borders of zeros of the left operand of kernel `k`, where the symbol of number `s` is `values[s]`.
pub(super) fn left_borders(all: &[SymbolicKernel], k: usize, values: &[usize]) -> Vec<Border> {
    let nest = &all[k].kernel.stages.nest;
    let [stage] = nest.stages.as_slice() else {
        return Vec::new();
    };
    match all[k].left_writers.is_empty() {
        true => Vec::new(),
        false => Contraction::at(nest, stage, values)
            .map(|contraction| borders_of(all, k, &contraction, values))
            .unwrap_or_default(),
    }
}

/// As [`left_borders`], where kernel `k` is this contraction.
pub(super) fn borders_of(
    all: &[SymbolicKernel],
    k: usize,
    contraction: &Contraction,
    values: &[usize],
) -> Vec<Border> {
    let SymbolicKernel {
        kernel,
        left_writers,
        ..
    } = &all[k];
    let nest = &kernel.stages.nest;
    let operand = contraction.left.tensor.buffer;
    let target = kernel.buffers()[operand.0 as usize];
    let writers = left_writers.iter().flat_map(|writer| {
        let writer = &all[*writer].kernel;
        let stages = writer.stages.nest.stages.iter();
        let writes = |stage: &&Stage| writer.buffers()[stage.target.0 as usize] == target;
        stages.filter(writes).map(|s| (&writer.stages.nest, s))
    });
    let writers: Vec<(&Nest, &Stage)> = writers.collect();
    // A contraction without symbols is prepared once for all numbers.
    let may_depend = nest.is_symbolic() || !writers.iter().any(|(w, _)| w.is_symbolic());
    let len = nest.buf(operand).shape.iter().map(|n| n.at(values));
    match len.product::<Option<usize>>() {
        Some(len) if !writers.is_empty() && may_depend => {
            contraction.left_borders(len, &writers, values)
        }
        _ => Vec::new(),
    }
}
