//! Values that follow from shapes are known to all segments of a run, not only to the one that computes them.

use vinelift::{
    CompiledModel, Config, Core, Dim, ElementType, PartialShape, Specialization, Tensor,
};
use vinelift_tests::Graph;

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
