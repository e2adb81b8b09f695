//! One nest for a class of shapes, for the tests of operators that keep symbols.

use super::interpreted;
use crate::{Attributes, IndexPolicy, Infer, Instance, OpDef, TensorType};
use vinelift_nest::{Nest, ValueRange, verify};
use vinelift_tensor::symbols::Symbols;
use vinelift_tensor::{ElementType, Extent, PartialShape, Tensor, example};

/// The nest of an operator for all shapes of a class.
pub(crate) struct Class {
    nest: Nest,
    symbols: Symbols,
    outputs: Vec<TensorType>,
}

/// An input of a class: its type, its shape, and its elements if they are known.
pub(crate) type Given = (ElementType, Vec<Extent>, Option<Vec<Extent>>);

impl Class {
    /// The class of the shapes that `inputs` gives where the symbols are `values`; the nest is verified for all of them.
    pub(crate) fn new(
        def: &'static OpDef,
        attributes: &[(&str, &str)],
        values: &[usize],
        inputs: impl Fn(&[Extent]) -> Vec<Given>,
    ) -> Class {
        let mut symbols = Symbols::default();
        let extents: Vec<Extent> = values.iter().map(|n| symbols.add(*n).unwrap()).collect();
        let inputs = inputs(&extents);
        let (nest, outputs) = symbols.record(|| {
            let (mut nest, outputs) = lowered(def, attributes, &inputs);
            nest.adopt_symbols();
            (nest, outputs)
        });
        verify(&nest).unwrap_or_else(|e| panic!("{e:?}\n{nest}"));
        Class {
            nest,
            symbols,
            outputs,
        }
    }

    /// The outputs where the symbols are `values`; `None` if those are no shapes of the class.
    pub(crate) fn run(&self, values: &[usize], inputs: &[Tensor]) -> Option<Vec<Tensor>> {
        let values = self.symbols.bind(values)?;
        let nest = self.nest.bound_to(&values)?;
        verify(&nest).unwrap_or_else(|e| panic!("{e:?}\n{nest}"));
        let bound = |ty: &TensorType| {
            let shape = ty.shape.bound_to(&values).unwrap();
            TensorType::new(ty.element, shape)
        };
        let outputs: Vec<TensorType> = self.outputs.iter().map(bound).collect();
        Some(interpreted(&nest, inputs, &outputs).unwrap())
    }
}

/// The nest of inputs that may have symbols, and the types of its outputs.
fn lowered(
    def: &'static OpDef,
    attributes: &[(&str, &str)],
    inputs: &[Given],
) -> (Nest, Vec<TensorType>) {
    let pairs: Vec<_> = attributes
        .iter()
        .map(|(k, v)| (k.to_string(), v.to_string()))
        .collect();
    let op = def.instantiate(&Attributes(&pairs)).unwrap().unwrap();
    let types = inputs
        .iter()
        .map(|(ty, shape, _)| TensorType::new(*ty, PartialShape::from(shape.as_slice())));
    let types: Vec<TensorType> = types.collect();
    let tensors: Vec<Option<Tensor>> = inputs.iter().map(|(ty, _, v)| value(*ty, v)).collect();
    let tensors: Vec<Option<&Tensor>> = tensors.iter().map(Option::as_ref).collect();
    let bounds = inputs.iter().map(|(_, _, elements)| {
        let elements = elements.as_ref()?.iter();
        Some(
            elements
                .map(|n| ValueRange::Formula(*n.formula()))
                .collect(),
        )
    });
    let bounds: Vec<Option<Vec<ValueRange>>> = bounds.collect();
    let cx = Infer::new(def.signature, &types, &tensors).unwrap();
    let outputs = op.infer(&cx.with_bounds(&bounds)).unwrap();
    let Instance::Lowered(op) = op else {
        panic!("{} has no nest", def.name)
    };
    let known = (&tensors[..], &bounds[..]);
    let nest = super::lowered(def, &*op, &types, known, &outputs, IndexPolicy::Spec);
    (nest, outputs)
}

/// The elements of an input at the example.
fn value(ty: ElementType, elements: &Option<Vec<Extent>>) -> Option<Tensor> {
    let numbers = example(elements.as_ref()?);
    let numbers: Vec<i64> = numbers.into_iter().map(|n| n as i64).collect();
    assert_eq!(ty, ElementType::I64, "values are of i64");
    Some(Tensor::from_slice(&[numbers.len()], &numbers).unwrap())
}
