//! The key of a plan: the shapes and values that a part of a model is specialised to.

use vinelift_graph::{Known, ShapeValue, TensorId};
use vinelift_tensor::{Shape, Tensor};

/// The shapes and values that a plan of a segment is specialised to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PlanKey {
    /// Of the inputs.
    pub(crate) shapes: Vec<Shape>,
    /// Of the tensors that earlier segments have computed, in order.
    pub(crate) computed: Vec<(TensorId, Shape)>,
    /// Values that were waited for, in order.
    pub(crate) values: Vec<(TensorId, Shape, Value)>,
    /// How much the memory takes of tensors that have room for more, in order.
    pub(crate) room: Vec<(TensorId, usize)>,
}

/// A value that was waited for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Value {
    /// A few integers, as those from which shapes are computed.
    Numbers(Vec<i64>),
    /// All else.
    Bytes(Vec<u8>),
}

/// All of a key but its numbers, which are extents, and integers that were waited for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct KeyKind {
    ranks: Vec<usize>,
    computed: Vec<(TensorId, usize)>,
    values: Vec<(TensorId, Shape, Option<Vec<u8>>)>,
    room: Vec<TensorId>,
}

impl Value {
    pub(crate) fn of(tensor: &Tensor) -> Value {
        match tensor.strings() {
            Some(strings) => Value::Bytes(told_apart(strings)),
            None if ShapeValue::may_be(tensor) => {
                let numbers = tensor.to_i64_vec();
                numbers.map_or_else(|_| Value::Bytes(tensor.bytes().to_vec()), Value::Numbers)
            }
            None => Value::Bytes(tensor.bytes().to_vec()),
        }
    }

    pub(crate) fn numbers(&self) -> &[i64] {
        match self {
            Value::Numbers(numbers) => numbers,
            Value::Bytes(_) => &[],
        }
    }
}

/// The bytes of strings, each after its length, so that other strings have other bytes.
fn told_apart(strings: &[String]) -> Vec<u8> {
    let bytes = |s: &String| [&(s.len() as u64).to_le_bytes(), s.as_bytes()].concat();
    strings.iter().flat_map(bytes).collect()
}

impl KeyKind {
    /// Has these tensors, and no others, have room.
    pub(crate) fn set_room(&mut self, mut tensors: Vec<TensorId>) {
        tensors.sort_unstable();
        self.room = tensors;
    }
}

impl PlanKey {
    pub(crate) fn new(shapes: &[Shape], known: &Known) -> PlanKey {
        let mut computed: Vec<(TensorId, Shape)> = known
            .computed
            .iter()
            .filter_map(|(t, ty)| Some((*t, ty.shape.to_static()?)))
            .collect();
        computed.sort_unstable();
        let mut values: Vec<(TensorId, Shape, Value)> = known
            .values
            .iter()
            .map(|(t, v)| (*t, v.shape().to_vec(), Value::of(v)))
            .collect();
        values.sort_unstable();
        let room = known.room.iter().map(|(t, n)| (*t, n.example()));
        let mut room: Vec<(TensorId, usize)> = room.collect();
        room.sort_unstable();
        PlanKey {
            shapes: shapes.to_vec(),
            computed,
            values,
            room,
        }
    }

    /// All numbers: the extents of the inputs, those of computed tensors, integers that were waited for, and what the
    /// memory takes of tensors that have room.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = i64> {
        let computed = self.computed.iter().map(|(_, shape)| shape);
        let number = |n: &usize| i64::try_from(*n).unwrap_or(i64::MAX);
        let extents = self.shapes.iter().chain(computed).flatten().map(number);
        let values = self.values.iter().flat_map(|(.., value)| value.numbers());
        let room = self.room.iter().map(move |(_, n)| number(n));
        extents.chain(values.copied()).chain(room)
    }

    /// The key after `steps` more runs, if each extent goes on growing by as much as from `before` to this key, with room for that.
    /// `None` if the two keys are of different kinds, or if an extent shrank, or grew by more than `LONGEST`.
    pub(crate) fn after(&self, before: &PlanKey, steps: usize) -> Option<PlanKey> {
        const LONGEST: usize = 8;
        if self.kind() != before.kind() {
            return None;
        }
        let on = |n: &mut usize, before: usize| {
            let step = n.checked_sub(before).filter(|step| *step <= LONGEST)?;
            *n = n.checked_add(steps * step)?;
            Some(())
        };
        let mut key = self.clone();
        let own = key.computed.iter_mut().map(|(_, shape)| shape);
        let own = key.shapes.iter_mut().chain(own).flatten();
        let other = before.computed.iter().map(|(_, shape)| shape);
        let other = before.shapes.iter().chain(other).flatten();
        own.zip(other).try_for_each(|(n, before)| on(n, *before))?;
        for (_, room) in &mut key.room {
            *room = room.checked_add(steps * LONGEST)?;
        }
        Some(key)
    }

    /// The key without its numbers.
    pub(crate) fn kind(&self) -> KeyKind {
        let computed = self.computed.iter();
        let values = self.values.iter();
        let bytes = |value: &Value| match value {
            Value::Numbers(_) => None,
            Value::Bytes(bytes) => Some(bytes.clone()),
        };
        KeyKind {
            ranks: self.shapes.iter().map(Vec::len).collect(),
            computed: computed.map(|(t, shape)| (*t, shape.len())).collect(),
            values: values
                .map(|(t, shape, value)| (*t, shape.clone(), bytes(value)))
                .collect(),
            room: self.room.iter().map(|(tensor, _)| *tensor).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vinelift_graph::NodeIndex;

    /// Strings have no bytes, and count all the same.
    #[test]
    fn values_of_strings_tell_keys_apart() {
        let tensor = TensorId {
            node: NodeIndex::new(0),
            output: 0,
        };
        let kind = |texts: [&str; 2]| {
            let mut known = Known::default();
            let value = Tensor::from_strings(&[2], texts.map(str::to_owned).to_vec()).unwrap();
            known.values.insert(tensor, value);
            PlanKey::new(&[vec![2, 3]], &known).kind()
        };
        assert_eq!(kind(["a", "b"]), kind(["a", "b"]));
        assert_ne!(kind(["a", "b"]), kind(["a", "c"]));
        assert_ne!(kind(["a\0", "b"]), kind(["a", "\0b"]));
    }
}
