//! Text in tensors: a model takes strings and gives their bytes, and where each begins and ends.
//! `cargo run -p vinelift --example text`.

#![expect(clippy::print_stdout, reason = "it shows what it finds")]

use std::path::Path;
use vinelift::{Core, Error, Tensor};

fn main() -> Result<(), Error> {
    let samples = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../ir-samples"));
    let core = Core::new()?;
    let model = core.read_model(samples.join("string_tensor_unpack/opset15_strings.xml"))?;
    let compiled = core.compile_model(&model)?;

    // A tensor of strings has texts of any length, in UTF-8.
    let words = ["one", "", "three", "vier"].map(str::to_owned).to_vec();
    let outputs = compiled.run([("data", Tensor::from_strings(&[2, 2], words)?)])?;

    let (begins, ends) = (outputs[0].to_i64_vec()?, outputs[1].to_i64_vec()?);
    let bytes = outputs[2].as_slice::<u8>()?;
    for (begin, end) in begins.into_iter().zip(ends) {
        let word = &bytes[begin as usize..end as usize];
        println!("{begin}..{end}: {:?}", String::from_utf8_lossy(word));
    }
    Ok(())
}
