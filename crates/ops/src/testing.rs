//! Runs one operator through `infer`, `lower` and the interpreter, for the tests of operator files.

mod class;

pub(crate) use class::Class;

use crate::{Attributes, Evaluate, IndexPolicy, Infer, Instance, Lower, Op, OpDef, TensorType};
use vinelift_nest::{BufferBytes, Nest, Role, ValueRange, interpret, verify};
use vinelift_tensor::{ElementType, PartialShape, Tensor};

/// The first output of `def` (its first version) on `inputs`, all of whose values are known.
pub(crate) fn run(def: &'static OpDef, attributes: &[(&str, &str)], inputs: &[Tensor]) -> Tensor {
    run_all(def, attributes, inputs, IndexPolicy::Spec)
        .unwrap()
        .swap_remove(0)
}

/// The message with which `def` refuses `inputs`.
pub(crate) fn error(def: &'static OpDef, attributes: &[(&str, &str)], inputs: &[Tensor]) -> String {
    run_all(def, attributes, inputs, IndexPolicy::Spec).unwrap_err()
}

/// All outputs of `def`, or its message.
pub(crate) fn run_all(
    def: &'static OpDef,
    attributes: &[(&str, &str)],
    inputs: &[Tensor],
    policy: IndexPolicy,
) -> Result<Vec<Tensor>, String> {
    let text = |e: &dyn std::fmt::Display| e.to_string();
    let pairs: Vec<_> = attributes
        .iter()
        .map(|(k, v)| (k.to_string(), v.to_string()))
        .collect();
    let op = def
        .instantiate(&Attributes(&pairs))
        .map_err(|e| text(&e))?
        .ok_or("not an operator on tensors")?;
    let types: Vec<TensorType> = inputs
        .iter()
        .map(|t| TensorType::new(t.element_type(), t.shape().into()))
        .collect();
    let values: Vec<Option<&Tensor>> = inputs.iter().map(Some).collect();
    let cx = Infer::new(def.signature, &types, &values).map_err(|e| text(&e))?;
    let outputs = op.infer(&cx).map_err(|e| text(&e))?;
    let of_nest = |op: &dyn Op| {
        let nest = lowered(def, op, &types, (&values, &[]), &outputs, policy);
        verify(&nest).unwrap_or_else(|e| panic!("{e:?}\n{nest}"));
        interpreted(&nest, inputs, &outputs)
    };
    let native = match op {
        Instance::Lowered(op) => return of_nest(&*op),
        Instance::Native(native) => native,
    };
    let evaluation = Evaluate::new(def.signature, inputs, &outputs);
    let found = native.evaluate(&evaluation).map_err(|e| text(&e))?;
    for (tensor, ty) in found.iter().zip(&outputs) {
        let fits = ty.element == tensor.element_type() && ty.shape.contains(tensor.shape());
        assert!(fits, "inferred {ty}, found {tensor}");
    }
    if let Some(op) = native.as_nest(&cx) {
        assert_eq!(of_nest(&*op)?, found, "the nest differs from the function");
    }
    Ok(found)
}

/// The nest that computes `outputs` of inputs of these types, of whose elements `values` and `bounds` are known.
fn lowered(
    def: &'static OpDef,
    op: &dyn Op,
    inputs: &[TensorType],
    (values, bounds): (&[Option<&Tensor>], &[Option<Vec<ValueRange>>]),
    outputs: &[TensorType],
    policy: IndexPolicy,
) -> Nest {
    let mut nest = Nest::new();
    let layer = nest.layer("op", &format!("{}, {}", def.name, def.versions[0]));
    let mut buffers = |name: &str, types: &[TensorType], role: Role| {
        let buffer = |ty: &TensorType| {
            let shape = ty.shape.to_extents().expect("known extents");
            nest.buffer(name, ty.element, &shape, role.clone())
        };
        types.iter().map(buffer).collect()
    };
    let sources = buffers("in", inputs, Role::Input);
    let targets = buffers("out", outputs, Role::Output);
    let cx = Lower::new(
        &mut nest,
        def.signature,
        layer,
        sources,
        targets,
        values,
        policy,
    );
    op.lower(&mut cx.with_bounds(bounds));
    nest
}

/// The outputs that the nest computes of `inputs`, or the message of its fault.
fn interpreted(
    nest: &Nest,
    inputs: &[Tensor],
    outputs: &[TensorType],
) -> Result<Vec<Tensor>, String> {
    let mut strings = vec![String::new()];
    let inputs: Vec<Tensor> = inputs
        .iter()
        .map(|t| with_handles(t, &mut strings))
        .collect();
    let zeros = outputs.iter().map(|t| {
        let shape = t.shape.to_static().expect("a static shape");
        Tensor::zeros(handle_type(t.element), &shape).unwrap()
    });
    let mut tensors: Vec<Tensor> = zeros.collect();
    let mut results = tensors.iter_mut();
    let mut sources = inputs.iter();
    let mut buffers: Vec<BufferBytes<'_>> = Vec::new();
    for b in &nest.buffers {
        buffers.push(match b.role {
            Role::Input => BufferBytes::Read(sources.next().unwrap().bytes()),
            Role::Output => BufferBytes::Write(results.next().unwrap().bytes_mut()),
            _ => BufferBytes::Temporary,
        });
    }
    let done = interpret(nest, &mut buffers);
    drop(buffers);
    match done {
        Ok(()) => Ok(outputs
            .iter()
            .zip(tensors)
            .map(|(t, found)| with_strings(t.element, found, &strings))
            .collect()),
        Err(vinelift_nest::InterpretError::Fault(fault)) => Err(fault.message(nest)),
        Err(other) => Err(other.to_string()),
    }
}

/// The types that `def` infers where the types may be partial and `None` is no known value: the outputs, then
/// the positions of the inputs whose values it lacks.
pub(crate) fn infer(
    def: &'static OpDef,
    attributes: &[(&str, &str)],
    inputs: &[(ElementType, PartialShape, Option<Tensor>)],
) -> (String, Vec<usize>) {
    let pairs: Vec<_> = attributes
        .iter()
        .map(|(k, v)| (k.to_string(), v.to_string()))
        .collect();
    let op = def.instantiate(&Attributes(&pairs)).unwrap().unwrap();
    let types: Vec<_> = inputs
        .iter()
        .map(|(t, s, _)| TensorType::new(*t, s.clone()))
        .collect();
    let values: Vec<_> = inputs.iter().map(|(_, _, v)| v.as_ref()).collect();
    let cx = Infer::new(def.signature, &types, &values).unwrap();
    let outputs: Vec<String> = op
        .infer(&cx)
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    (outputs.join(" "), cx.missing().collect())
}

/// The type of the elements in a buffer: strings are handles while a nest runs.
fn handle_type(ty: ElementType) -> ElementType {
    if ty == ElementType::String {
        ElementType::U64
    } else {
        ty
    }
}

/// The tensor with positions in `table` for strings, equal ones for equal strings.
fn with_handles(tensor: &Tensor, table: &mut Vec<String>) -> Tensor {
    let Some(strings) = tensor.strings() else {
        return tensor.clone();
    };
    let mut handle = |s: &String| {
        let known = table.iter().position(|t| t == s);
        known.unwrap_or_else(|| {
            table.push(s.clone());
            table.len() - 1
        }) as u64
    };
    let handles: Vec<u64> = strings.iter().map(&mut handle).collect();
    Tensor::from_slice(tensor.shape(), &handles).unwrap()
}

fn with_strings(ty: ElementType, tensor: Tensor, table: &[String]) -> Tensor {
    if ty != ElementType::String {
        return tensor;
    }
    let strings = tensor
        .to_i64_vec()
        .unwrap()
        .iter()
        .map(|&h| table[h as usize].clone())
        .collect();
    Tensor::from_strings(tensor.shape(), strings).unwrap()
}

/// An `i32` tensor.
pub(crate) fn i32s(shape: &[usize], values: &[i32]) -> Tensor {
    Tensor::from_slice(shape, values).unwrap()
}

/// An `i64` tensor.
pub(crate) fn i64s(shape: &[usize], values: &[i64]) -> Tensor {
    Tensor::from_slice(shape, values).unwrap()
}

/// An `f32` tensor.
pub(crate) fn f32s(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor::from_slice(shape, values).unwrap()
}
