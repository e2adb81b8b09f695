//! How the kernels of a nest may be run with each other's tasks: what is found out once, for all shapes.

use crate::compile::chain::{MOST_BUFFERS, OwnResults, window_element};
use crate::compile::consumer::reach;
use crate::compile::forms::Forms;
use crate::compile::kernel::Kernel;
use crate::compile::link::Link;
use crate::compile::made_rows::MadeRows;
use crate::compile::symbolic_kernel::{Coupling, SymbolicKernel};
use rustc_hash::FxHashMap;
use std::ops::Range;
use vinelift_nest::{Aliases, Footprint, Nest};

/// Finds the [`Coupling`] of each kernel of a nest.
pub(super) struct Couplings<'n> {
    nest: &'n Nest,
    aliases: &'n Aliases,
    /// How many kernels use each buffer of the nest.
    users: Vec<u32>,
    forms: Forms,
}

impl<'n> Couplings<'n> {
    /// For these kernels of `nest`, whose nests have these `canonical` forms; `aliases` are buffers that may be the same memory.
    pub(super) fn new<'k>(
        nest: &'n Nest,
        aliases: &'n Aliases,
        kernels: impl Iterator<Item = &'k Kernel>,
        canonical: &[Nest],
    ) -> Couplings<'n> {
        let mut users = vec![0; nest.buffers.len()];
        for buffer in kernels.flat_map(|kernel| &kernel.used) {
            users[buffer.0 as usize] += 1;
        }
        Couplings {
            nest,
            aliases,
            users,
            forms: Forms::of(canonical),
        }
    }

    /// The coupling of the kernel that comes after those of `before`.
    pub(super) fn of(
        &mut self,
        before: &[SymbolicKernel],
        kernel: &Kernel,
        is_contraction: bool,
    ) -> Coupling {
        match is_contraction {
            true => Coupling {
                link: self.link(before, kernel),
                made_rows: self.made_rows(before, kernel),
                ..Coupling::default()
            },
            false => Coupling {
                reach: self.reach(before, kernel),
                own_results: self.own_results(before, kernel),
                ..Coupling::default()
            },
        }
    }

    /// How code uses the results of the last kernel before it, if that is a contraction with which it may be fused.
    fn reach(&mut self, before: &[SymbolicKernel], code: &Kernel) -> Option<Footprint> {
        let contraction = before.last().filter(|last| last.is_contraction())?;
        let coupling = &contraction.coupling;
        let chained = if coupling.link.is_some() { 3 } else { 1 };
        let made_rows = coupling.made_rows.as_ref();
        let makes_rows = made_rows.map(|rows| &before[before.len() - 1 - rows.distance]);
        let producers = makes_rows
            .into_iter()
            .chain(&before[before.len() - chained..]);
        let producers = producers.map(|producer| &producer.kernel.stages);
        let results = reach(producers, &code.stages, self.aliases)?;
        self.forms.footprint(before.len(), &code.stages, results)
    }

    /// The results of the last kernel before this code, if that is a contraction and no other kernel uses them.
    fn own_results(&self, before: &[SymbolicKernel], code: &Kernel) -> Option<OwnResults> {
        let contraction = before.last().filter(|last| last.is_contraction())?;
        let [stage] = contraction.kernel.stages.nest.stages.as_slice() else {
            return None;
        };
        let buffer = contraction.kernel.buffers()[stage.target.0 as usize];
        let size = window_element(self.nest.buf(buffer))?;
        let is_own = code.local(buffer).is_some()
            && self.users[buffer.0 as usize] == 2
            && code.buffers().len() <= MOST_BUFFERS;
        is_own.then_some(OwnResults { buffer, size })
    }

    /// How a contraction may be chained to the last two kernels before it.
    fn link(&mut self, before: &[SymbolicKernel], contraction: &Kernel) -> Option<Link> {
        let [.., first, code] = before else {
            return None;
        };
        code.coupling.reach.as_ref()?;
        let chained = [first, code].map(|symbolic| &symbolic.kernel.stages);
        let chained = [chained[0], chained[1], &contraction.stages];
        let (number, stages) = (before.len() - 1, &code.kernel.stages);
        let footprint = |buffer| self.forms.footprint(number, stages, buffer);
        Link::of(self.nest, chained, self.aliases, &self.users, footprint)
    }

    /// The rows of a contraction that code before it makes, if its tasks may make them.
    fn made_rows(&mut self, before: &[SymbolicKernel], contraction: &Kernel) -> Option<MadeRows> {
        let stages = before.iter().map(|symbolic| &symbolic.kernel.stages);
        let forms = &mut self.forms;
        let footprint = |distance: usize, buffer| {
            let number = before.len() - distance;
            before[number].function.as_ref()?;
            forms.footprint(number, &before[number].kernel.stages, buffer)
        };
        MadeRows::of(
            self.nest,
            stages,
            &contraction.stages,
            self.aliases,
            &self.users,
            footprint,
        )
    }

    /// Has each kernel know the first that [is alike](Self::are_alike).
    pub(super) fn find_alike(&self, all: &mut [SymbolicKernel]) {
        let mut firsts: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
        for k in 0..all.len() {
            let firsts = firsts.entry(self.forms.number(k)).or_default();
            let mut alike = firsts
                .iter()
                .filter(|first| self.are_alike(all, **first, k));
            match alike.next().copied() {
                Some(first) => all[k].first_alike = first,
                None => firsts.push(k),
            }
        }
    }

    /// Whether two contractions of the same form are followed by the same kernels, and chained in the same way to what is
    /// before them.
    fn are_alike(&self, all: &[SymbolicKernel], a: usize, b: usize) -> bool {
        let rows_of = |k: usize| {
            let link = all[k].coupling.link.as_ref()?;
            all[k].kernel.local(link.operand)
        };
        let [next_to_a, next_to_b] = [a, b].map(|k| consumers(all, k));
        let is_same = |(c, d): (usize, usize)| {
            let [c_reach, d_reach] = [c, d].map(|k| all[k].coupling.reach.as_ref());
            self.forms.number(c) == self.forms.number(d) && c_reach == d_reach
        };
        rows_of(a) == rows_of(b)
            && next_to_a.len() == next_to_b.len()
            && next_to_a.zip(next_to_b).all(is_same)
    }
}

/// The kernels that may be fused with the contraction `k`: code, and maybe a contraction that is chained to both.
pub(super) fn consumers(all: &[SymbolicKernel], k: usize) -> Range<usize> {
    let coupling = |k: usize| all.get(k).map(|symbolic| &symbolic.coupling);
    let has_code = coupling(k + 1).is_some_and(|next| next.reach.is_some());
    let is_chained = has_code && coupling(k + 2).is_some_and(|last| last.link.is_some());
    let count = match (has_code, is_chained) {
        (false, _) => 0,
        (true, false) => 1,
        (true, true) => 2,
    };
    k + 1..k + 1 + count
}
