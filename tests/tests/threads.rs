//! However many threads share a run, it ends in the same way.

use std::num::NonZeroUsize;
use vinelift::{Config, Core, Tensor};

#[test]
fn results_and_faults_do_not_depend_on_the_number_of_threads() {
    const ROWS: usize = 300_000;
    let core = Core::new().unwrap();
    let model = core
        .read_model_from_memory(vinelift::doc::GATHER.as_bytes(), Vec::new())
        .unwrap();
    let data = [1.0f32, 2.0, 3.0, 4.0];
    let good: Vec<i32> = (0..2 * ROWS as i32).map(|k| k * 7 % 4 - 2).collect();
    let gathered = |(k, index): (usize, &i32)| data[index.rem_euclid(2) as usize * 2 + k % 2];
    let want: Vec<f32> = good.iter().enumerate().map(gathered).collect();
    for threads in [1, 2, 3, 7] {
        let config = Config {
            threads: NonZeroUsize::new(threads),
            ..Config::default()
        };
        let compiled = core.compile_model_with(&model, config).unwrap();
        let mut request = compiled.create_request();
        let tensor = Tensor::from_slice(&[2, 2], &data).unwrap();
        request.set_input("data", tensor).unwrap();
        let mut infer = |indices: &[i32]| {
            let tensor = Tensor::from_slice(&[ROWS, 2], indices).unwrap();
            request.set_input("indices", tensor).unwrap();
            request.infer()?;
            Ok::<Vec<f32>, vinelift::Error>(request.output(0)?.as_slice::<f32>()?.to_vec())
        };
        assert!(infer(&good).unwrap() == want, "{threads} threads");
        for first in [0, 77, ROWS / 2, 2 * ROWS - 1] {
            let mut indices = good.clone();
            for wrong in [first, (first + ROWS).min(2 * ROWS - 1), 2 * ROWS - 1] {
                indices[wrong] = 2 + (wrong % 5) as i32;
            }
            let message = format!(
                "layer 'gathered' (GatherElements, opset6): `indices`[{}, {}] is {}, expected -2..=1",
                first / 2,
                first % 2,
                2 + first % 5
            );
            let found = infer(&indices).unwrap_err().to_string();
            assert_eq!(found, message, "{threads} threads");
        }
        assert!(infer(&good).unwrap() == want, "{threads} threads");
    }
}
