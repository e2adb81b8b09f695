//! Runs models through the OpenVINO backend of wasi-nn, as wasmtime does for a WebAssembly program.
//!
//! Usage: `wasi_nn_client SAMPLES`, the folder `ir-samples` of the repository.

use std::error::Error;
use std::path::{Path, PathBuf};
use wasmtime_wasi_nn::backend::openvino::OpenvinoBackend;
use wasmtime_wasi_nn::backend::{BackendError, BackendInner, Id, NamedTensor};
use wasmtime_wasi_nn::wit::{ExecutionTarget, Tensor, TensorType};
use wasmtime_wasi_nn::{ExecutionContext, Graph};

fn main() -> Result<(), Box<dyn Error>> {
    let samples = PathBuf::from(
        std::env::args_os()
            .nth(1)
            .ok_or("usage: wasi_nn_client SAMPLES")?,
    );
    let mut backend = OpenvinoBackend::default();
    digits(&mut backend, &samples)?;
    out_of_range(&mut backend, &samples)?;
    refused(&mut backend);
    println!("wasi-nn: all is well");
    Ok(())
}

/// A network with weights looks at a handwritten seven.
fn digits(backend: &mut OpenvinoBackend, samples: &Path) -> Result<(), Box<dyn Error>> {
    let folder = samples.join("models/digits");
    let mut request = request(&load(backend, &folder.join("digits.xml"))?)?;
    let image = std::fs::read(folder.join("seven.npy"))?;
    // 64 numbers of 4 bytes come after the header of the file.
    let pixels = Tensor {
        dimensions: vec![1, 64],
        ty: TensorType::I32,
        data: image[image.len() - 256..].to_vec(),
    };
    for id in [Id::Index(0), Id::Name("pixels".to_owned())] {
        request.set_input(id, &pixels)?;
        request.compute()?;
        let found = request.get_output(Id::Name("probabilities".to_owned()))?;
        assert_eq!(found.dimensions, [1, 10]);
        let probabilities = floats(&found.data);
        let best = (0..10).max_by(|a, b| probabilities[*a].total_cmp(&probabilities[*b]));
        assert_eq!(best, Some(7), "{probabilities:?}");
    }
    Ok(())
}

/// An index out of range is an error of the run, and the request goes on.
fn out_of_range(backend: &mut OpenvinoBackend, samples: &Path) -> Result<(), Box<dyn Error>> {
    let graph = load(backend, &samples.join("gather_nd/onnx_1.xml"))?;
    let mut request = request(&graph)?;
    let input = |name: &str, ty, data: Vec<u8>| NamedTensor {
        name: name.to_owned(),
        tensor: Tensor {
            dimensions: vec![2, 2],
            ty,
            data,
        },
    };
    let data: Vec<u8> = [0i32, 1, 2, 3]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let mut run = |indices: [i64; 4]| {
        let indices = indices.iter().flat_map(|v| v.to_le_bytes()).collect();
        request.compute_with_io(vec![
            input("data", TensorType::I32, data.clone()),
            input("indices", TensorType::I64, indices),
        ])
    };
    for far in [2, -3, 1 << 40, i64::MAX, i64::MIN] {
        for position in 0..4 {
            let mut indices = [0, 0, 1, 1];
            indices[position] = far;
            let failed = run(indices);
            assert!(
                matches!(failed, Err(BackendError::BackendAccess(_))),
                "{indices:?}"
            );
        }
    }
    let outputs = run([0, 0, 1, 1])?;
    let expected: Vec<u8> = [0i32, 3].iter().flat_map(|v| v.to_le_bytes()).collect();
    assert_eq!(outputs[0].tensor.data, expected);
    Ok(())
}

/// Bytes that are no model, and another device, are errors.
fn refused(backend: &mut OpenvinoBackend) {
    assert!(
        backend
            .load(&[b"<net/>", b""], ExecutionTarget::Cpu)
            .is_err()
    );
    assert!(
        backend
            .load(&[b"\xff\0", b"\0"], ExecutionTarget::Cpu)
            .is_err()
    );
}

fn load(backend: &mut OpenvinoBackend, model: &Path) -> Result<Graph, Box<dyn Error>> {
    let weights = std::fs::read(model.with_extension("bin")).unwrap_or_default();
    let text = std::fs::read(model)?;
    Ok(backend.load(&[&text, &weights], ExecutionTarget::Cpu)?)
}

fn request(graph: &Graph) -> Result<ExecutionContext, BackendError> {
    graph.init_execution_context()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let (chunks, _) = bytes.as_chunks::<4>();
    chunks.iter().map(|b| f32::from_le_bytes(*b)).collect()
}
