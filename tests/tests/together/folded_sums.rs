//! Sums of constants, and of what is constant where shapes are numbers: the bits that the same layers give of inputs, and of what a
//! run computes.

use vinelift::{Config, Core, ElementType, Model, PartialShape, Specialization, Tensor};
use vinelift_tests::{Graph, Random, Value, outputs_with, same};

/// Numbers above 0, sums of which in another order are others.
fn numbers(count: usize) -> Vec<f32> {
    let fractions = Random::new(1).fractions(count).into_iter();
    fractions.map(|x| x + 1.0).collect()
}

/// The result of an operator for rows of `len` numbers, which are constant or an input.
fn result(core: &Core, (ty, version): (&str, &str), len: usize, is_constant: bool) -> Tensor {
    let shape = [3, 2, len];
    let values = numbers(shape.iter().product());
    let mut graph = Graph::default();
    let x = match is_constant {
        true => graph.floats(&shape, &values),
        false => graph.parameter("x", ElementType::F32, &shape),
    };
    let (attributes, axes) = match ty {
        "SoftMax" | "LogSoftmax" => ("axis=\"2\"", None),
        "MVN" => (
            "normalize_variance=\"true\" eps=\"1e-6\" eps_mode=\"inside_sqrt\"",
            Some(graph.list(&[2])),
        ),
        _ => ("keep_dims=\"true\"", Some(graph.list(&[2]))),
    };
    let inputs: Vec<&Value> = [&x].into_iter().chain(&axes).collect();
    let y = graph.single(core, ty, version, attributes, &inputs);
    let model = graph.model(core, &[y]).unwrap();
    let given = match is_constant {
        true => Vec::new(),
        false => vec![Tensor::from_slice(&shape, &values).unwrap()],
    };
    output(core, &model, Config::new(), &given)
}

/// The only output of a model.
fn output(core: &Core, model: &Model, config: Config, inputs: &[Tensor]) -> Tensor {
    outputs_with(core, model, config, inputs)
        .unwrap()
        .swap_remove(0)
}

/// Long sums run in lanes; 24 and 384 numbers are the least of few and of many lanes.
#[test]
fn constants_give_the_bits_of_inputs() {
    let core = Core::new().unwrap();
    for operator in [
        ("ReduceSum", "opset1"),
        ("ReduceProd", "opset1"),
        ("ReduceMean", "opset1"),
        ("ReduceL2", "opset4"),
        ("SoftMax", "opset8"),
        ("LogSoftmax", "opset5"),
        ("MVN", "opset6"),
    ] {
        for len in [7, 23, 24, 40, 383, 384, 401] {
            let [folded, computed] = [true, false].map(|c| result(&core, operator, len, c));
            assert!(same(&folded, &computed), "{operator:?} of {len}");
        }
    }
}

/// A tensor that layers compute from the extents `a, b, c` of another one and from constants, and that is added to it.
#[derive(Clone, Copy, Debug)]
enum Made {
    /// Every second of many numbers, `c` of them.
    EverySecond,
    /// `[b, c]` times the same number.
    Spread,
    /// `0 1 … b-1`, a column.
    Column,
    /// `0 1 … c-1`, turned by two.
    Turned,
}

fn made(core: &Core, graph: &mut Graph, x: &Value, made: Made) -> Value {
    let shape = graph.single(core, "ShapeOf", "opset1", "", &[x]);
    let zero = graph.number(0);
    let extents = |graph: &mut Graph, axes: &Value| {
        graph.single(
            core,
            "Gather",
            "opset8",
            "batch_dims=\"0\"",
            &[&shape, axes, &zero],
        )
    };
    let range = |graph: &mut Graph, axis: i64| {
        let axis = graph.number(axis);
        let (end, start, step) = (extents(graph, &axis), graph.number(0), graph.number(1));
        let of_floats = "output_type=\"f32\"";
        graph.single(core, "Range", "opset4", of_floats, &[&start, &end, &step])
    };
    match made {
        Made::EverySecond => {
            let all = graph.floats(&[1200], &numbers(1200));
            let [axis, start, two] = [2, 0, 2].map(|number| graph.list(&[number]));
            let count = extents(graph, &axis);
            let end = graph.single(core, "Multiply", "opset1", "", &[&count, &two]);
            graph.single(
                core,
                "Slice",
                "opset8",
                "",
                &[&all, &start, &end, &two, &start],
            )
        }
        Made::Spread => {
            let number = graph.floats(&[1], &[0.3]);
            let axes = graph.list(&[1, 2]);
            let target = extents(graph, &axes);
            let mode = "mode=\"numpy\"";
            graph.single(core, "Broadcast", "opset3", mode, &[&number, &target])
        }
        Made::Column => {
            let (range, axis) = (range(graph, 1), graph.list(&[1]));
            graph.single(core, "Unsqueeze", "opset1", "", &[&range, &axis])
        }
        Made::Turned => {
            let range = range(graph, 2);
            let [by, axis] = [2, 0].map(|number| graph.list(&[number]));
            graph.single(core, "Roll", "opset7", "", &[&range, &by, &axis])
        }
    }
}

/// `ReduceSum(√(x + made))` over `axes`, with more layers than one between what is made and the sum.
fn sum(core: &Core, of: Made, axes: &[i64]) -> Model {
    let mut graph = Graph::default();
    let x = graph.parameter("x", ElementType::F32, &[2, 3, 9]);
    let made = made(core, &mut graph, &x, of);
    let added = graph.single(core, "Add", "opset1", "", &[&x, &made]);
    let root = graph.single(core, "Sqrt", "opset1", "", &[&added]);
    let axes = graph.list(axes);
    let dims = "keep_dims=\"false\"";
    let sum = graph.single(core, "ReduceSum", "opset1", dims, &[&root, &axes]);
    graph.model(core, &[sum]).unwrap()
}

/// A plan for one shape holds such a tensor as a constant; the plan for all shapes computes it in every run.
#[test]
fn what_follows_from_shapes_is_summed_alike_in_every_plan() {
    let core = Core::new().unwrap();
    for of in [Made::EverySecond, Made::Spread, Made::Column, Made::Turned] {
        for axes in [&[2][..], &[1, 2], &[0, 1, 2], &[0, 2]] {
            let model = sum(&core, of, axes);
            let any = model.reshape(&[(0, PartialShape::any_of_rank(3))]).unwrap();
            for shape in [[2, 3, 9], [3, 2, 25], [2, 4, 65], [1, 2, 400], [2, 30, 8]] {
                let count = shape.iter().product();
                let x = [Tensor::from_slice(&shape, &numbers(count)).unwrap()];
                let result = |specialization| {
                    let config = Config::new().specialization(specialization);
                    output(&core, &any, config, &x)
                };
                let [all, one] = [Specialization::Generic, Specialization::Always].map(result);
                assert!(same(&all, &one), "{of:?} over {axes:?} of {shape:?}");
            }
        }
    }
}
