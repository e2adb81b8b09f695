//! The program in the README.
#![expect(clippy::print_stdout, reason = "it is a program")]

use vinelift::{Core, Tensor};

fn main() -> Result<(), vinelift::Error> {
    let core = Core::new()?;
    let model = core.read_model("ir-samples/gather_elements/specification_1.xml")?;
    let compiled = core.compile_model(&model)?;
    let data = Tensor::from_slice(&[2, 2], &[1.0f32, 2.0, 3.0, 4.0])?;
    let indices = Tensor::from_slice(&[2, 2], &[0i32, 1, 0, 0])?;
    let outputs = compiled.run([("data", data), ("indices", indices)])?;
    println!("{}", outputs[0]);
    Ok(())
}
