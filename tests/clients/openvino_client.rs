//! Uses OpenVINO through its Rust crate: loads the library, reads, reshapes, compiles and runs models.
//!
//! Usage: `openvino_client SAMPLES`, the folder `ir-samples` of the repository.

use openvino::{
    Core, DeviceType, Dimension, ElementType, InferRequest, Layout, Model, PartialShape,
    PropertyKey, ResizeAlgorithm, RwPropertyKey, Shape, Tensor, prepostprocess,
};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

type Done = Result<(), Box<dyn Error>>;

fn main() -> Done {
    let samples = PathBuf::from(
        std::env::args_os()
            .nth(1)
            .ok_or("usage: openvino_client SAMPLES")?,
    );
    let mut core = Core::new()?;
    assert!(openvino::version().build_number.starts_with("2026."));
    devices(&mut core)?;
    reshaped(&mut core, &samples)?;
    digits(&mut core, &samples)?;
    from_memory(&mut core, &samples)?;
    out_of_range(&mut core, &samples)?;
    preprocessed(&mut core, &samples)?;
    println!("openvino: all is well");
    Ok(())
}

fn devices(core: &mut Core) -> Done {
    assert!(core.available_devices()?.contains(&DeviceType::CPU));
    assert!(!core.versions("CPU")?.is_empty());
    let supported = core.get_property(&DeviceType::CPU, &PropertyKey::SupportedProperties)?;
    assert!(supported.contains("INFERENCE_NUM_THREADS"), "{supported}");
    core.set_property(&DeviceType::CPU, &RwPropertyKey::InferenceNumThreads, "2")?;
    let threads = PropertyKey::Rw(RwPropertyKey::InferenceNumThreads);
    assert_eq!(core.get_property(&DeviceType::CPU, &threads)?, "2");
    assert!(
        core.set_property(&DeviceType::GPU, &RwPropertyKey::NumStreams, "2")
            .is_err()
    );
    Ok(())
}

/// A model takes other shapes: by its only input, by names, by positions and by ports.
fn reshaped(core: &mut Core, samples: &Path) -> Done {
    let mut model = read(core, &samples.join("models/digits/digits.xml"))?;
    assert!(model.is_dynamic());
    let two = PartialShape::new_static(2, &[2, 64])?;
    let any = PartialShape::new(2, &[Dimension::new(-1, -1), Dimension::new(64, 64)])?;
    for way in 0..5 {
        for (shape, is_dynamic) in [(&two, false), (&any, true)] {
            match way {
                0 => model.reshape_single_input(shape)?,
                1 => model.reshape_input_by_name("pixels", shape)?,
                2 => model.reshape(&[("pixels", shape)])?,
                3 => model.reshape_by_port_indexes(&[(0, shape)])?,
                _ => {
                    let port = model.get_input_by_index(0)?;
                    model.reshape_by_ports(&[(&port, shape)])?;
                }
            }
            assert_eq!(model.is_dynamic(), is_dynamic, "way {way}");
            let found = model.get_input_by_index(0)?.get_partial_shape()?;
            assert_eq!(found.get_dimensions()[0].is_dynamic(), is_dynamic);
        }
    }
    model.reshape_single_input(&two)?;
    assert_eq!(
        model.get_input_by_index(0)?.get_shape()?.get_dimensions(),
        [2, 64]
    );
    let wrong = PartialShape::new_static(2, &[2, 63])?;
    assert!(model.reshape_single_input(&wrong).is_err());
    Ok(())
}

/// A network with weights looks at a handwritten seven, on this thread and on another.
fn digits(core: &mut Core, samples: &Path) -> Done {
    let folder = samples.join("models/digits");
    let model = read(core, &folder.join("digits.xml"))?;
    let mut compiled = core.compile_model(&model, DeviceType::CPU)?;
    drop(model);
    let mut request = compiled.create_infer_request()?;
    drop(compiled);
    let image = fs::read(folder.join("seven.npy"))?;
    // 64 numbers of 4 bytes come after the header of the file.
    let pixels = tensor(ElementType::I32, &[1, 64], &image[image.len() - 256..])?;
    request.set_input_tensor(&pixels)?;
    drop(pixels);
    assert_eq!(best(&mut request)?, 7);
    request.infer_async()?;
    request.wait(60_000)?;
    assert_eq!(best(&mut request)?, 7);
    Ok(())
}

fn best(request: &mut InferRequest) -> Result<usize, Box<dyn Error>> {
    request.infer()?;
    let found = request.get_tensor("probabilities")?;
    assert_eq!(found.get_shape()?.get_dimensions(), [1, 10]);
    let found = found.get_data::<f32>()?;
    let best = (0..10).max_by(|a, b| found[*a].total_cmp(&found[*b]));
    best.ok_or_else(|| "no digit".into())
}

/// Text and weights of a model can go once it is read.
fn from_memory(core: &mut Core, samples: &Path) -> Done {
    let path = samples.join("models/digits/digits.xml");
    let bytes = fs::read(path.with_extension("bin"))?;
    let weights = tensor(ElementType::U8, &[1, bytes.len() as i64], &bytes)?;
    let text = fs::read(&path)?;
    let model = core.read_model_from_buffer(&text, Some(&weights))?;
    drop((weights, text));
    let mut compiled = core.compile_model(&model, DeviceType::CPU)?;
    let mut request = compiled.create_infer_request()?;
    let zeros = tensor(ElementType::I32, &[1, 64], &[0; 256])?;
    request.set_tensor("pixels", &zeros)?;
    request.infer()?;
    let found = request.get_tensor("probabilities")?;
    let sum: f32 = found.get_data::<f32>()?.iter().sum();
    assert!((sum - 1.0).abs() < 1e-5, "{sum}");
    Ok(())
}

/// An index out of range is an error of the run, and the request goes on.
fn out_of_range(core: &mut Core, samples: &Path) -> Done {
    let model = read(core, &samples.join("gather_nd/onnx_1.xml"))?;
    let mut compiled = core.compile_model(&model, DeviceType::CPU)?;
    let mut request = compiled.create_infer_request()?;
    let bytes: Vec<u8> = [0i32, 1, 2, 3]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    request.set_tensor("data", &tensor(ElementType::I32, &[2, 2], &bytes)?)?;
    let mut run = |indices: [i64; 4]| -> Result<Vec<i32>, Box<dyn Error>> {
        let bytes: Vec<u8> = indices.iter().flat_map(|v| v.to_le_bytes()).collect();
        request.set_tensor("indices", &tensor(ElementType::I64, &[2, 2], &bytes)?)?;
        request.infer()?;
        Ok(request.get_output_tensor()?.get_data::<i32>()?.to_vec())
    };
    for far in [2, -3, 1 << 40, i64::MAX, i64::MIN] {
        for position in 0..4 {
            let mut indices = [0, 0, 1, 1];
            indices[position] = far;
            assert!(run(indices).is_err(), "{indices:?}");
        }
    }
    assert_eq!(run([0, 0, 1, 1])?, [0, 3]);
    assert_eq!(run([-1, -2, 0, -1])?, [2, 1]);
    Ok(())
}

/// Images of another layout, size and type go through layers that convert them.
fn preprocessed(core: &mut Core, samples: &Path) -> Done {
    let mut model = read(core, &samples.join("max_pool/opset1.xml"))?;
    let port = model.get_input_by_index(0)?;
    let (name, dims) = (
        port.get_name()?,
        port.get_shape()?.get_dimensions().to_vec(),
    );
    let given = [dims[0], 2 * dims[2], 2 * dims[3], dims[1]];
    let image = Tensor::new(ElementType::U8, &Shape::new(&given)?)?;
    let pipeline = prepostprocess::Pipeline::new(&mut model)?;
    let info = pipeline.get_input_info_by_name(&name)?;
    let mut of_tensor = info.get_tensor_info()?;
    of_tensor.set_from(&image)?;
    of_tensor.set_layout(Layout::new("NHWC")?)?;
    let mut steps = info.get_steps()?;
    steps.convert_element_type(ElementType::F32)?;
    steps.resize(ResizeAlgorithm::Linear)?;
    let mut of_model = info.get_model_info()?;
    of_model.set_layout(Layout::new("NCHW")?)?;
    let built = pipeline.build_new_model()?;
    assert_eq!(
        built.get_input_by_index(0)?.get_shape()?.get_dimensions(),
        given
    );
    let mut compiled = core.compile_model(&built, DeviceType::CPU)?;
    let mut request = compiled.create_infer_request()?;
    let bytes = vec![9; given.iter().product::<i64>() as usize];
    request.set_tensor(&name, &tensor(ElementType::U8, &given, &bytes)?)?;
    request.infer()?;
    let found = request.get_output_tensor_by_index(0)?;
    assert!(found.get_data::<f32>()?.iter().all(|v| *v == 9.0));
    Ok(())
}

fn read(core: &mut Core, path: &Path) -> Result<Model, Box<dyn Error>> {
    let weights = path.with_extension("bin");
    let weights = if weights.exists() {
        weights
    } else {
        PathBuf::new()
    };
    Ok(core.read_model_from_file(&path.to_string_lossy(), &weights.to_string_lossy())?)
}

fn tensor(ty: ElementType, dims: &[i64], bytes: &[u8]) -> Result<Tensor, Box<dyn Error>> {
    let mut tensor = Tensor::new(ty, &Shape::new(dims)?)?;
    tensor.get_raw_data_mut()?.copy_from_slice(bytes);
    Ok(tensor)
}
