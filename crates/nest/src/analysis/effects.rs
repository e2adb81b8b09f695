//! Effects: the buffers that stages read and write, and which stages therefore may be merged, run beside each other,
//! or be repeated.
//!
//! A pass or a runtime that moves, shares or repeats work asks here, and a comment on safety cites the answer:
//!
//! | question | asked by |
//! |---|---|
//! | [`Effects::uses`]: is a buffer still needed, or needed already? | in-place, journals, arena |
//! | [`Effects::may_overlap`]: may parts of a kernel run beside the rest of the one before it? | tasks that follow a contraction |
//! | [`Effects::may_repeat`]: does a second run, after one that ended early, leave what one run leaves? | vector loops that start again point by point |
//! | [`Effects::faults_again`]: does a second run, on what the first has left, meet the same faults? | parts that run again to find the first fault |
//!
//! These are answers about whole buffers. Which elements the turns of a loop use is said by
//! [`ParallelChunks`](crate::ParallelChunks) and [`Footprint`](crate::Footprint). Buffers are different memory unless [`Aliases`] says
//! otherwise.

use crate::ir::{BufferId, Mode, Stage, SubNest};

/// The buffers that some stages read and write, as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Buffers that are loaded from, each once.
    loads: Vec<BufferId>,
    /// Targets, each once.
    writes: Vec<BufferId>,
    /// Targets that values are combined with, each once: what these held is read, too.
    combines: Vec<BufferId>,
}

/// Buffers that may be the same memory although their ids differ.
#[derive(Clone, Debug, Default)]
pub struct Aliases(Vec<[BufferId; 2]>);

impl Aliases {
    /// Has two buffers be the same memory.
    pub fn join(&mut self, a: BufferId, b: BufferId) {
        let [a, b] = [self.representative(a), self.representative(b)];
        if a != b {
            self.0.push([a.max(b), a.min(b)]);
        }
    }

    /// The one buffer by which all that share the memory of `buffer` are known.
    fn representative(&self, buffer: BufferId) -> BufferId {
        let mut found = buffer;
        // Pairs lead to smaller ids, so this ends.
        while let Some([_, other]) = self.0.iter().find(|[alias, _]| *alias == found) {
            found = *other;
        }
        found
    }
}

impl Effects {
    /// The effects of one stage.
    pub fn of_stage(stage: &Stage) -> Effects {
        Effects::of([stage])
    }

    /// The effects of several stages together.
    pub fn of<'s>(stages: impl IntoIterator<Item = &'s Stage>) -> Effects {
        let mut all = Effects::default();
        for stage in stages {
            stage
                .loads()
                .into_iter()
                .for_each(|b| insert(&mut all.loads, b));
            insert(&mut all.writes, stage.target);
            if matches!(stage.mode, Mode::Combine(_)) {
                insert(&mut all.combines, stage.target);
            }
        }
        all
    }

    /// The effects of a kernel, by the buffers of the nest that it was taken from; aliases are one buffer.
    pub fn of_kernel(kernel: &SubNest, aliases: &Aliases) -> Effects {
        let Effects {
            loads,
            writes,
            combines,
        } = Effects::of(&kernel.nest.stages);
        let outside = |buffers: Vec<BufferId>| {
            let mut found = Vec::with_capacity(buffers.len());
            for buffer in buffers {
                let buffer = kernel.buffers[buffer.0 as usize];
                insert(&mut found, aliases.representative(buffer));
            }
            found
        };
        Effects {
            loads: outside(loads),
            writes: outside(writes),
            combines: outside(combines),
        }
    }

    /// The effects of these and of others together.
    pub fn and(mut self, other: &Effects) -> Effects {
        let all = [
            (&mut self.loads, &other.loads),
            (&mut self.writes, &other.writes),
            (&mut self.combines, &other.combines),
        ];
        for (own, more) in all {
            more.iter().for_each(|buffer| insert(own, *buffer));
        }
        self
    }

    /// Whether a buffer is loaded from.
    pub fn loads(&self, buffer: BufferId) -> bool {
        self.loads.contains(&buffer)
    }

    /// Whether a buffer is written.
    pub fn writes(&self, buffer: BufferId) -> bool {
        self.writes.contains(&buffer)
    }

    /// Whether a buffer is written, and no other is.
    pub fn writes_only(&self, buffer: BufferId) -> bool {
        self.writes == [buffer]
    }

    /// Whether a buffer is read or written.
    pub fn uses(&self, buffer: BufferId) -> bool {
        self.loads(buffer) || self.writes(buffer)
    }

    /// The buffers that are read or written, each once.
    pub fn used(&self) -> impl Iterator<Item = BufferId> + '_ {
        let only_written = self.writes.iter().filter(|b| !self.loads(**b));
        self.loads.iter().chain(only_written).copied()
    }

    /// Whether parts of a kernel with these effects may run while `first`, the kernel before it, still runs,
    /// given that each part uses only elements of `results` which are complete. It is so if `results` is all
    /// that they share: this kernel only loads from it, writes nothing that `first` uses, and loads nothing else
    /// that `first` writes.
    pub fn may_overlap(&self, first: &Effects, results: BufferId, aliases: &Aliases) -> bool {
        let results = aliases.representative(results);
        let is_apart = |b: &BufferId| !first.uses(*b);
        let is_complete = |b: &BufferId| *b == results || !first.writes(*b);
        self.writes.iter().all(is_apart) && self.loads.iter().all(is_complete)
    }

    /// Whether these stages, begun and given up anywhere, may begin again from the first point and then leave
    /// what one run would have left: they load nothing that they write.
    pub fn may_repeat(&self) -> bool {
        self.faults_again() && self.combines.is_empty()
    }

    /// Whether a run on what another has left meets the same faults: no index or guard is loaded from what these
    /// stages write. What targets hold may differ.
    pub fn faults_again(&self) -> bool {
        !self.loads.iter().any(|b| self.writes(*b))
    }
}

fn insert(buffers: &mut Vec<BufferId>, buffer: BufferId) {
    if !buffers.contains(&buffer) {
        buffers.push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::*;
    use crate::ir::{Binary, Nest, Role};
    use vinelift_tensor::ElementType::F32;

    /// `t = f(x)`, `z (op)= t`: two kernels of a nest that has buffers `x`, `t` and `z`.
    fn two(
        mode: Mode,
        target: impl Fn(BufferId, BufferId) -> BufferId,
    ) -> ([SubNest; 2], BufferId) {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[4], Role::Temporary);
        let t = nest.buffer("t", F32, &[4], Role::Temporary);
        let z = nest.buffer("z", F32, &[4], Role::Output);
        nest.define(vec![], t, |n, at| n.load(x, at.to_vec()).exp());
        nest.define(vec![], target(x, z), |n, at| n.load(t, at.to_vec()));
        nest.stages[1].mode = mode;
        ([nest.extract(0..1), nest.extract(1..2)], t)
    }

    fn follows((kernels, results): ([SubNest; 2], BufferId), aliases: &Aliases) -> bool {
        let [first, next] = kernels.each_ref().map(|k| Effects::of_kernel(k, aliases));
        next.may_overlap(&first, results, aliases)
    }

    #[test]
    fn a_kernel_does_not_follow_one_that_reads_what_it_writes() {
        let add = Mode::Combine(Binary::Add);
        let none = Aliases::default();
        assert!(follows(two(add, |_, z| z), &none));
        assert!(!follows(two(add, |x, _| x), &none));
        assert!(!follows(two(Mode::Set, |x, _| x), &none));
        // The same memory by another name.
        let mut aliases = Aliases::default();
        let (kernels, results) = two(add, |_, z| z);
        aliases.join(kernels[1].buffers[1], kernels[0].buffers[0]);
        assert!(!follows((kernels, results), &aliases));
    }

    #[test]
    fn only_what_reads_nothing_of_its_own_may_be_repeated() {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[5], Role::Input);
        let y = nest.buffer("y", F32, &[5], Role::Output);
        nest.define(vec![], y, |n, at| n.load(x, at.to_vec()));
        let mut stage = nest.stages[0].clone();
        let effects = Effects::of_stage(&stage);
        assert!(effects.may_repeat() && effects.faults_again());
        assert_eq!(effects.used().collect::<Vec<_>>(), [x, y]);
        stage.mode = Mode::Combine(Binary::Add);
        let effects = Effects::of_stage(&stage);
        assert!(!effects.may_repeat() && effects.faults_again());
        stage.mode = Mode::Set;
        stage.value = nest.load(y, vec![index(1)]);
        let effects = Effects::of_stage(&stage);
        assert!(!effects.may_repeat() && !effects.faults_again());
        assert_eq!(effects.used().collect::<Vec<_>>(), [y]);
    }

    #[test]
    fn aliases_of_aliases_are_one_buffer() {
        let mut aliases = Aliases::default();
        let [a, b, c, d] = [4, 2, 7, 3].map(BufferId);
        aliases.join(a, b);
        aliases.join(c, d);
        assert_ne!(aliases.representative(a), aliases.representative(c));
        aliases.join(a, c);
        let all = [a, b, c, d].map(|x| aliases.representative(x));
        assert_eq!(all, [b; 4]);
    }
}
