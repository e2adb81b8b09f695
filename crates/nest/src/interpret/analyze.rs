//! Facts about a program's nodes before it runs: when their values hold, and in which order
//! they are evaluated.

use super::InterpretError;
use super::program::{Fold, Id, Node, Op, malformed};

/// How deep reductions may nest.
const MAX_NESTING: usize = 64;

/// Sets the level of each node: that of the innermost axis which it depends on. Axes have theirs already.
pub(super) fn set_levels(nodes: &mut [Node], axes: usize, target: usize, domain: usize) {
    let words = axes.div_ceil(64);
    // The axes that each node depends on, as bits.
    let mut varies = vec![0u64; nodes.len() * words];
    for n in 0..nodes.len() {
        let (before, own) = varies.split_at_mut(n * words);
        let own = &mut own[..words];
        let mut add = |x: Id| {
            let of = &before[x as usize * words..][..words];
            own.iter_mut().zip(of).for_each(|(a, b)| *a |= b);
        };
        match &nodes[n].op {
            Op::Select(condition, yes, no) => [*condition, *yes, *no].into_iter().for_each(add),
            Op::Reduce(fold) => {
                add(fold.body);
                for axis in &fold.axes {
                    let bit = axis.level - 1;
                    own[bit / 64] &= !(1 << (bit % 64));
                }
                let of = &before[fold.init as usize * words..][..words];
                own.iter_mut().zip(of).for_each(|(a, b)| *a |= b);
            }
            op => op.for_each_needed(nodes, &mut add),
        }
        let mut mark = |bit: usize| own[bit / 64] |= 1 << (bit % 64);
        match nodes[n].op {
            // Each point may change what the next one reads.
            Op::Load { buffer, .. } if buffer == target && domain > 0 => mark(domain - 1),
            Op::Given(_) if nodes[n].level > 0 => mark(nodes[n].level as usize - 1),
            _ => {}
        }
        let top = own.iter().rposition(|&word| word != 0);
        let level = top.map_or(0, |w| w * 64 + 64 - own[w].leading_zeros() as usize);
        // Given values are always valid.
        nodes[n].level = if matches!(nodes[n].op, Op::Given(_)) {
            0
        } else {
            level as u32
        };
    }
}

/// Reductions in the bodies of reductions are the one recursion of the machine.
pub(super) fn check_nesting(nodes: &[Node]) -> Result<(), InterpretError> {
    let mut depths = vec![0; nodes.len()];
    for (n, node) in nodes.iter().enumerate() {
        let mut depth = 0;
        let mut deepen = |x: Id| depth = depths[x as usize].max(depth);
        node.op.for_each_needed(nodes, &mut deepen);
        match &node.op {
            Op::Select(_, yes, no) => [*yes, *no].into_iter().for_each(deepen),
            Op::Wrap(wrap) => wrap.position.iter().copied().for_each(deepen),
            Op::Reduce(fold) => depth = depths[fold.body as usize].max(depth) + 1,
            _ => {}
        }
        depths[n] = depth;
    }
    match depths.iter().any(|&depth| depth > MAX_NESTING) {
        true => Err(malformed(format!(
            "more than {MAX_NESTING} reductions in each other"
        ))),
        false => Ok(()),
    }
}

/// Finds what each reduction evaluates per point.
pub(super) fn set_steps(nodes: &mut [Node]) {
    let mut needed = Needed::new(nodes.len());
    for n in 0..nodes.len() {
        if let Op::Reduce(Fold { body, .. }) = nodes[n].op {
            let found = needed.steps(nodes, &[body]);
            if let Op::Reduce(fold) = &mut nodes[n].op {
                fold.steps = found;
            }
        }
    }
}

/// Collects what roots need, in order.
pub(super) struct Needed {
    seen: Vec<u32>,
    round: u32,
}

impl Needed {
    pub(super) fn new(nodes: usize) -> Needed {
        Needed {
            seen: vec![0; nodes],
            round: 0,
        }
    }

    pub(super) fn steps(&mut self, nodes: &[Node], roots: &[Id]) -> Box<[Id]> {
        self.round += 1;
        let (mut steps, mut stack) = (vec![], roots.to_vec());
        while let Some(n) = stack.pop() {
            if std::mem::replace(&mut self.seen[n as usize], self.round) != self.round {
                let op = &nodes[n as usize].op;
                if !matches!(op, Op::Given(_)) {
                    steps.push(n);
                }
                op.for_each_needed(nodes, |x| stack.push(x));
            }
        }
        steps.sort_unstable();
        steps.into()
    }
}
