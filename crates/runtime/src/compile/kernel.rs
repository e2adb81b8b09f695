//! One kernel of a plan, for all values of its symbols.

use std::borrow::Cow;
use vinelift_nest::{Aliases, BufferId, Effects, Nest, SubNest, Work};

/// The stages of a kernel, with what plans ask of them for any numbers.
pub(crate) struct Kernel {
    /// The stages; extents may have symbols.
    pub(crate) stages: SubNest,
    /// The buffers of the whole nest that it reads or writes, each once.
    pub(crate) used: Vec<BufferId>,
    work: Work,
}

impl Kernel {
    pub(crate) fn new(stages: SubNest) -> Kernel {
        let effects = Effects::of_kernel(&stages, &Aliases::default());
        Kernel {
            used: effects.used().collect(),
            work: Work::of(&stages.nest),
            stages,
        }
    }

    /// The nest where the symbol of number `k` is `values[k]`; as it is if an extent is out of bounds then.
    pub(crate) fn nest(&self, values: &[usize]) -> Cow<'_, Nest> {
        let nest = &self.stages.nest;
        match nest.is_symbolic() {
            true => nest
                .bound_to(values)
                .map_or(Cow::Borrowed(nest), Cow::Owned),
            false => Cow::Borrowed(nest),
        }
    }

    /// The buffers of the whole nest behind those of the kernel.
    pub(crate) fn buffers(&self) -> &[BufferId] {
        &self.stages.buffers
    }

    /// The number that a buffer of the whole nest has in the kernel.
    pub(crate) fn local(&self, buffer: BufferId) -> Option<BufferId> {
        self.stages.local(buffer)
    }

    /// Nanoseconds on one thread where the symbol of number `k` is `values[k]`, roughly.
    pub(crate) fn cost(&self, values: &[usize]) -> u64 {
        self.work.at(values) as u64 / 10
    }
}
