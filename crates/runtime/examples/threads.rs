//! One compiled model for many threads, and runs that nobody waits for at once.
//! `cargo run -p vinelift --example threads`.

#![expect(clippy::print_stdout, reason = "it shows what it finds")]

use std::path::Path;
use vinelift::{Config, Core, ElementType, Error, InferRequest, PartialShape, Tensor};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let samples = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../ir-samples"));
    let folder = samples.join("models/digits");
    let core = Core::new()?;
    let model = core.read_model(folder.join("digits.xml"))?;
    // Two runs at a time, each with one thread: for many small runs that is faster than all threads for one.
    let compiled = core.compile_model_with(&model, Config::new().threads(2).streams(2))?;
    let shape = PartialShape::from(&[10, 64][..]);
    let digits = Tensor::read_file(folder.join("ten_digits.npy"), ElementType::I32, &shape)?;
    let run = |mut request: InferRequest| -> Result<InferRequest, Error> {
        // A clone of a tensor shares its elements.
        request.set_input("pixels", digits.clone())?;
        request.infer()?;
        Ok(request)
    };

    // Each thread has a request of its own; the model, its code and its weights are shared.
    let answers = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| run(compiled.create_request())))
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.collect::<Result<Vec<_>, _>>()
    });
    let answers = answers.map_err(|_| "a thread has panicked")?;
    for request in answers {
        let digits = request?
            .output_named("digit")?
            .strings()
            .map(<[String]>::to_vec);
        println!("{}", digits.unwrap_or_default().join(" "));
    }

    // The same without threads of one's own. The request comes back with the result.
    let started = compiled.create_requests().into_iter().map(|mut request| {
        request.set_input("pixels", digits.clone())?;
        Ok(request.start_async())
    });
    let started = started.collect::<Result<Vec<_>, Error>>()?;
    for pending in started {
        let (request, done) = pending.wait();
        done?;
        let confidence = request.output_named("confidence")?.to_f64_vec()?;
        let least = confidence.into_iter().fold(1.0, f64::min);
        println!("{least:.2} at least");
    }
    Ok(())
}
