//! Which digit is in a picture: `cargo run -p vinelift --features image --example classify_image [PICTURE]`.

#![expect(clippy::print_stdout, reason = "it shows what it finds")]

use std::error::Error;
use std::path::Path;
use vinelift::image::{self, imageops};
use vinelift::{Core, ElementType, Preprocessor, Tensor};

fn main() -> Result<(), Box<dyn Error>> {
    let samples = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../ir-samples"));
    let folder = samples.join("models/digits");
    let picture = std::env::args_os().nth(1);
    let picture = picture.map_or(folder.join("seven.png"), Into::into);

    // The network was trained on 8 by 8 pixels. A tensor of a picture is [1, height, width, channels].
    let picture = image::open(picture)?.into_luma8();
    let small = imageops::thumbnail(&picture, 8, 8);
    let pixels = Tensor::try_from(&small)?.reshaped(&[1, 64])?;

    // It counts brightness from 0 to 16, a picture to 255. What is done to its input becomes a part of the model.
    let core = Core::new()?;
    let model = core.read_model(folder.join("digits.xml"))?;
    let mut steps = Preprocessor::new(&model);
    steps
        .input("pixels")?
        .element_type(ElementType::U8)
        .convert_element_type(ElementType::F32)
        .scale([255.0 / 16.0]);
    let compiled = core.compile_model(&steps.build()?)?;

    let outputs = compiled.run([("pixels", pixels)])?;
    let digit = outputs["digit"].strings().unwrap_or_default().join(", ");
    let confidence = outputs["confidence"].as_slice::<f32>()?;
    println!("{digit}, by {:.0} in 100", confidence[0] * 100.0);
    Ok(())
}
