//! Values that follow from shapes are known to all segments of a run, not only to the one that computes them.

use vinelift::ElementType::{Boolean, F32, I64};
use vinelift::{
    CompiledModel, Config, Core, Dim, InferRequest, PartialShape, Specialization, Tensor,
};
use vinelift_tests::{Graph, Value};

const AS_I64: &str = "output_type=\"i64\"";

/// `x` of shape `[5, 4]`, `Σ NonZero(flags)`, and `ShapeOf(x)`, which is there before `NonZero` is called.
fn inputs(graph: &mut Graph) -> [Value; 3] {
    let x = graph.parameter("x", F32, &[5, 4]);
    let flags = graph.parameter("flags", I64, &[6]);
    let shape = graph.open("ShapeOf", "opset3", AS_I64, &[&x], I64);
    let all = graph.open("NonZero", "opset3", AS_I64, &[&flags], I64);
    let axes = graph.list(&[0, 1]);
    let flat = "keep_dims=\"false\"";
    let sum = graph.open("ReduceSum", "opset1", flat, &[&all, &axes], I64);
    [x, sum, shape]
}

/// The model whose result is `result`, with `x` of the shape `[?, width]`.
fn compiled(
    core: &Core,
    graph: &Graph,
    result: Value,
    width: Dim,
    specialization: Specialization,
) -> CompiledModel {
    let model = graph.model(core, &[result]).unwrap();
    let any = PartialShape::ranked(vec![Dim::ANY, width]);
    let model = model.reshape(&[(0, any)]).unwrap();
    let config = Config {
        specialization,
        ..Config::default()
    };
    core.compile_model_with(&model, config).unwrap()
}

/// The result for `x`, with `count` of the six flags set.
fn result(request: &mut InferRequest, x: Tensor, count: usize) -> Tensor {
    let flags: Vec<i64> = (0..6).map(|k| (k < count).into()).collect();
    let flags = Tensor::from_slice(&[6], &flags).unwrap();
    request.set_input("x", x).unwrap();
    request.set_input("flags", flags).unwrap();
    request.infer().unwrap();
    request.output(0).unwrap().clone()
}

/// `x + Broadcast(Σ NonZero(flags), ShapeOf(x))[-ShapeOf(x)..]`: the target of the broadcast and the start of the slice are there before
/// `NonZero` is called, and are read after it. The start is negative, and no number that plans could be for.
#[test]
fn a_target_that_an_earlier_segment_computes_is_known() {
    let core = Core::new().unwrap();
    let mut graph = Graph::default();
    let [x, sum, shape] = inputs(&mut graph);
    let zero = graph.number(0);
    let start = graph.open("Subtract", "opset1", "", &[&zero, &shape], I64);
    let [stop, step, dims] = [[9999, 9999], [1, 1], [0, 1]].map(|list| graph.list(&list));
    let as_f32 = "destination_type=\"f32\"";
    let sum = graph.open("Convert", "opset1", as_f32, &[&sum], F32);
    let numpy = "mode=\"numpy\"";
    let wide = graph.open("Broadcast", "opset3", numpy, &[&sum, &shape], F32);
    let slice = [&wide, &start, &stop, &step, &dims];
    let wide = graph.open("Slice", "opset8", "", &slice, F32);
    let y = graph.open("Add", "opset1", "", &[&x, &wide], F32);
    let compiled = compiled(&core, &graph, y, Dim::from(4), Specialization::Generic);
    let mut request = compiled.create_request();
    for height in 2..22 {
        for count in 2..5 {
            let x: Vec<f32> = (0..height * 4).map(|k| k as f32).collect();
            let x = Tensor::from_slice(&[height, 4], &x).unwrap();
            let found = result(&mut request, x, count);
            let sum = (count * (count - 1) / 2) as f32;
            let want: Vec<f32> = (0..height * 4).map(|k| k as f32 + sum).collect();
            assert_eq!(found.shape(), [height, 4]);
            assert_eq!(found.as_slice::<f32>().unwrap(), want);
        }
    }
    let found = compiled.statistics();
    assert!(found.plans <= 4, "{found:?}");
}

/// `Σ NonZero(flags) > 5 ? ShapeOf(x) · 2 : ShapeOf(x) - 1`, where the shape is found before `NonZero` is called, and the branches are
/// called after it.
#[test]
fn a_branch_gets_what_an_earlier_segment_knows() {
    let core = Core::new().unwrap();
    let mut graph = Graph::default();
    let [_, sum, shape] = inputs(&mut graph);
    let most = graph.number(5);
    let is_more = graph.open("Greater", "opset1", "", &[&sum, &most], Boolean);
    let mut branch = |tag: &str, operator: &str, number: i64| {
        let body = graph.inside(|graph| {
            let parameter = graph.parameter("p", I64, &[2]);
            let number = graph.number(number);
            vec![graph.open(operator, "opset1", "", &[&parameter, &number], I64)]
        });
        format!(
            "<{tag}_port_map><input external_port_id=\"1\" internal_layer_id=\"0\"/>\
             <output external_port_id=\"2\" internal_layer_id=\"3\"/></{tag}_port_map><{tag}_body>{body}</{tag}_body>"
        )
    };
    let branches = branch("then", "Multiply", 2) + &branch("else", "Subtract", 1);
    let layer = graph.layer_around("if", "If", "opset8", "", &[&is_more, &shape], 1, &branches);
    let found = Value {
        layer,
        port: 2,
        ..shape
    };
    for specialization in Specialization::ALL {
        let compiled = compiled(&core, &graph, found.clone(), Dim::ANY, specialization);
        let mut request = compiled.create_request();
        for height in 0..6 {
            for count in [2, 4] {
                let x = Tensor::zeros(F32, &[height, 7]).unwrap();
                let found = result(&mut request, x, count);
                let shape = [height as i64, 7];
                let want = shape.map(|n| if count == 4 { n * 2 } else { n - 1 });
                assert_eq!(found.as_slice::<i64>().unwrap(), want.to_vec());
            }
        }
    }
}

/// `Σ If(Π ShapeOf(x) > 9, x, Concat(x, x)) + Σ NonZero(flags)`. Which branch a shape takes is known of it alone, so that both layers are
/// called at once, and not of a class of shapes, which calls them one after the other.
#[test]
fn a_branch_that_no_class_knows_is_called_alone() {
    let core = Core::new().unwrap();
    let mut graph = Graph::default();
    let x = graph.parameter("x", F32, &[5, 4]);
    let flags = graph.parameter("flags", I64, &[6]);
    let shape = graph.open("ShapeOf", "opset3", AS_I64, &[&x], I64);
    let (axes, flat) = (graph.list(&[0]), "keep_dims=\"false\"");
    let area = graph.open("ReduceProd", "opset1", flat, &[&shape, &axes], I64);
    let most = graph.number(9);
    let is_more = graph.open("Greater", "opset1", "", &[&area, &most], Boolean);
    let then = graph.inside(|graph| {
        let x = graph.parameter("p", F32, &[5, 4]);
        vec![graph.open("Relu", "opset1", "", &[&x], F32)]
    });
    let otherwise = graph.inside(|graph| {
        let x = graph.parameter("p", F32, &[5, 4]);
        vec![graph.open("Concat", "opset1", "axis=\"0\"", &[&x, &x], F32)]
    });
    let branch = |tag: &str, body: &str| {
        format!(
            "<{tag}_port_map><input external_port_id=\"1\" internal_layer_id=\"0\"/>\
             <output external_port_id=\"2\" internal_layer_id=\"2\"/></{tag}_port_map><{tag}_body>{body}</{tag}_body>"
        )
    };
    let branches = branch("then", &then) + &branch("else", &otherwise);
    let layer = graph.layer_around("if", "If", "opset8", "", &[&is_more, &x], 1, &branches);
    let chosen = Value {
        layer,
        port: 2,
        ..x
    };
    let axes = graph.list(&[0, 1]);
    let chosen = graph.open("ReduceSum", "opset1", flat, &[&chosen, &axes], F32);
    let all = graph.open("NonZero", "opset3", AS_I64, &[&flags], I64);
    let sum = graph.open("ReduceSum", "opset1", flat, &[&all, &axes], I64);
    let as_f32 = "destination_type=\"f32\"";
    let sum = graph.open("Convert", "opset1", as_f32, &[&sum], F32);
    let y = graph.open("Add", "opset1", "", &[&chosen, &sum], F32);
    for specialization in Specialization::ALL {
        let compiled = compiled(&core, &graph, y.clone(), Dim::ANY, specialization);
        let mut request = compiled.create_request();
        for height in 1..6 {
            for count in [2, 4] {
                let x = Tensor::from_slice(&[height, 4], &vec![1f32; height * 4]).unwrap();
                let found = result(&mut request, x, count);
                let times = if height * 4 > 9 { 1 } else { 2 };
                let want = (height * 4 * times + count * (count - 1) / 2) as f32;
                assert_eq!(*found.as_slice::<f32>().unwrap(), [want]);
            }
        }
    }
}
