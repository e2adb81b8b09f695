//! Values that follow from shapes are known to all segments of a run, not only to the one that computes them.

use vinelift::{
    CompiledModel, Config, Core, Dim, ElementType, PartialShape, Specialization, Tensor,
};
use vinelift_tests::{Graph, Value};

/// `x + Broadcast(Σ NonZero(flags), ShapeOf(x))[-ShapeOf(x)..]` for `x` of any height: the target of the broadcast and the start of the
/// slice are there before `NonZero` is called, and are read after it. The start is negative, and no number that plans could be for.
fn added(core: &Core) -> CompiledModel {
    let mut graph = Graph::default();
    let x = graph.parameter("x", ElementType::F32, &[5, 4]);
    let flags = graph.parameter("flags", ElementType::I64, &[6]);
    let shape = graph.single(core, "ShapeOf", "opset3", "output_type=\"i64\"", &[&x]);
    let zero = graph.number(0);
    let start = graph.single(core, "Subtract", "opset1", "", &[&zero, &shape]);
    let [stop, step, dims] = [[9999, 9999], [1, 1], [0, 1]].map(|list| graph.list(&list));
    let layer = graph.layer(
        "all",
        "NonZero",
        "opset3",
        "output_type=\"i64\"",
        &[&flags],
        1,
    );
    let mut all = flags.clone();
    (all.layer, all.port) = (layer, 1);
    let axes = graph.list(&[0, 1]);
    let sum = graph.single(
        core,
        "ReduceSum",
        "opset1",
        "keep_dims=\"false\"",
        &[&all, &axes],
    );
    let sum = graph.single(
        core,
        "Convert",
        "opset1",
        "destination_type=\"f32\"",
        &[&sum],
    );
    let spread = graph.layer(
        "spread",
        "Broadcast",
        "opset3",
        "mode=\"numpy\"",
        &[&sum, &shape],
        1,
    );
    let mut wide = x.clone();
    (wide.layer, wide.port) = (spread, 2);
    let slice = [&wide, &start, &stop, &step, &dims];
    let layer = graph.layer("slice", "Slice", "opset8", "", &slice, 1);
    (wide.layer, wide.port) = (layer, 5);
    let layer = graph.layer("y", "Add", "opset1", "", &[&x, &wide], 1);
    (wide.layer, wide.port) = (layer, 2);
    let model = graph.model(core, &[wide]).unwrap();
    let any = PartialShape::ranked(vec![Dim::ANY, Dim::from(4)]);
    let model = model.reshape(&[(0, any)]).unwrap();
    let config = Config {
        specialization: Specialization::Generic,
        ..Config::default()
    };
    core.compile_model_with(&model, config).unwrap()
}

/// Runs the model at 20 heights and three counts, and returns how many plans that took.
fn plans(compiled: &CompiledModel) -> usize {
    let mut request = compiled.create_request();
    for height in 2..22 {
        for count in 2..5 {
            let x: Vec<f32> = (0..height * 4).map(|k| k as f32).collect();
            let flags: Vec<i64> = (0..6).map(|k| (k < count).into()).collect();
            let x = Tensor::from_slice(&[height, 4], &x).unwrap();
            let flags = Tensor::from_slice(&[6], &flags).unwrap();
            request.set_input("x", x).unwrap();
            request.set_input("flags", flags).unwrap();
            request.infer().unwrap();
            let sum = (count * (count - 1) / 2) as f32;
            let want: Vec<f32> = (0..height * 4).map(|k| k as f32 + sum).collect();
            let found = request.output(0).unwrap();
            assert_eq!(found.shape(), [height, 4]);
            assert_eq!(found.as_slice::<f32>().unwrap(), want);
        }
    }
    compiled.statistics().plans
}

#[test]
fn a_target_that_an_earlier_segment_computes_is_known() {
    let core = Core::new().unwrap();
    let compiled = added(&core);
    assert!(plans(&compiled) <= 4, "{:?}", compiled.statistics());
}

/// `Σ NonZero(flags) > 5 ? ShapeOf(x) · 2 : ShapeOf(x) - 1`, where the shape is found before `NonZero` is called, and the branches are
/// called after it.
#[test]
fn a_branch_gets_what_an_earlier_segment_knows() {
    let core = Core::new().unwrap();
    let mut graph = Graph::default();
    let x = graph.parameter("x", ElementType::F32, &[5, 4]);
    let flags = graph.parameter("flags", ElementType::I64, &[6]);
    let as_i64 = "output_type=\"i64\"";
    let shape = graph.single(&core, "ShapeOf", "opset3", as_i64, &[&x]);
    let layer = graph.layer("all", "NonZero", "opset3", as_i64, &[&flags], 1);
    let all = Value {
        layer,
        port: 1,
        ty: ElementType::I64,
        shape: Vec::new(),
    };
    let [axes, most] = [graph.list(&[0, 1]), graph.number(5)];
    let flat = "keep_dims=\"false\"";
    let layer = graph.layer("sum", "ReduceSum", "opset1", flat, &[&all, &axes], 1);
    let sum = Value {
        layer,
        port: 2,
        ..all.clone()
    };
    let layer = graph.layer("is_more", "Greater", "opset1", "", &[&sum, &most], 1);
    let is_more = Value {
        layer,
        port: 2,
        ..all
    };
    let mut branch = |tag: &str, operator: &str, number: i64| {
        let body = graph.inside(|graph| {
            let parameter = graph.parameter("p", ElementType::I64, &[2]);
            let number = graph.number(number);
            vec![graph.single(&core, operator, "opset1", "", &[&parameter, &number])]
        });
        format!(
            "<{tag}_port_map><input external_port_id=\"1\" internal_layer_id=\"0\"/>\
             <output external_port_id=\"2\" internal_layer_id=\"3\"/></{tag}_port_map><{tag}_body>{body}</{tag}_body>"
        )
    };
    let branches = branch("then", "Multiply", 2) + &branch("else", "Subtract", 1);
    let inputs = [&is_more, &shape];
    let layer = graph.layer_around("if", "If", "opset8", "", &inputs, 1, &branches);
    let found = Value {
        layer,
        port: 2,
        ..shape
    };
    let model = graph.model(&core, &[found]).unwrap();
    let any = PartialShape::ranked(vec![Dim::ANY, Dim::ANY]);
    let model = model.reshape(&[(0, any)]).unwrap();
    for specialization in Specialization::ALL {
        let config = Config {
            specialization,
            ..Config::default()
        };
        let compiled = core.compile_model_with(&model, config).unwrap();
        let mut request = compiled.create_request();
        for height in 0..6 {
            for count in [2, 4] {
                let flags: Vec<i64> = (0..6).map(|k| (k < count).into()).collect();
                let x = Tensor::zeros(ElementType::F32, &[height, 7]).unwrap();
                request.set_input("x", x).unwrap();
                let flags = Tensor::from_slice(&[6], &flags).unwrap();
                request.set_input("flags", flags).unwrap();
                request.infer().unwrap();
                let shape = [height as i64, 7];
                let want = shape.map(|n| if count == 4 { n * 2 } else { n - 1 });
                assert_eq!(
                    request.output(0).unwrap().as_slice::<i64>().unwrap(),
                    want.to_vec()
                );
            }
        }
    }
}
