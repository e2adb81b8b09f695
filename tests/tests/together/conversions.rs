//! Numbers that go through other types: every width of vectors gives what the interpreter gives.

use vinelift::{Config, Core, ElementType, Level, Tensor, Vectors};
use vinelift_tests::{Graph, Random, Value, same, tensor};

use ElementType::{BF16, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};

#[test]
fn floats_go_through_integers() {
    let core = Core::new().unwrap();
    let mut random = Random::new(5);
    for from in [BF16, F16, F32, F64] {
        for through in [I8, U8, I16, U16, I32, U32, I64, U64] {
            let mut graph = Graph::default();
            let x = graph.parameter("x", from, &[3, 65]);
            let mut converted = |ty: ElementType, x: &Value| {
                let attributes = format!("destination_type=\"{ty}\"");
                graph.single(&core, "Convert", "opset1", &attributes, &[x])
            };
            let integer = converted(through, &x);
            let back = converted(F32, &integer);
            let model = graph.model(&core, &[back]).unwrap();
            let input = tensor(&model.inputs()[0], None, &mut random);
            let run = |config: Config| -> Tensor {
                let compiled = core.compile_model_with(&model, config).unwrap();
                let mut request = compiled.create_request();
                request.set_input_at(0, input.clone()).unwrap();
                request.infer().unwrap();
                request.outputs()[0].clone()
            };
            let want = run(Config::new().level(Level::Interpreted));
            for vectors in [Vectors::Widest, Vectors::Bits256, Vectors::Bits128] {
                let found = run(Config::new().vectors(vectors));
                let text = || format!("{from} through {through}, {vectors:?}");
                assert!(same(&found, &want), "{}", text());
            }
        }
    }
}
