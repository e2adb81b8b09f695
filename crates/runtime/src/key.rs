//! What a part of a model is specialised to.

use vinelift_graph::{Known, TensorId};
use vinelift_tensor::{Shape, Tensor};

/// What a segment is specialised to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// Of the inputs.
    pub(crate) shapes: Vec<Shape>,
    /// Of the tensors that earlier segments have computed, in order.
    pub(crate) computed: Vec<(TensorId, Shape)>,
    /// Values that were waited for, in order.
    values: Vec<(TensorId, Shape, Vec<u8>)>,
}

impl Key {
    pub(crate) fn new(shapes: &[Shape], known: &Known) -> Key {
        let mut computed: Vec<(TensorId, Shape)> = known
            .computed
            .iter()
            .filter_map(|(t, ty)| Some((*t, ty.shape.to_static()?)))
            .collect();
        computed.sort_unstable();
        let bytes = |t: &Tensor| match t.strings() {
            Some(strings) => strings.join("\0").into_bytes(),
            None => t.bytes().to_vec(),
        };
        let mut values: Vec<(TensorId, Shape, Vec<u8>)> = known
            .values
            .iter()
            .map(|(t, v)| (*t, v.shape().to_vec(), bytes(v)))
            .collect();
        values.sort_unstable();
        Key {
            shapes: shapes.to_vec(),
            computed,
            values,
        }
    }

    /// All extents: those of the inputs, then those of computed tensors.
    pub(crate) fn extents(&self) -> impl Iterator<Item = usize> {
        let computed = self.computed.iter().map(|(_, shape)| shape);
        self.shapes.iter().chain(computed).flatten().copied()
    }

    /// Whether the two differ in extents alone: the ranks are the same, and the values.
    pub(crate) fn is_like(&self, other: &Key) -> bool {
        let ranks = |key: &Key| -> Vec<usize> { key.shapes.iter().map(Vec::len).collect() };
        let computed = |key: &Key| -> Vec<(TensorId, usize)> {
            key.computed.iter().map(|(t, s)| (*t, s.len())).collect()
        };
        self.values == other.values
            && ranks(self) == ranks(other)
            && computed(self) == computed(other)
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
        let key = |text: &str| {
            let mut known = Known::default();
            let value = Tensor::from_strings(&[1], vec![text.to_owned()]).unwrap();
            known.values.insert(tensor, value);
            Key::new(&[vec![2, 3]], &known)
        };
        assert!(key("a").is_like(&key("a")) && !key("a").is_like(&key("b")));
    }
}
