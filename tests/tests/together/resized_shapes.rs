//! `Interpolate` of pictures of any size, by scales and by sizes that are worked out from the shape: a plan that serves
//! them all gives the same bits as one of its own for each.

use vinelift::{
    CompiledModel, Config, Core, ElementType, Model, PartialShape, Specialization, Tensor,
};
use vinelift_tests::{Graph, Random, same, tensor};

/// How pictures are resized.
#[derive(Clone, Copy, Debug)]
struct Resize {
    mode: &'static str,
    transform: &'static str,
    nearest: &'static str,
    antialias: bool,
    ty: ElementType,
    by: By,
}

/// How large the output is along the last two axes.
#[derive(Clone, Copy, Debug)]
enum By {
    Scales([f32; 2]),
    /// Times of the extents of the input.
    Sizes([i64; 2]),
}

impl Resize {
    fn model(&self, core: &Core) -> Model {
        let mut graph = Graph::default();
        let x = graph.parameter("x", self.ty, &[1, 2, 12, 18]);
        let axes = graph.list(&[2, 3]);
        let (calculation, asked) = match self.by {
            By::Scales(scales) => ("scales", graph.floats(&[2], &scales)),
            By::Sizes(times) => {
                let shape = graph.single(core, "ShapeOf", "opset1", "", &[&x]);
                let zero = graph.number(0);
                let taken = [&shape, &axes, &zero];
                let sides = graph.single(core, "Gather", "opset1", "", &taken);
                let times = graph.list(&times);
                let attributes = "auto_broadcast=\"numpy\"";
                let sizes = [&sides, &times];
                let sizes = graph.single(core, "Multiply", "opset1", attributes, &sizes);
                ("sizes", sizes)
            }
        };
        let attributes = format!(
            "mode=\"{}\" shape_calculation_mode=\"{calculation}\" coordinate_transformation_mode=\"{}\" \
             nearest_mode=\"{}\" antialias=\"{}\" pads_begin=\"0\" pads_end=\"0\" cube_coeff=\"-0.75\"",
            self.mode, self.transform, self.nearest, self.antialias
        );
        let inputs = [&x, &asked, &axes];
        let out = graph.single(core, "Interpolate", "opset11", &attributes, &inputs);
        graph.model(core, &[out]).unwrap()
    }
}

/// All modes and transformations, by scales that grow and shrink, and by sizes.
fn all() -> Vec<Resize> {
    let transforms = [
        "half_pixel",
        "pytorch_half_pixel",
        "asymmetric",
        "tf_half_pixel_for_nn",
        "align_corners",
    ];
    let scales = [
        By::Scales([2.0, 2.0]),
        By::Scales([0.5, 1.5]),
        By::Scales([3.0, 0.6]),
        By::Scales([0.25, 1.0]),
        By::Sizes([2, 3]),
    ];
    let nearest = [
        "round_prefer_floor",
        "round_prefer_ceil",
        "floor",
        "ceil",
        "simple",
    ];
    let mut all = Vec::new();
    for (k, (transform, by)) in (transforms.iter())
        .flat_map(|transform| scales.iter().map(move |by| (*transform, *by)))
        .enumerate()
    {
        for mode in ["nearest", "linear", "linear_onnx", "cubic"] {
            let types = [ElementType::F32, ElementType::F64, ElementType::U8];
            all.push(Resize {
                mode,
                transform,
                nearest: nearest[k % nearest.len()],
                antialias: false,
                ty: types[k % types.len()],
                by,
            });
        }
    }
    all.extend(windows());
    all
}

/// Windows that grow as the output shrinks.
fn windows() -> Vec<Resize> {
    let ways = [
        ("linear", "half_pixel", ElementType::F32),
        ("linear", "align_corners", ElementType::F64),
        ("bilinear_pillow", "half_pixel", ElementType::F32),
        ("bicubic_pillow", "half_pixel", ElementType::U8),
        ("bicubic_pillow", "half_pixel", ElementType::F64),
    ];
    let scales = [[0.5, 0.5], [0.3, 0.7], [1.5, 0.4], [2.0, 3.0]];
    let resize = |(mode, transform, ty), scales| Resize {
        mode,
        transform,
        nearest: "floor",
        antialias: true,
        ty,
        by: By::Scales(scales),
    };
    let all = ways
        .iter()
        .flat_map(|way| scales.map(|scales| resize(*way, scales)));
    all.collect()
}

fn run(compiled: &CompiledModel, input: &Tensor) -> Tensor {
    let mut request = compiled.create_request();
    request.set_input_at(0, input.clone()).unwrap();
    request.infer().unwrap();
    request.outputs()[0].clone()
}

#[test]
fn classes_give_the_bits_of_their_shapes() {
    let core = Core::new().unwrap();
    let mut random = Random::new(5);
    let mut wrong = Vec::new();
    for resize in all() {
        let model = resize.model(&core);
        let open = model.reshape(&[(0, PartialShape::any_of_rank(4))]).unwrap();
        let config = Config::default().specialization(Specialization::Generic);
        let class = core.compile_model_with(&open, config).unwrap();
        let shapes = [
            [1, 2, 12, 18],
            [1, 2, 16, 22],
            [1, 2, 25, 31],
            [1, 2, 41, 37],
        ];
        for shape in &shapes {
            let input = tensor(&model.inputs()[0], Some(shape.as_slice()), &mut random);
            let alone = model
                .reshape(&[(0, PartialShape::from(shape.as_slice()))])
                .unwrap();
            let want = run(&core.compile_model(&alone).unwrap(), &input);
            let found = run(&class, &input);
            if !same(&found, &want) {
                wrong.push(format!("{resize:?} at {shape:?}"));
            }
        }
        let found = class.statistics();
        if found.plans > 2 || found.unproven > 0 {
            let (plans, unproven) = (found.plans, found.unproven);
            wrong.push(format!("{resize:?}: {plans} plans, {unproven} not proven"));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}
