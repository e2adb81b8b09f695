//! A model that remembers: it appends rows to those of earlier runs, as caches of keys and values do, and adds them up.
//! `cargo run -p vinelift --example state`.

#![expect(clippy::print_stdout, reason = "it shows what it finds")]

use std::path::Path;
use vinelift::{Core, Error, Tensor};

fn main() -> Result<(), Error> {
    let samples = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../ir-samples"));
    let core = Core::new()?;
    let model = core.read_model(samples.join("assign/opset6_rows_that_grow.xml"))?;
    let compiled = core.compile_model(&model)?;

    // A request keeps the variables of the model from run to run. Another request has its own.
    let mut request = compiled.create_request();
    for row in [[1.0f32, 2.0], [10.0, 20.0], [100.0, 200.0]] {
        request.set_input("x", Tensor::from_slice(&[1, 2], &row)?)?;
        request.infer()?;
        println!("sums: {}", request.output(0)?);
    }

    // The state can be saved, and put back later or into another request.
    let rows = request.variable("rows").cloned();
    println!("rows: {:?}", rows.as_ref().map(Tensor::shape));
    request.reset();
    request.infer()?;
    println!("after a reset: {}", request.output(0)?);
    if let Some(rows) = rows {
        request.set_variable("rows", rows)?;
        request.infer()?;
        println!("as before: {}", request.output(0)?);
    }
    Ok(())
}
