//! Attention, whose two products and softmax run task by task: the same bits as kernels one after the other, and less
//! memory.

use std::num::NonZeroUsize;
use vinelift::{
    CompiledModel, Config, Core, Dim, ElementType, InferRequest, Level, Model, PartialShape,
    Specialization, Tensor,
};
use vinelift_tests::{Graph, Random, Value, same};

/// `ScaledDotProductAttention` of `[heads, length, width]` with a mask for all heads, and what a second one makes of that
/// and of its results scattered over it.
fn attention(core: &Core, [heads, length, width]: [usize; 3]) -> Model {
    let mut graph = Graph::default();
    let [query, key, value] = ["q", "k", "v"]
        .map(|name| graph.parameter(name, ElementType::F32, &[heads, length, width]));
    let mask = graph.parameter("mask", ElementType::F32, &[1, length, length]);
    let mut node = |ty, version, attributes, inputs: &[&Value]| {
        graph.single(core, ty, version, attributes, inputs)
    };
    let (sdpa, plain) = ("ScaledDotProductAttention", "causal=\"false\"");
    let first = node(sdpa, "opset13", plain, &[&query, &key, &value, &mask]);
    let second = node(sdpa, "opset13", "causal=\"true\"", &[&first, &key, &first]);
    let relu = node("Relu", "opset1", "", &[&second]);
    let across = "transpose_a=\"false\" transpose_b=\"true\"";
    let scores = node("MatMul", "opset1", across, &[&second, &relu]);
    let straight = "transpose_a=\"false\" transpose_b=\"false\"";
    let last = node("MatMul", "opset1", straight, &[&scores, &first]);
    graph.model(core, &[first, last]).unwrap()
}

/// The same with keys and values that `shared` heads have together, as language models write it.
fn grouped_attention(core: &Core, [groups, shared, length, width]: [usize; 4]) -> Model {
    let mut graph = Graph::default();
    let query = [1, groups * shared, length, width];
    let query = graph.parameter("q", ElementType::F32, &query);
    let [key, value] =
        ["k", "v"].map(|name| graph.parameter(name, ElementType::F32, &[1, groups, length, width]));
    let mask = graph.parameter("mask", ElementType::F32, &[1, 1, length, length]);
    let mut constant = |numbers: &[i64]| {
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        graph.constant(ElementType::I64, &[numbers.len()], &bytes)
    };
    // The length may be another one than this.
    let axis = constant(&[2]);
    let all = constant(&[1, groups as i64, shared as i64, 1, 1]);
    let heads = constant(&[0, (groups * shared) as i64, -1, width as i64]);
    let order = constant(&[0, 2, 1, 3]);
    let mut node = |ty, version, attributes, inputs: &[&Value]| {
        graph.single(core, ty, version, attributes, inputs)
    };
    let [key, value] = [&key, &value].map(|x| {
        let apart = node("Unsqueeze", "opset1", "", &[x, &axis]);
        let repeated = node(
            "Broadcast",
            "opset3",
            "mode=\"bidirectional\"",
            &[&apart, &all],
        );
        node(
            "Reshape",
            "opset1",
            "special_zero=\"true\"",
            &[&repeated, &heads],
        )
    });
    let inputs = [&query, &key, &value, &mask];
    let (sdpa, plain) = ("ScaledDotProductAttention", "causal=\"false\"");
    let attention = node(sdpa, "opset13", plain, &inputs);
    let last = node("Transpose", "opset1", "", &[&attention, &order]);
    graph.model(core, &[last]).unwrap()
}

/// Attention of layers apart: products, a scale, a mask, softmax, products.
fn written_out(core: &Core, shape: [usize; 3]) -> Model {
    let [_, length, _] = shape;
    let mut graph = Graph::default();
    let [query, key, value] =
        ["q", "k", "v"].map(|name| graph.parameter(name, ElementType::F32, &shape));
    let mask = graph.parameter("mask", ElementType::F32, &[1, length, length]);
    let scale = graph.constant(ElementType::F32, &[1], &0.3f32.to_le_bytes());
    let mut node = |ty, version, attributes, inputs: &[&Value]| {
        graph.single(core, ty, version, attributes, inputs)
    };
    let across = "transpose_a=\"false\" transpose_b=\"true\"";
    let straight = "transpose_a=\"false\" transpose_b=\"false\"";
    let products = node("MatMul", "opset1", across, &[&query, &key]);
    let scaled = node("Multiply", "opset1", "", &[&products, &scale]);
    let masked = node("Add", "opset1", "", &[&scaled, &mask]);
    let shares = node("SoftMax", "opset8", "axis=\"-1\"", &[&masked]);
    let last = node("MatMul", "opset1", straight, &[&shares, &value]);
    graph.model(core, &[last]).unwrap()
}

/// Tensors of these shapes, of [fractions](Random::fractions).
fn tensors<const RANK: usize>(shapes: [[usize; RANK]; 4]) -> Vec<Tensor> {
    let mut random = Random::new(11);
    let mut tensor = |shape: [usize; RANK]| {
        let numbers = random.fractions(shape.iter().product());
        Tensor::from_slice(&shape, &numbers).unwrap()
    };
    shapes.map(&mut tensor).into()
}

fn request(model: &CompiledModel, inputs: &[Tensor]) -> InferRequest {
    let mut request = model.create_request();
    for (k, input) in inputs.iter().enumerate() {
        request.set_input_at(k, input.clone()).unwrap();
    }
    request
}

/// The bytes of temporaries of a run.
fn arena(model: &CompiledModel, inputs: &[Tensor]) -> usize {
    let listing = request(model, inputs).listing().unwrap();
    listing.plans.iter().map(|plan| plan.arena).sum()
}

/// The outputs, and how many contractions run with the tasks of another.
fn run(model: &CompiledModel, inputs: &[Tensor]) -> (Vec<Tensor>, usize) {
    let mut request = request(model, inputs);
    let times = request.infer_profiled().unwrap();
    let is_chained = |how: &str| how.starts_with("contraction") && how.contains("run with");
    let chained = times
        .iter()
        .filter(|kernel| is_chained(&kernel.how))
        .count();
    (request.outputs().to_vec(), chained)
}

/// Runs a model as kernels one after the other, and in chains on some threads, which it must run in, or must not, if
/// `expected_chains` says so.
fn check(core: &Core, model: &Model, inputs: &[Tensor], expected_chains: Option<bool>, what: &str) {
    let compile = |level, threads| {
        let config = Config {
            level,
            threads: NonZeroUsize::new(threads),
            specialization: Specialization::Always,
            ..Config::default()
        };
        core.compile_model_with(model, config).unwrap()
    };
    let (expected, chained) = run(&compile(Level::Compiled, 1), inputs);
    assert_eq!(chained, 0);
    for threads in [1, 2, 5] {
        let (found, chained) = run(&compile(Level::Scheduled, threads), inputs);
        let is_same = found.iter().zip(&expected).all(|(a, b)| same(a, b));
        assert!(is_same, "{what}, {threads} threads");
        assert!(
            expected_chains.is_none_or(|is_chained| is_chained == (chained > 0)),
            "{what}, {threads} threads: {chained} contractions are chained"
        );
    }
}

// With long texts the results are worth to be made in parts, with short ones not; between them the threads decide.
const ALWAYS: Option<bool> = Some(true);
const NEVER: Option<bool> = Some(false);
const EITHER: Option<bool> = None;

/// Checks the attention with a mask that `attention` makes for each of these shapes.
fn check_shapes(attention: fn(&Core, [usize; 3]) -> Model, shapes: &[([usize; 3], Option<bool>)]) {
    let core = Core::new().unwrap();
    for &(shape, expected_chains) in shapes {
        let model = attention(&core, shape);
        let [_, length, _] = shape;
        let inputs = tensors([shape, shape, shape, [1, length, length]]);
        let what = format!("{shape:?}");
        check(&core, &model, &inputs, expected_chains, &what);
    }
}

#[test]
fn attention_is_the_same_in_chains() {
    check_shapes(
        attention,
        &[
            ([2, 300, 16], ALWAYS),
            ([1, 129, 32], EITHER),
            ([5, 40, 8], EITHER),
            ([3, 7, 4], NEVER),
            ([4, 1, 16], NEVER),
        ],
    );
}

/// With 1200 columns, each task reads more than the least bytes of results that it has.
#[test]
fn attention_of_layers_apart_is_the_same_in_chains() {
    check_shapes(
        written_out,
        &[
            ([1, 1200, 16], ALWAYS),
            ([2, 300, 16], ALWAYS),
            ([5, 40, 8], EITHER),
            ([3, 7, 4], NEVER),
        ],
    );
}

#[test]
fn attention_of_grouped_heads_is_the_same_in_chains() {
    let core = Core::new().unwrap();
    for (shape, expected_chains) in [
        ([2, 3, 300, 16], ALWAYS),
        ([2, 7, 65, 32], EITHER),
        ([3, 2, 40, 8], EITHER),
        ([2, 2, 5, 4], NEVER),
    ] {
        let model = grouped_attention(&core, shape);
        let [groups, shared, length, width] = shape;
        let keys = [1, groups, length, width];
        let query = [1, groups * shared, length, width];
        let inputs = tensors([query, keys, keys, [1, 1, length, length]]);
        check(
            &core,
            &model,
            &inputs,
            expected_chains,
            &format!("{shape:?}"),
        );
    }
}

/// One plan for all lengths. A task computes some rows of one head or, in models of 64 heads and more, whole heads.
#[test]
fn attention_of_grouped_heads_is_chained_by_one_plan_for_all_lengths() {
    let core = Core::new().unwrap();
    for [groups, shared, width] in [[2, 7, 16], [3, 5, 8], [1, 9, 16], [2, 35, 8]] {
        let model = grouped_attention(&core, [groups, shared, 77, width]);
        let heads = |count: usize| {
            let sizes = [
                Dim::fixed(1),
                Dim::fixed(count),
                Dim::ANY,
                Dim::fixed(width),
            ];
            PartialShape::ranked(sizes.to_vec())
        };
        let mask = [Dim::fixed(1), Dim::fixed(1), Dim::ANY, Dim::ANY];
        let (keys, mask) = (heads(groups), PartialShape::ranked(mask.to_vec()));
        let shapes = [heads(groups * shared), keys.clone(), keys, mask];
        let shapes: Vec<(usize, PartialShape)> = shapes.into_iter().enumerate().collect();
        let open = model.reshape(&shapes).unwrap();
        let compile = |level, threads, specialization| {
            let config = Config {
                level,
                threads: NonZeroUsize::new(threads),
                specialization,
                ..Config::default()
            };
            core.compile_model_with(&open, config).unwrap()
        };
        let one_by_one = compile(Level::Compiled, 1, Specialization::Always);
        let compiled = [1, 2, 3, 5].map(|threads| {
            (
                threads,
                compile(Level::Scheduled, threads, Specialization::Generic),
            )
        });
        for length in [300, 111] {
            let query = [1, groups * shared, length, width];
            let keys = [1, groups, length, width];
            let inputs = tensors([query, keys, keys, [1, 1, length, length]]);
            let (expected, _) = run(&one_by_one, &inputs);
            for (threads, compiled) in &compiled {
                let what = format!("{groups} by {shared}, {length}, {threads} threads");
                let (found, chained) = run(compiled, &inputs);
                assert!(same(&found[0], &expected[0]), "{what}");
                assert_eq!(chained, 1, "{what}");
                assert_eq!(compiled.statistics().plans, 1, "{what}");
                let arena = arena(compiled, &inputs);
                // Less than the scores of all heads, of which a task has some rows.
                let scores = groups * shared * length * length * size_of::<f32>();
                assert!(
                    length < 300 || 4 * arena < scores * threads,
                    "{what}: {arena}"
                );
            }
        }
    }
}

/// `Convert(Relu(x · weights))` of `rows` rows: the code after the product makes `f16` of its results.
fn halves_of_products(core: &Core, rows: usize, [depth, columns]: [usize; 2]) -> Model {
    let mut graph = Graph::default();
    let x = graph.parameter("x", ElementType::F32, &[rows, depth]);
    let weights = Random::new(5).fractions(depth * columns);
    let weights: Vec<u8> = weights.iter().flat_map(|x| x.to_le_bytes()).collect();
    let weights = graph.constant(ElementType::F32, &[depth, columns], &weights);
    let straight = "transpose_a=\"false\" transpose_b=\"false\"";
    let product = graph.single(core, "MatMul", "opset1", straight, &[&x, &weights]);
    let relu = graph.single(core, "Relu", "opset1", "", &[&product]);
    let to = "destination_type=\"f16\"";
    let last = graph.single(core, "Convert", "opset1", to, &[&relu]);
    graph.model(core, &[last]).unwrap()
}

/// Sums that only the code after a contraction uses have memory for one task of each thread, if there are several tasks.
#[test]
fn sums_that_only_code_uses_have_memory_for_a_task() {
    let core = Core::new().unwrap();
    for (rows, is_small) in [(2000, true), (1025, true), (1024, false), (3, false)] {
        let (depth, columns) = (40, 64);
        let model = halves_of_products(&core, rows, [depth, columns]);
        let x = Random::new(7).fractions(rows * depth);
        let inputs = [Tensor::from_slice(&[rows, depth], &x).unwrap()];
        check(&core, &model, &inputs, NEVER, &format!("{rows} rows"));
        let config = Config {
            threads: NonZeroUsize::new(1),
            ..Config::default()
        };
        let compiled = core.compile_model_with(&model, config).unwrap();
        let arena = arena(&compiled, &inputs);
        let sums = rows * columns * size_of::<f32>();
        assert_eq!(arena < sums, is_small, "{rows} rows: {arena} bytes, {sums}");
    }
}
