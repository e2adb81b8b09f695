//! Random graphs give the same results at every level.
//!
//! A graph grows node by node: an operator from a list, with random attributes, on random tensors that
//! are already there, kept if the model accepts it. So values are shared, paths part and meet again, and
//! tensors that are scattered into are read elsewhere too.

use proptest::prelude::*;
use vinelift::{Core, ElementType, Level, Tensor};
use vinelift_tests::{Graph, Value, outputs, same};

/// Turns a list of random numbers into choices; 0 for ever when it runs out.
struct Choices<'a>(std::slice::Iter<'a, u32>);

impl Choices<'_> {
    fn below(&mut self, n: usize) -> usize {
        self.0.next().map_or(0, |&x| x as usize % n)
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    /// `count` of `low..=high`
    fn integers(&mut self, count: usize, low: i64, high: i64) -> Vec<i64> {
        let width = (high - low + 1) as usize;
        (0..count).map(|_| low + self.below(width) as i64).collect()
    }

    fn permutation(&mut self, n: usize) -> Vec<i64> {
        let mut left: Vec<i64> = (0..n as i64).collect();
        (0..n)
            .map(|_| left.swap_remove(self.below(left.len())))
            .collect()
    }
}

/// A graph that grows, with all its tensors.
#[derive(Clone)]
struct Growing {
    graph: Graph,
    values: Vec<Value>,
}

/// The position of the input whose numbers are small enough to be indices.
const INDEX: usize = 4;
/// The inputs: names, types, shapes.
const INPUTS: [(&str, ElementType, &[usize]); 5] = [
    ("x", ElementType::F32, &[3, 4]),
    ("y", ElementType::F32, &[2, 3, 4]),
    ("n", ElementType::I32, &[3, 4]),
    ("m", ElementType::I64, &[2, 3]),
    ("index", ElementType::I32, &[2, 2]),
];

impl Growing {
    fn new() -> Growing {
        let mut graph = Graph::default();
        let values = INPUTS.map(|(name, ty, shape)| graph.parameter(name, ty, shape));
        Growing {
            graph,
            values: values.to_vec(),
        }
    }

    /// Adds a node, unless the model does not accept it or it becomes too large.
    fn grow(&mut self, core: &Core, choices: &mut Choices<'_>) {
        let before = self.graph.mark();
        let New {
            ty,
            version,
            attributes,
            inputs,
            outputs,
        } = self.choose(choices);
        let inputs: Vec<&Value> = inputs.iter().collect();
        let added = self
            .graph
            .node(core, ty, version, &attributes, &inputs, outputs);
        match added.filter(|added| added.iter().all(|value| value.elements() <= 500)) {
            Some(added) => self.values.extend(added),
            None => self.graph.go_back(before),
        }
    }

    /// A random node; the constants that it reads are added.
    fn choose(&mut self, choices: &mut Choices<'_>) -> New {
        // The newest values more often than the others.
        let count = self.values.len();
        let pick = choices.below(2 * count);
        let x = self.values[pick.min(count - 1)].clone();
        let (rank, float) = (x.shape.len(), x.ty == ElementType::F32);
        let along = if rank > 0 { choices.below(rank) } else { 0 };
        let axis = format!("axis=\"{along}\"");
        let along = along as i64;
        let alike: Vec<&Value> = self.values.iter().filter(|v| v.ty == x.ty).collect();
        let other = alike[choices.below(alike.len())].clone();
        let index = self.values[INDEX].clone();
        let new = |ty, version, attributes: &str, inputs: &[&Value]| New {
            ty,
            version,
            attributes: attributes.to_owned(),
            inputs: inputs.iter().map(|v| (*v).clone()).collect(),
            outputs: 1,
        };
        match choices.below(20) {
            0 if float => {
                let ops = ["ReLU", "Sigmoid", "Tanh", "Exp", "Erf", "Sin", "Floor"];
                new(choices.of(&ops), "opset1", "", &[&x])
            }
            0 | 1 => {
                let ops = ["Abs", "Negative", "Sign"];
                new(choices.of(&ops), "opset1", "", &[&x])
            }
            2 | 3 => {
                let ops = ["Add", "Multiply", "Subtract", "Maximum", "Minimum"];
                new(choices.of(&ops), "opset1", "", &[&x, &other])
            }
            4 => {
                let order = choices.permutation(rank);
                new("Transpose", "opset1", "", &[&x, &self.graph.list(&order)])
            }
            5 => {
                let total: usize = x.shape.iter().product();
                let divides = |d: &usize| total.is_multiple_of(*d);
                let divisors: Vec<usize> = (1..=total.max(1)).filter(divides).collect();
                let shape = self.graph.list(&[choices.of(&divisors) as i64, -1]);
                new("Reshape", "opset1", "special_zero=\"false\"", &[&x, &shape])
            }
            6 => new("Concat", "opset1", &axis, &[&x, &other]),
            7 => {
                let [start, stop] = [0, 1].map(|_| self.graph.list(&choices.integers(1, -4, 4)));
                let step = self.graph.list(&[choices.of(&[1, 2, -1])]);
                let axes = self.graph.list(&[along]);
                new("Slice", "opset8", "", &[&x, &start, &stop, &step, &axes])
            }
            8 => {
                let inputs = [&x, &self.graph.number(along)];
                New {
                    outputs: 2,
                    ..new("Split", "opset1", "num_splits=\"2\"", &inputs)
                }
            }
            9 => {
                let [begin, end] = [0, 1].map(|_| self.graph.list(&choices.integers(rank, 0, 1)));
                let mode = choices.of(&["edge", "constant", "reflect"]);
                let mode = format!("pad_mode=\"{mode}\"");
                new("Pad", "opset1", &mode, &[&x, &begin, &end])
            }
            10 | 11 => {
                let keep = choices.of(&["keep_dims=\"true\"", "keep_dims=\"false\""]);
                let ops = ["ReduceSum", "ReduceMax", "ReduceMean", "ReduceMin"];
                new(
                    choices.of(&ops),
                    "opset1",
                    keep,
                    &[&x, &self.graph.list(&[along])],
                )
            }
            12 if float => new("SoftMax", "opset8", &axis, &[&x]),
            12 | 13 => new("CumSum", "opset3", "", &[&x, &self.graph.number(along)]),
            14 => {
                let transposed = "transpose_a=\"false\" transpose_b=\"true\"";
                new("MatMul", "opset1", transposed, &[&x, &other])
            }
            15 => {
                let inputs = [&x, &index, &self.graph.number(along)];
                new("Gather", "opset8", "batch_dims=\"0\"", &inputs)
            }
            16 => new("GatherND", "opset8", "batch_dims=\"0\"", &[&x, &index]),
            17 => {
                let reduction = choices.of(&["none", "sum", "max"]);
                let attributes = format!("reduction=\"{reduction}\" use_init_val=\"true\"");
                let inputs = [&x, &index, &other, &self.graph.number(along)];
                new("ScatterElementsUpdate", "opset12", &attributes, &inputs)
            }
            18 => new("ScatterNDUpdate", "opset4", "", &[&x, &index, &other]),
            _ => {
                let to = choices.of(&["f32", "i32", "i64"]);
                let to = format!("destination_type=\"{to}\"");
                new("Convert", "opset1", &to, &[&x])
            }
        }
    }
}

/// A node to be added.
struct New {
    ty: &'static str,
    version: &'static str,
    attributes: String,
    inputs: Vec<Value>,
    outputs: usize,
}

/// Values for the inputs.
fn inputs(choices: &mut Choices<'_>) -> Vec<Tensor> {
    let tensor = |(name, ty, shape): (&str, ElementType, &[usize])| {
        let count = shape.iter().product();
        let values = match name {
            "index" => choices.integers(count, 0, 1),
            _ => choices.integers(count, -9, 9),
        };
        match ty {
            ElementType::F32 => {
                let values: Vec<f32> = values.iter().map(|v| *v as f32 * 0.37).collect();
                Tensor::from_slice(shape, &values)
            }
            ElementType::I32 => {
                let values: Vec<i32> = values.iter().map(|v| *v as i32).collect();
                Tensor::from_slice(shape, &values)
            }
            _ => Tensor::from_slice(shape, &values),
        }
        .unwrap()
    };
    INPUTS.map(tensor).to_vec()
}

/// Whether it is the data's fault.
fn is_fault(error: &str) -> bool {
    error.starts_with("model: layer '") && error.contains("`indices`")
}

proptest! {

    #[test]
    fn all_levels_agree(numbers in prop::collection::vec(any::<u32>(), 200..400), size in 5usize..=25) {
        let core = Core::new().unwrap();
        let mut choices = Choices(numbers.iter());
        let inputs = inputs(&mut choices);
        let mut graph = Growing::new();
        for _ in 0..4 * size {
            if graph.values.len() < INPUTS.len() + size {
                graph.grow(&core, &mut choices);
            }
        }
        // The last value, and some of the others.
        let mut results: Vec<Value> = graph.values.iter().skip(INPUTS.len()).cloned().collect();
        let last = results.pop();
        results.retain(|_| choices.below(4) == 0);
        results.extend(last);
        prop_assume!(!results.is_empty());
        let model = graph.graph.model(&core, &results).unwrap();
        let want = outputs(&core, &model, Level::Interpreted, &inputs);
        for level in &Level::ALL[1..] {
            let got = outputs(&core, &model, *level, &inputs);
            let agree = match (&want, &got) {
                (Ok(want), Ok(got)) => want.iter().zip(got).all(|(a, b)| same(a, b)),
                // Of several bad indices in different layers, any may be named.
                (Err(want), Err(got)) => is_fault(want) && is_fault(got),
                _ => false,
            };
            let text = || model.graph().to_text(&model.infer().unwrap());
            prop_assert!(agree, "{}: {got:?}, want {want:?}\n{}", level.name(), text());
        }
    }
}
