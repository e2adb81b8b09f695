//! Indices from callers who are not trusted: each is checked, and the model's owner says what one out of range means.
//! `cargo run -p vinelift --example untrusted_indices`.

#![expect(clippy::print_stdout, reason = "it shows what it finds")]

use std::path::Path;
use vinelift::{Config, Core, Error, IndexPolicy, Tensor};

fn main() -> Result<(), Error> {
    let samples = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../ir-samples"));
    let core = Core::new()?;
    let model = core.read_model(samples.join("gather_elements/specification_1.xml"))?;
    let data = Tensor::from_slice(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?;

    for policy in [IndexPolicy::Spec, IndexPolicy::Zero] {
        let compiled = core.compile_model_with(&model, Config::new().index_policy(policy))?;
        // The last would read four gigabytes after the end.
        for indices in [[0, 1, 0, 0], [0, 1, 0, -1], [0, 1, 0, i32::MAX]] {
            let indices = Tensor::from_slice(&[2, 2], &indices)?;
            match compiled.run([("data", data.clone()), ("indices", indices)]) {
                Ok(outputs) => println!("{policy:?}: {}", outputs[0]),
                // The caller's fault, and the error says which index it is. The next run is as any other.
                Err(Error::Fault(text)) => println!("{policy:?}: {text}"),
                Err(other) => return Err(other),
            }
        }
    }
    Ok(())
}
