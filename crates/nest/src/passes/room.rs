//! Room to grow: memory that holds something from one run to the next, and to which a run adds along one axis.
//!
//! > `to[.., t, ..] = from[.., t, ..]` for `t < P`, and `to[.., P + t, ..] = …`
//!
//! If both buffers have the same capacity along that axis, every element of `from` has the place in `to` that it had
//! before, and nothing else is written there: `to` may be the memory of `from`, and the copy be left out.

use crate::analysis::Linear;
use crate::build;
use crate::ir::{BufferId, Kind, Mode, Nest, Role, Scalar, Stage};
use vinelift_tensor::Extent;

/// How a buffer takes over what another holds, if that is left where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As it is.
    Same,
    /// Reordered along the first dim by these indices: as it is if they are 0, 1, 2 ….
    By(BufferId),
}

impl Nest {
    /// The axis along which `to` is all of `from`, reordered at most along its first dim, and then more.
    pub fn growth(&self, from: BufferId, to: BufferId) -> Option<usize> {
        let (held, grown) = (self.buf(from), self.buf(to));
        let is_pair = held.role == Role::Input && grown.role == Role::Output;
        let same_type = held.ty == grown.ty && !held.ty.is_packed();
        if !is_pair || !same_type || held.shape.len() != grown.shape.len() {
            return None;
        }
        let dims = held.shape.iter().zip(&grown.shape).enumerate();
        let mut differing = dims.filter(|(_, (a, b))| a != b).map(|(d, _)| d);
        let axis = differing.next().filter(|_| differing.next().is_none())?;
        let writers = self.stages.iter().filter(|s| s.target == to);
        let mut copies = 0;
        for stage in writers {
            match self.copies_held(stage, from) {
                true => copies += 1,
                false if is_behind(stage, axis, held.shape[axis]) => {}
                false => return None,
            }
        }
        (copies == 1).then_some(axis)
    }

    /// Gives both buffers this capacity along `axis`.
    pub fn make_room(&mut self, buffers: [BufferId; 2], axis: usize, capacity: Extent) {
        for buffer in buffers {
            self.buffers[buffer.0 as usize].shape[axis] = capacity;
        }
    }

    /// How a stage makes `to` take over elements of `from`, each at its own place but for the first dim; `None` if it
    /// does anything else.
    pub fn takes_over(&self, stage: &Stage, from: BufferId, to: BufferId) -> Option<Order> {
        let is_set = stage.target == to && stage.mode == Mode::Set && stage.group.is_none();
        let (held, grown) = (&self.buf(from).shape, &self.buf(to).shape);
        let Kind::Load { buffer, at } = stage.value.kind() else {
            return None;
        };
        if *buffer != from || !is_set {
            return None;
        }
        if held == grown {
            return order(at, &stage.at);
        }
        // Flattening has left out the first dim of `to`, in which there is one place.
        match held.split_first() {
            Some((first, rest)) if *first == 1 && rest == grown => {
                let place = [build::index(0)];
                order(at, &[&place, stage.at.as_slice()].concat())
            }
            _ => None,
        }
    }

    /// Whether a stage copies all of `from` to the same places, or to places that differ along the first dim.
    fn copies_held(&self, stage: &Stage, from: BufferId) -> bool {
        let shape = &self.buf(from).shape;
        let extents = stage.domain.iter().map(|a| &a.extent);
        let mut axes = stage.at.iter().zip(&stage.domain);
        let is_whole = stage.at.len() == stage.domain.len()
            && axes.all(|(i, a)| i.is_axis(a.id))
            && extents.eq(shape)
            && stage.mode == Mode::Set
            && stage.group.is_none();
        let Kind::Load { buffer, at } = stage.value.kind() else {
            return false;
        };
        if !is_whole {
            return false;
        }
        if *buffer == from {
            return order(at, &stage.at).is_some();
        }
        let mut definitions = self.stages.iter().filter(|s| s.target == *buffer);
        let definition = definitions.next().filter(|s| s.is_definition(self));
        *at == stage.at
            && definitions.next().is_none()
            && definition.is_some_and(|definition| match definition.value.kind() {
                Kind::Load { buffer, at } => *buffer == from && order(at, &definition.at).is_some(),
                _ => false,
            })
    }
}

/// How elements come from `at` to `to`, if all indices but the first are the same.
fn order(at: &[Scalar], to: &[Scalar]) -> Option<Order> {
    let ((first, rest), (place, others)) = (at.split_first()?, to.split_first()?);
    if rest != others {
        return None;
    }
    if first == place {
        return Some(Order::Same);
    }
    let Kind::Wrap(wrap) = first.kind() else {
        return None;
    };
    match wrap.narrow().kind() {
        Kind::Load { buffer, at } if at.as_slice() == std::slice::from_ref(place) => {
            Some(Order::By(*buffer))
        }
        _ => None,
    }
}

/// Whether a stage sets elements at `start` and behind it along `axis` alone.
fn is_behind(stage: &Stage, axis: usize, start: Extent) -> bool {
    let offset = Linear::of(&stage.at[axis]);
    let mut terms = offset.terms.iter().filter(|(atom, k)| {
        let is_axis = stage.domain.iter().any(|a| atom.is_axis(a.id));
        !(is_axis && *k > 0)
    });
    let first = terms.next();
    let rest = terms.next().is_none();
    let begins_at = match (first, start.number()) {
        (None, Some(start)) => usize::try_from(offset.constant).is_ok_and(|c| c >= start),
        (Some((atom, 1)), None) => {
            let gap = match atom.kind() {
                Kind::Extent(extent) => extent.formula().minus(start.formula()),
                _ => None,
            };
            let least = gap.and_then(|gap| gap.least()?.checked_add(offset.constant));
            least.is_some_and(|least| least >= 0)
        }
        _ => false,
    };
    stage.mode == Mode::Set && stage.group.is_none() && rest && begins_at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::index;
    use crate::ir::{Policy, Site};
    use vinelift_tensor::ElementType::{F32, I32};

    /// `to = concat(from[wrap(order[b])], new)` along dim 1, written from `start` on.
    fn nest(start: i64) -> Nest {
        let mut nest = Nest::new();
        let layer = nest.layer("g", "Gather, opset8");
        let from = nest.buffer("from", F32, &[2, 3, 4], Role::Input);
        let order = nest.buffer("order", I32, &[2], Role::Input);
        let new = nest.buffer("new", F32, &[2, 1, 4], Role::Input);
        let to = nest.buffer("to", F32, &[2, 4, 4], Role::Output);
        let gathered = nest.buffer("gathered", F32, &[2, 3, 4], Role::Temporary);
        let site = Site {
            layer,
            input: "indices".to_owned(),
        };
        nest.define(vec![layer], gathered, |n, at| {
            let found = n.load(order, vec![at[0].clone()]);
            let row = n.wrap(found, 2, Policy::WRAP, site, vec![at[0].clone()]);
            n.load(from, vec![row, at[1].clone(), at[2].clone()])
        });
        for (source, start) in [(gathered, 0), (new, start)] {
            let shape = nest.buf(source).shape.clone();
            let domain = nest.axes(&shape);
            let axes: Vec<Scalar> = domain.iter().map(|a| Scalar::axis(a.id)).collect();
            let mut at = axes.clone();
            if start != 0 {
                at[1] = &at[1] + &index(start);
            }
            let value = nest.load(source, axes);
            nest.stages.push(Stage {
                domain,
                target: to,
                at,
                mode: Mode::Set,
                value,
                layers: vec![layer],
                group: None,
            });
        }
        nest
    }

    #[test]
    fn what_is_added_lies_behind_what_is_held() {
        let (from, to) = (BufferId(0), BufferId(3));
        let mut grown = nest(3);
        assert_eq!(grown.growth(from, to), Some(1));
        assert_eq!(
            nest(2).growth(from, to),
            None,
            "what is held is overwritten"
        );
        grown.make_room([from, to], 1, 9.into());
        crate::fuse(&mut grown);
        let orders = grown.stages.iter().map(|s| grown.takes_over(s, from, to));
        let orders: Vec<Option<Order>> = orders.collect();
        assert_eq!(orders, [Some(Order::By(BufferId(1))), None]);
    }
}
