//! Facts about each scalar of a stage.

use rustc_hash::FxHashMap;
use std::rc::Rc;
use vinelift_nest::{AxisId, BufferId, Kind, Scalar, Stage};
use vinelift_tensor::ElementType;

/// About each scalar of a stage, by address.
#[derive(Default)]
pub(crate) struct Facts {
    known: FxHashMap<usize, Fact>,
}

#[derive(Clone)]
struct Fact {
    /// The axes that it depends on and does not bind, in ascending order.
    free: Rc<[AxisId]>,
    /// Whether it reads memory, can fault or loops.
    effect: bool,
    /// Whether it converts from or to `f16`, which only vector loops can.
    halves: bool,
}

impl Facts {
    pub(crate) fn of_stage(&mut self, stage: &Stage) {
        self.known.clear();
        let mut domain: Vec<AxisId> = stage.domain.iter().map(|axis| axis.id).collect();
        domain.sort_unstable();
        let domain: Rc<[AxisId]> = domain.into();
        let none: Rc<[AxisId]> = Rc::new([]);
        let mut open: Vec<(&Scalar, bool)> = stage
            .at
            .iter()
            .chain([&stage.value])
            .map(|x| (x, false))
            .collect();
        while let Some((x, children_done)) = open.pop() {
            if self.known.contains_key(&x.address()) {
                continue;
            }
            if children_done {
                let fact = self.fact(x, stage.target, [&none, &domain]);
                self.known.insert(x.address(), fact);
            } else {
                open.push((x, true));
                open.extend(x.children().map(|child| (child, false)));
            }
        }
    }

    /// About a scalar whose operands are known; `none` is no axes, and `domain` all of the stage's domain.
    fn fact(&self, x: &Scalar, target: BufferId, [none, domain]: [&Rc<[AxisId]>; 2]) -> Fact {
        let mut free = none.clone();
        let mut effect = matches!(
            x.kind(),
            Kind::Load { .. } | Kind::Wrap(_) | Kind::Reduce { .. }
        );
        let is_half = |x: &Scalar| x.ty() == ElementType::F16;
        let mut halves = matches!(x.kind(), Kind::Cast(from) if is_half(x) || is_half(from));
        for child in x.children() {
            let child = &self.known[&child.address()];
            free = union(&free, &child.free);
            effect |= child.effect;
            halves |= child.halves;
        }
        match x.kind() {
            Kind::Axis(id) => free = Rc::new([*id]),
            // It changes from point to point.
            Kind::Load { buffer, .. } if *buffer == target => free = union(&free, domain),
            Kind::Reduce { axes, .. } => {
                let bound = |id: &AxisId| axes.iter().any(|axis| axis.id == *id);
                free = free.iter().copied().filter(|id| !bound(id)).collect();
            }
            _ => {}
        }
        Fact {
            free,
            effect,
            halves,
        }
    }

    pub(crate) fn free(&self, x: &Scalar) -> &[AxisId] {
        self.known.get(&x.address()).map_or(&[], |fact| &fact.free)
    }

    /// Whether the scalar at an address depends on an axis, as far as is known.
    pub(crate) fn depends(&self, address: usize, axis: AxisId) -> bool {
        let fact = self.known.get(&address);
        fact.is_none_or(|fact| fact.free.contains(&axis))
    }

    pub(crate) fn converts_halves(&self, x: &Scalar) -> bool {
        self.known.get(&x.address()).is_none_or(|fact| fact.halves)
    }

    pub(crate) fn has_effect(&self, x: &Scalar) -> bool {
        self.known.get(&x.address()).is_none_or(|fact| fact.effect)
    }
}

fn union(a: &Rc<[AxisId]>, b: &Rc<[AxisId]>) -> Rc<[AxisId]> {
    if Rc::ptr_eq(a, b) || b.is_empty() {
        return a.clone();
    }
    let within = |a: &[AxisId], b: &[AxisId]| a.iter().all(|id| b.binary_search(id).is_ok());
    if within(b, a) {
        return a.clone();
    }
    if within(a, b) {
        return b.clone();
    }
    let mut all: Vec<AxisId> = a.iter().chain(b.iter()).copied().collect();
    all.sort_unstable();
    all.dedup();
    all.into()
}
