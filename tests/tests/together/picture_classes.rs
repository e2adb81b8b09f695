//! Networks over pictures of any size: a plan that serves them all has its channels last and borders around its temporaries as plans
//! of one size have, and gives the same bits.

use crate::pictures::{Network, network, separable};
use vinelift::{
    CompiledModel, Config, Core, Model, PartialShape, Specialization, Stage, Tensor, Vectors,
};
use vinelift_tests::{Random, same};

/// Makes a network over pictures of a size.
type Make = fn(&Core, [usize; 2]) -> Model;

/// Pictures that become sequences of pixels and pictures again, as transformers of pictures have them.
fn sequence(core: &Core, size: [usize; 2]) -> Model {
    let (mut net, x) = Network::over(core, size, 9);
    let first = net.convolution(&x, &[24, 3, 3, 3], 2, [1, 1]);
    let shape = net.layer("ShapeOf", "opset3", "output_type=\"i64\"", &[&first]);
    let [zero, sides, whole] = [&[0][..], &[2, 3], &[1, 24, -1]].map(|list| net.graph.list(list));
    let sides = net.layer(
        "Gather",
        "opset8",
        "batch_dims=\"0\"",
        &[&shape, &sides, &zero],
    );
    let plain = "special_zero=\"false\"";
    let pixels = net.layer("Reshape", "opset1", plain, &[&first, &whole]);
    let order = net.graph.list(&[0, 2, 1]);
    let tokens = net.layer("Transpose", "opset1", "", &[&pixels, &order]);
    let weights = net.constant(&[24, 32]);
    let products = "transpose_a=\"false\" transpose_b=\"false\"";
    let mixed = net.layer("MatMul", "opset1", products, &[&tokens, &weights]);
    let channels = net.layer("Transpose", "opset1", "", &[&mixed, &order]);
    let front = net.graph.list(&[1, 32]);
    let target = net.layer("Concat", "opset1", "axis=\"0\"", &[&front, &sides]);
    let picture = net.layer("Reshape", "opset1", plain, &[&channels, &target]);
    let apart = net.convolution(&picture, &[32, 1, 1, 3, 3], 1, [1, 1]);
    net.graph.model(core, &[apart]).unwrap()
}

fn run(compiled: &CompiledModel, x: &Tensor) -> Vec<Tensor> {
    let mut request = compiled.create_request();
    request.set_input_at(0, x.clone()).unwrap();
    request.infer().unwrap();
    request.outputs().to_vec()
}

/// Sizes with and without a last window that reaches beyond the picture, of which some are enough for tasks to make their rows.
const SIZES: [[usize; 2]; 5] = [[20, 33], [65, 67], [64, 64], [31, 30], [17, 40]];

#[test]
fn pictures_of_any_size_have_one_plan_with_channels_last() {
    let core = Core::new().unwrap();
    let networks = [
        ("network", network as Make),
        ("separable", separable),
        ("sequence", sequence),
    ];
    for (name, of) in networks {
        let model = of(&core, SIZES[0]);
        let any = model.reshape(&[(0, PartialShape::any_of_rank(4))]).unwrap();
        for vectors in [Vectors::Bits256, Vectors::Bits128] {
            let config = |specialization| Config {
                vectors,
                specialization,
                ..Config::default()
            };
            let class = config(Specialization::Generic);
            let class = core.compile_model_with(&any, class).unwrap();
            for size @ [rows, columns] in SIZES {
                let x = Random::new(3).fractions(3 * rows * columns);
                let x = Tensor::from_slice(&[1, 3, rows, columns], &x).unwrap();
                let alone = config(Specialization::Always);
                let alone = core.compile_model_with(&of(&core, size), alone).unwrap();
                let (found, want) = (run(&class, &x), run(&alone, &x));
                let is_same = found.iter().zip(&want).all(|(a, b)| same(a, b));
                assert!(is_same, "{name} of {size:?}, {vectors:?}");
            }
            let statistics = class.statistics();
            assert_eq!(statistics.unproven, 0, "{name}, {vectors:?}");
            assert!(statistics.plans <= 2, "{name}: {} plans", statistics.plans);
            let alone = core.compile_model_with(&model, config(Specialization::Always));
            let is_last = |compiled: &CompiledModel, shape| {
                let text = compiled.dump(Stage::Scheduled, &[shape], None).unwrap();
                text.contains(".channels_last[")
            };
            let shape = [1, 3, SIZES[0][0], SIZES[0][1]].to_vec();
            let of_class = is_last(&class, Some(shape));
            assert_eq!(
                of_class,
                is_last(&alone.unwrap(), None),
                "{name}, {vectors:?}"
            );
        }
    }
}
