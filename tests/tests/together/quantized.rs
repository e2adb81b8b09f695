//! Quantised networks: products of values on grids are sums of bytes, which give the same bits at every level
//! and for any number of threads, near what the layers say one by one in `f64`, and NaN where that is.

use std::num::NonZeroUsize;
use vinelift::{Config, Core, ElementType, Level, Model, Specialization, Stage, Tensor};
use vinelift_tests::{outputs, outputs_with, same};

/// The layers of a model in the making.
#[derive(Default)]
struct Layers {
    layers: String,
    edges: String,
    bytes: Vec<u8>,
    count: usize,
}

impl Layers {
    fn layer(&mut self, ty: &str, version: &str, data: &str, inputs: &[usize]) -> usize {
        let id = self.count;
        self.count += 1;
        let ports: String = (0..inputs.len())
            .map(|k| format!("<port id=\"{k}\"/>"))
            .collect();
        let ports = if inputs.is_empty() {
            ports
        } else {
            format!("<input>{ports}</input>")
        };
        let output = if ty == "Result" {
            ""
        } else {
            "<output><port id=\"9\"/></output>"
        };
        self.layers += &format!(
            "<layer id=\"{id}\" name=\"{ty}{id}\" type=\"{ty}\" version=\"{version}\"><data {data}/>{ports}{output}</layer>"
        );
        for (port, from) in inputs.iter().enumerate() {
            self.edges += &format!(
                "<edge from-layer=\"{from}\" from-port=\"9\" to-layer=\"{id}\" to-port=\"{port}\"/>"
            );
        }
        id
    }

    fn parameter(&mut self, shape: &str) -> usize {
        let data = format!("element_type=\"f32\" shape=\"{shape}\"");
        self.layer("Parameter", "opset1", &data, &[])
    }

    fn constant(&mut self, ty: &str, shape: &str, bytes: &[u8]) -> usize {
        let (offset, size) = (self.bytes.len(), bytes.len());
        self.bytes.extend_from_slice(bytes);
        let data =
            format!("element_type=\"{ty}\" shape=\"{shape}\" offset=\"{offset}\" size=\"{size}\"");
        self.layer("Const", "opset1", &data, &[])
    }

    fn quantize(&mut self, x: usize, low: f32, high: f32) -> usize {
        let mut ends = [low, high, low, high]
            .map(|v| self.constant("f32", "", &v.to_le_bytes()))
            .to_vec();
        ends.insert(0, x);
        self.layer(
            "FakeQuantize",
            "opset1",
            "levels=\"256\" auto_broadcast=\"numpy\"",
            &ends,
        )
    }

    /// `f32(weights) · scales`
    fn weights(&mut self, shape: &str, scales: &str, weights: &[i8], values: &[f32]) -> usize {
        let bytes: Vec<u8> = weights.iter().map(|w| *w as u8).collect();
        let weights = self.constant("i8", shape, &bytes);
        let weights = self.layer("Convert", "opset1", "destination_type=\"f32\"", &[weights]);
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let scales = self.constant("f32", scales, &bytes);
        self.layer(
            "Multiply",
            "opset1",
            "auto_broadcast=\"numpy\"",
            &[weights, scales],
        )
    }

    fn model(mut self, core: &Core, result: usize) -> Model {
        self.layer("Result", "opset1", "", &[result]);
        let text = format!(
            "<net name=\"q\" version=\"11\"><layers>{}</layers><edges>{}</edges></net>",
            self.layers, self.edges
        );
        core.read_model_from_memory(text.as_bytes(), self.bytes)
            .unwrap()
    }
}

/// Numbers from a seed.
fn numbers(count: usize, seed: u64) -> impl Iterator<Item = u32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..count).map(move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u32
    })
}

/// Values in steps of 0.01 from -0.8 to 2.4, off the middle between two.
fn activations(count: usize, seed: u64) -> Vec<f32> {
    let value = |n: u32| ((n % 320) as f32 - 80.0 + (n >> 16 & 3) as f32 / 10.0) * 0.01;
    numbers(count, seed).map(value).collect()
}

fn weights(count: usize, seed: u64) -> Vec<i8> {
    numbers(count, seed).map(|n| n as i8).collect()
}

/// The value of `x` on a grid of 256 values from -0.5 to 2.05.
fn on_grid(x: f32) -> f64 {
    let x = f64::from(x);
    (((x.clamp(-0.5, 2.05) + 0.5) * 100.0).round_ties_even() - 50.0) * 0.01
}

/// Runs the model in every way, compares, and says what it gives.
fn run(core: &Core, model: &Model, inputs: &[Tensor]) -> Vec<f64> {
    let expected = outputs(core, model, Level::Interpreted, inputs).unwrap();
    for level in [Level::Fused, Level::Compiled, Level::Scheduled] {
        let got = outputs(core, model, level, inputs).unwrap();
        assert!(same(&got[0], &expected[0]), "at {level:?}");
    }
    // Values that the model has quantised are not quantised again.
    let config = Config::new().dynamic_quantization_group_size(32);
    let got = outputs_with(core, model, config, inputs).unwrap();
    assert!(same(&got[0], &expected[0]), "with rows to be quantised");
    for threads in 1..=4 {
        let config = Config {
            threads: NonZeroUsize::new(threads),
            ..Config::default()
        };
        let mut request = core
            .compile_model_with(model, config)
            .unwrap()
            .create_request();
        for (k, tensor) in inputs.iter().enumerate() {
            request.set_input_at(k, tensor.clone()).unwrap();
        }
        request.infer().unwrap();
        assert!(
            same(&request.outputs()[0], &expected[0]),
            "{threads} threads"
        );
    }
    expected[0].to_f64_vec().unwrap()
}

/// Compares with sums in `f64`, as exact as an `f32` can be for terms of that size.
fn check(got: f64, terms: impl Iterator<Item = f64>) {
    let (sum, all) = terms.fold((0.0, 0.0), |(sum, all), t| (sum + t, all + t.abs()));
    if sum.is_nan() {
        assert!(got.is_nan());
    } else {
        assert!((got - sum).abs() <= 4e-7 * all, "{got} for {sum}");
    }
}

#[test]
fn products_with_weights() {
    let core = Core::new().unwrap();
    let (m, k, n) = (23, 70, 37);
    let mut layers = Layers::default();
    let x = layers.parameter("23,70");
    let q = layers.quantize(x, -0.5, 2.05);
    let w = weights(k * n, 1);
    let scales: Vec<f32> = numbers(n, 2).map(|v| v as f32 * 1e-11 + 0.001).collect();
    let s = layers.weights("70,37", "1,37", &w, &scales);
    let y = layers.layer(
        "MatMul",
        "opset1",
        "transpose_a=\"false\" transpose_b=\"false\"",
        &[q, s],
    );
    let model = layers.model(&core, y);
    let mut data = activations(m * k, 3);
    (data[5], data[2 * k + 69], data[7 * k]) = (f32::INFINITY, f32::NAN, f32::NEG_INFINITY);
    let y = run(
        &core,
        &model,
        &[Tensor::from_slice(&[m, k], &data).unwrap()],
    );
    for (at, y) in y.into_iter().enumerate() {
        let (i, j) = (at / n, at % n);
        let terms = (0..k)
            .map(|k0| on_grid(data[i * k + k0]) * f64::from(w[k0 * n + j]) * f64::from(scales[j]));
        check(y, terms);
    }
}

/// The zero point of the row is multiplied by sums of weights. These are computed before the first run, all steps of them.
#[test]
fn products_of_one_row() {
    let core = Core::new().unwrap();
    let (k, n) = (1024, 70);
    let mut layers = Layers::default();
    let x = layers.parameter("1,1024");
    let q = layers.quantize(x, -0.5, 2.05);
    let w = weights(k * n, 1);
    let scales: Vec<f32> = numbers(n, 2).map(|v| v as f32 * 1e-11 + 0.001).collect();
    let s = layers.weights("70,1024", "70,1", &w, &scales);
    let data = "transpose_a=\"false\" transpose_b=\"true\"";
    let y = layers.layer("MatMul", "opset1", data, &[q, s]);
    let model = layers.model(&core, y);
    let compiled = core.compile_model(&model).unwrap();
    let nest = compiled.dump(Stage::Scheduled, &[None], None).unwrap();
    let (once, each) = nest.split_once("# in each run").unwrap();
    assert!(once.contains("right.total.lanes["), "{nest}");
    assert!(!each.contains("right.total.lanes["), "{nest}");
    assert!(each.contains("0i32]"), "{nest}");
    let data = activations(k, 3);
    let y = run(
        &core,
        &model,
        &[Tensor::from_slice(&[1, k], &data).unwrap()],
    );
    for (j, y) in y.into_iter().enumerate() {
        let scale = f64::from(scales[j]);
        let terms = (0..k).map(|k0| on_grid(data[k0]) * f64::from(w[j * k + k0]) * scale);
        check(y, terms);
    }
}

/// Weights that folding would make `f32` of stay codes, so that sums are exact for any number of them.
#[test]
fn products_with_few_weights_are_exact() {
    let core = Core::new().unwrap();
    for (m, k, n) in [
        // The fewest of which the codes are kept, and fewer or of fewer columns, which are near to that.
        (256, 8, 8),
        (512, 7, 8),
        (300, 9, 7),
        (16, 33, 32),
        (16, 70, 37),
        (16, 512, 128),
        (16, 256, 300),
    ] {
        let keeps_codes = k * n >= 64 && n >= 8;
        let mut layers = Layers::default();
        let x = layers.parameter(&format!("{m},{k}"));
        let q = layers.quantize(x, 0.0, 2.55);
        let w = weights(k * n, 1);
        let s = layers.weights(&format!("{k},{n}"), "1", &w, &[0.5]);
        let data = "transpose_a=\"false\" transpose_b=\"false\"";
        let y = layers.layer("MatMul", "opset1", data, &[q, s]);
        let model = layers.model(&core, y);
        let codes: Vec<u32> = numbers(m * k, 3).map(|v| v % 256).collect();
        let x: Vec<f32> = codes.iter().map(|code| *code as f32 * 0.01).collect();
        let y = run(&core, &model, &[Tensor::from_slice(&[m, k], &x).unwrap()]);
        let scale = (f64::from(2.55f32) / 255.0 * 0.5) as f32;
        for (at, y) in y.into_iter().enumerate() {
            let (i, j) = (at / n, at % n);
            let products = (0..k).map(|l| codes[i * k + l] as i32 * i32::from(w[l * n + j]));
            match keeps_codes {
                true => {
                    let expected = products.sum::<i32>() as f32 * scale;
                    assert_eq!(y, f64::from(expected), "{k} {n} at {i}, {j}");
                }
                false => check(y, products.map(|p| f64::from(p) * f64::from(scale))),
            }
        }
    }
}

/// Weights of few channels stay codes where the model transposes the pixels before, as their channels lie beside each other.
#[test]
fn products_with_channels_of_transposed_pixels_are_exact() {
    let core = Core::new().unwrap();
    let (height, width, channels, results) = (24, 25, 3, 8);
    let w = weights(results * channels * 9, 1);
    let codes: Vec<u32> = numbers(height * width * channels, 3)
        .map(|v| v % 256)
        .collect();
    let scale = (f64::from(2.55f32) / 255.0 * 0.5) as f32;
    for is_transposed in [true, false] {
        let mut layers = Layers::default();
        let x = match is_transposed {
            true => {
                let x = layers.parameter("1,24,25,3");
                let order = [0i64, 3, 1, 2].map(i64::to_le_bytes).concat();
                let order = layers.constant("i64", "4", &order);
                layers.layer("Transpose", "opset1", "", &[x, order])
            }
            false => layers.parameter("1,3,24,25"),
        };
        let code = |c, i, j| match is_transposed {
            true => codes[(i * width + j) * channels + c],
            false => codes[(c * height + i) * width + j],
        };
        let q = layers.quantize(x, 0.0, 2.55);
        let s = layers.weights("8,3,3,3", "1", &w, &[0.5]);
        let data = "strides=\"1,1\" pads_begin=\"0,0\" pads_end=\"0,0\" dilations=\"1,1\" auto_pad=\"explicit\"";
        let y = layers.layer("Convolution", "opset1", data, &[q, s]);
        let model = layers.model(&core, y);
        let x: Vec<f32> = codes.iter().map(|code| *code as f32 * 0.01).collect();
        let shape = match is_transposed {
            true => [1, height, width, channels],
            false => [1, channels, height, width],
        };
        let y = run(&core, &model, &[Tensor::from_slice(&shape, &x).unwrap()]);
        let (rows, columns) = (height - 2, width - 2);
        assert_eq!(y.len(), results * rows * columns);
        for (at, y) in y.into_iter().enumerate() {
            let (o, i, j) = (at / (rows * columns), at / columns % rows, at % columns);
            let products = (0..channels * 9).map(|k| {
                let (c, m, n) = (k / 9, k / 3 % 3, k % 3);
                code(c, i + m, j + n) as i32 * i32::from(w[o * channels * 9 + k])
            });
            match is_transposed {
                true => assert_eq!(y, f64::from(products.sum::<i32>() as f32 * scale)),
                false => check(y, products.map(|p| f64::from(p) * f64::from(scale))),
            }
        }
    }
}

#[test]
fn products_of_activations() {
    let core = Core::new().unwrap();
    let (m, k, n) = (19, 64, 21);
    let mut layers = Layers::default();
    let (a, b) = (layers.parameter("2,19,64"), layers.parameter("2,21,64"));
    let (a, b) = (
        layers.quantize(a, -0.5, 2.05),
        layers.quantize(b, -0.5, 2.05),
    );
    let y = layers.layer(
        "MatMul",
        "opset1",
        "transpose_a=\"false\" transpose_b=\"true\"",
        &[a, b],
    );
    let model = layers.model(&core, y);
    let (mut a, mut b) = (activations(2 * m * k, 4), activations(2 * n * k, 5));
    (a[100], b[200]) = (f32::NAN, f32::NAN);
    let inputs = [
        Tensor::from_slice(&[2, m, k], &a).unwrap(),
        Tensor::from_slice(&[2, n, k], &b).unwrap(),
    ];
    let y = run(&core, &model, &inputs);
    for (at, y) in y.into_iter().enumerate() {
        let (batch, i, j) = (at / (m * n), at / n % m, at % n);
        let (a, b) = (&a[(batch * m + i) * k..], &b[(batch * n + j) * k..]);
        check(
            y,
            a[..k]
                .iter()
                .zip(&b[..k])
                .map(|(a, b)| on_grid(*a) * on_grid(*b)),
        );
    }
}

#[test]
fn padded_convolutions() {
    check_convolution(&[9], 1);
}

/// A NaN in a picture of a group is not in results of the other.
#[test]
fn grouped_convolutions() {
    check_convolution(&[18], 2);
}

/// Pieces of a picture that are on one grid, as networks put them together.
#[test]
fn convolutions_of_concatenations() {
    check_convolution(&[9, 16, 7], 1);
}

/// Quantises several pictures one by one, puts them together along the channels, and checks a convolution of the whole in groups of
/// channels. `pieces` says how many channels each picture has.
fn check_convolution(pieces: &[usize], groups: usize) {
    let core = Core::new().unwrap();
    let (channels, outs, size) = (pieces.iter().sum::<usize>(), 14, 12);
    let (inputs_of, outs_of) = (channels / groups, outs / groups);
    let mut layers = Layers::default();
    let shapes = pieces.iter().map(|c| format!("1,{c},12,12"));
    let inputs: Vec<usize> = shapes.map(|shape| layers.parameter(&shape)).collect();
    let quantized = inputs.iter().map(|x| layers.quantize(*x, -0.5, 2.05));
    let quantized: Vec<usize> = quantized.collect();
    let q = match quantized.as_slice() {
        [one] => *one,
        all => layers.layer("Concat", "opset1", "axis=\"1\"", all),
    };
    let w = weights(outs * inputs_of * 9, 6);
    let scales: Vec<f32> = numbers(outs, 7).map(|v| v as f32 * 1e-11 + 0.001).collect();
    let (ty, filters, scaled) = match groups {
        1 => (
            "Convolution",
            format!("14,{channels},3,3"),
            "14,1,1,1".into(),
        ),
        _ => (
            "GroupConvolution",
            format!("{groups},{outs_of},{inputs_of},3,3"),
            format!("{groups},{outs_of},1,1,1"),
        ),
    };
    let s = layers.weights(&filters, &scaled, &w, &scales);
    let data = "strides=\"1,1\" dilations=\"1,1\" pads_begin=\"1,1\" pads_end=\"1,1\" auto_pad=\"explicit\"";
    let y = layers.layer(ty, "opset1", data, &[q, s]);
    let model = layers.model(&core, y);
    let compiled = core.compile_model(&model).unwrap();
    let nest = compiled.dump(Stage::Nest, &vec![None; pieces.len()], None);
    assert!(nest.unwrap().contains("0i32]"), "no sums of bytes");
    let mut data = activations(channels * size * size, 8);
    data[3 * size * size + 40] = f32::NAN;
    data[(channels - 1) * size * size + 100] = f32::NAN;
    let mut rest = data.as_slice();
    let tensors = pieces.iter().map(|channels| {
        let piece;
        (piece, rest) = rest.split_at(channels * size * size);
        Tensor::from_slice(&[1, *channels, size, size], piece).unwrap()
    });
    let tensors: Vec<Tensor> = tensors.collect();
    let y = run(&core, &model, &tensors);
    for (at, y) in y.into_iter().enumerate() {
        let (o, h, v) = (at / (size * size), at / size % size, at % size);
        let points = (0..inputs_of).flat_map(|c| (0..9).map(move |p| (c, h + p / 3, v + p % 3, p)));
        let inside =
            points.filter(|&(_, h, v, _)| (1..=size).contains(&h) && (1..=size).contains(&v));
        let terms = inside.map(|(c, h, v, p)| {
            let channel = o / outs_of * inputs_of + c;
            let x = on_grid(data[(channel * size + h - 1) * size + v - 1]);
            x * f64::from(w[(o * inputs_of + c) * 9 + p]) * f64::from(scales[o])
        });
        check(y, terms);
    }
    assert_eq!(model.inputs()[0].element_type, ElementType::F32);
}

/// Windows that go by strides are sums of bytes where zero has the code 0: elsewhere, each result has its own sum of weights.
#[test]
fn transposed_convolutions() {
    for (low, window, pad, are_bytes) in [
        (0.0, 2, 0, true),
        (0.0, 3, 1, true),
        (-0.5, 2, 0, true),
        (-0.5, 3, 1, true),
        (-0.5, 4, 1, true),
    ] {
        check_transposed(low, window, pad, are_bytes);
    }
}

/// Checks a transposed convolution of 12 channels of 9×9, on a grid of 256 values from `low` on, with stride 2.
fn check_transposed(low: f32, window: usize, pad: usize, are_bytes: bool) {
    let core = Core::new().unwrap();
    let (channels, outs, size) = (12, 10, 9);
    let out_size = 2 * (size - 1) + window - 2 * pad;
    let mut layers = Layers::default();
    let x = layers.parameter("1,12,9,9");
    let q = layers.quantize(x, low, low + 2.55);
    let points = window * window;
    let w = weights(channels * outs * points, 16);
    let scales: Vec<f32> = numbers(outs, 7).map(|v| v as f32 * 1e-11 + 0.001).collect();
    let s = layers.weights(&format!("12,10,{window},{window}"), "10,1,1", &w, &scales);
    let data = format!(
        "strides=\"2,2\" dilations=\"1,1\" pads_begin=\"{pad},{pad}\" pads_end=\"{pad},{pad}\" auto_pad=\"explicit\""
    );
    let y = layers.layer("ConvolutionBackpropData", "opset1", &data, &[q, s]);
    let model = layers.model(&core, y);
    let compiled = core.compile_model(&model).unwrap();
    let nest = compiled.dump(Stage::Nest, &[None], None).unwrap();
    assert_eq!(nest.contains("0i32]"), are_bytes, "{low}, {window}: {nest}");
    let mut data = activations(channels * size * size, 8);
    data[3 * size * size + 40] = f32::NAN;
    let x = Tensor::from_slice(&[1, channels, size, size], &data).unwrap();
    let y = run(&core, &model, &[x]);
    assert_eq!(y.len(), outs * out_size * out_size);
    let low = f64::from(low);
    let on_grid = |x: f32| {
        let x = f64::from(x).clamp(low, low + 2.55);
        ((x - low) * 100.0).round_ties_even() * 0.01 + low
    };
    for (at, y) in y.into_iter().enumerate() {
        let (o, h, v) = (
            at / (out_size * out_size),
            at / out_size % out_size,
            at % out_size,
        );
        let taps =
            (0..channels).flat_map(|c| (0..points).map(move |p| (c, p / window, p % window)));
        let terms = taps.filter_map(|(c, p, r)| {
            let row = (h + pad).checked_sub(p).filter(|row| row % 2 == 0)? / 2;
            let column = (v + pad).checked_sub(r).filter(|column| column % 2 == 0)? / 2;
            let is_inside = row < size && column < size;
            let w = w[(c * outs + o) * points + p * window + r];
            let x = || on_grid(data[(c * size + row) * size + column]);
            is_inside.then(|| x() * f64::from(w) * f64::from(scales[o]))
        });
        check(y, terms);
    }
}

/// Rows that are put together from two pieces of any size, and summed over, give the same bits by code for all sizes and by
/// code for each.
#[test]
fn sums_over_concatenations_of_any_size() {
    let core = Core::new().unwrap();
    let mut layers = Layers::default();
    let [p, a, b] = ["19,?", "?,21", "?,21"].map(|shape| layers.parameter(shape));
    let [p, a, b] = [p, a, b].map(|x| layers.quantize(x, -0.5, 2.05));
    let c = layers.layer("Concat", "opset1", "axis=\"0\"", &[a, b]);
    let data = "transpose_a=\"false\" transpose_b=\"false\"";
    let y = layers.layer("MatMul", "opset1", data, &[p, c]);
    let model = layers.model(&core, y);
    let compiled = [Specialization::Generic, Specialization::Always].map(|specialization| {
        let config = Config::default().specialization(specialization);
        core.compile_model_with(&model, config).unwrap()
    });
    let mut requests = compiled.map(|compiled| compiled.create_request());
    for (rows, more) in [(40, 30), (41, 30), (40, 64), (7, 90)] {
        let numbers = |rows: usize, columns: usize, seed| {
            let data = activations(rows * columns, seed);
            Tensor::from_slice(&[rows, columns], &data).unwrap()
        };
        let inputs = [
            numbers(19, rows + more, 1),
            numbers(rows, 21, 2),
            numbers(more, 21, 3),
        ];
        let outputs = requests.each_mut().map(|request| {
            for (k, tensor) in inputs.iter().enumerate() {
                request.set_input_at(k, tensor.clone()).unwrap();
            }
            request.infer().unwrap();
            request.outputs()[0].clone()
        });
        assert!(same(&outputs[0], &outputs[1]), "{rows} {more}");
    }
}
