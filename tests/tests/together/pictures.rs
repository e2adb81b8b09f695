//! Networks over pictures, whose temporaries may have their channels last and borders around them: the same bits in every
//! way to run them.

use std::num::NonZeroUsize;
use vinelift::{Config, Core, ElementType, KernelTime, Level, Model, Stage, Tensor, Vectors};
use vinelift_tests::{Graph, Random, Value, same};

/// A graph of layers over pictures.
pub(crate) struct Network<'a> {
    core: &'a Core,
    pub(crate) graph: Graph,
    random: Random,
}

impl Network<'_> {
    /// A network with random weights of this seed, over one picture of three channels and this size.
    pub(crate) fn over(
        core: &Core,
        [rows, columns]: [usize; 2],
        seed: u64,
    ) -> (Network<'_>, Value) {
        let mut graph = Graph::default();
        let x = graph.parameter("x", ElementType::F32, &[1, 3, rows, columns]);
        let random = Random::new(seed);
        let net = Network {
            core,
            graph,
            random,
        };
        (net, x)
    }

    pub(crate) fn constant(&mut self, shape: &[usize]) -> Value {
        let numbers = self.random.fractions(shape.iter().product());
        self.graph.floats(shape, &numbers)
    }

    pub(crate) fn layer(
        &mut self,
        ty: &str,
        version: &str,
        attributes: &str,
        inputs: &[&Value],
    ) -> Value {
        self.graph
            .single(self.core, ty, version, attributes, inputs)
    }

    /// A convolution with weights of this shape, a bias, and no number below zero.
    pub(crate) fn convolution(
        &mut self,
        x: &Value,
        weights: &[usize],
        stride: usize,
        pads: [usize; 2],
    ) -> Value {
        let channels = weights[..weights.len() - 3].iter().product();
        let ty = match weights.len() {
            5 => "GroupConvolution",
            _ => "Convolution",
        };
        let weights = self.constant(weights);
        self.windows(ty, [x, &weights], channels, (stride, 1), pads)
    }

    /// A convolution with `weights` for `channels` results, whose taps are `dilation` apart, a bias, and no number below zero.
    fn windows(
        &mut self,
        ty: &str,
        [x, weights]: [&Value; 2],
        channels: usize,
        (stride, dilation): (usize, usize),
        [begin, end]: [usize; 2],
    ) -> Value {
        let attributes = format!(
            "strides=\"{stride},{stride}\" dilations=\"{dilation},{dilation}\" pads_begin=\"{begin},{begin}\" \
             pads_end=\"{end},{end}\" auto_pad=\"explicit\""
        );
        let bias = self.constant(&[1, channels, 1, 1]);
        let sums = self.layer(ty, "opset1", &attributes, &[x, weights]);
        let biased = self.layer("Add", "opset1", "auto_broadcast=\"numpy\"", &[&sums, &bias]);
        self.layer("Relu", "opset1", "", &[&biased])
    }
}

/// Convolutions with borders of one to three points, of all channels and of each alone; sums, pools and parts of channels
/// between them.
pub(crate) fn network(core: &Core, size: [usize; 2]) -> Model {
    let (mut net, x) = Network::over(core, size, 7);
    let plain = "auto_broadcast=\"numpy\"";
    let first = net.convolution(&x, &[24, 3, 3, 3], 1, [1, 1]);
    let apart = net.convolution(&first, &[24, 1, 1, 3, 3], 1, [1, 1]);
    let wide = net.convolution(&apart, &[40, 24, 1, 1], 1, [0, 0]);
    let narrow = net.convolution(&wide, &[24, 40, 1, 1], 1, [0, 0]);
    let sum = net.layer("Add", "opset1", plain, &[&first, &narrow]);
    // Borders of two widths around the same picture.
    let wider = net.convolution(&sum, &[24, 1, 1, 5, 5], 1, [2, 2]);
    let halved = net.convolution(&sum, &[32, 24, 3, 3], 2, [1, 1]);
    let again = net.convolution(&wider, &[32, 24, 3, 3], 2, [1, 1]);
    let window = "strides=\"2,2\" pads_begin=\"1,1\" pads_end=\"1,1\" kernel=\"3,3\" rounding_type=\"floor\" \
                  auto_pad=\"explicit\"";
    let largest = net.layer("MaxPool", "opset1", window, &[&sum]);
    let inside = format!("exclude-pad=\"true\" {window}");
    let mean = net.layer("AvgPool", "opset1", &inside, &[&wider]);
    let joined = [&halved, &largest, &mean, &again];
    let joined = net.layer("Concat", "opset1", "axis=\"1\"", &joined);
    let mixed = net.convolution(&joined, &[64, 112, 1, 1], 1, [0, 0]);
    // How much of each channel is left.
    let axes = net.graph.list(&[2, 3]);
    let means = net.layer(
        "ReduceMean",
        "opset1",
        "keep_dims=\"true\"",
        &[&mixed, &axes],
    );
    let few = net.convolution(&means, &[16, 64, 1, 1], 1, [0, 0]);
    let many = net.convolution(&few, &[64, 16, 1, 1], 1, [0, 0]);
    let scaled = net.layer("Multiply", "opset1", plain, &[&mixed, &many]);
    let last = net.convolution(&scaled, &[20, 64, 3, 3], 1, [1, 1]);
    let single = net.convolution(&scaled, &[1, 64, 3, 3], 1, [1, 1]);
    // A border that somebody sees, and one around it.
    let around = net.graph.list(&[0, 0, 1, 1]);
    let bordered = net.layer(
        "Pad",
        "opset1",
        "pad_mode=\"constant\"",
        &[&scaled, &around, &around],
    );
    let seen = net.layer("Relu", "opset1", "", &[&bordered]);
    let outer = net.convolution(&bordered, &[64, 1, 1, 3, 3], 1, [1, 1]);
    let outer = net.convolution(&outer, &[32, 64, 1, 1], 1, [0, 0]);
    let results = [last, single, scaled, seen, outer];
    net.graph.model(core, &results).unwrap()
}

/// Convolutions of each channel alone and then of all of them, each beside its input: with borders or not, of every point or of
/// every second. Temporaries have 16 channels.
pub(crate) fn separable(core: &Core, size: [usize; 2]) -> Model {
    let (mut net, x) = Network::over(core, size, 8);
    let first = net.convolution(&x, &[16, 3, 1, 1], 1, [0, 0]);
    let apart = net.convolution(&first, &[16, 1, 1, 3, 3], 1, [1, 1]);
    let mixed = net.convolution(&apart, &[16, 16, 1, 1], 1, [0, 0]);
    let plain = "auto_broadcast=\"numpy\"";
    let sum = net.layer("Add", "opset1", plain, &[&first, &mixed]);
    let wider = net.convolution(&sum, &[16, 1, 1, 5, 5], 1, [2, 2]);
    let mixed = net.convolution(&wider, &[24, 16, 1, 1], 1, [0, 0]);
    let halved = net.convolution(&mixed, &[24, 1, 1, 3, 3], 2, [0, 1]);
    let last = net.convolution(&halved, &[8, 24, 1, 1], 1, [0, 0]);
    net.graph.model(core, &[last]).unwrap()
}

/// Compiles a network over a picture of this size in every way, and runs it: the results must be those of the interpreter.
/// `check` sees each way, and how its kernels ran.
fn check_all_ways(
    core: &Core,
    model: &Model,
    [rows, columns]: [usize; 2],
    check: impl Fn(Level, Vectors, &[KernelTime]),
) {
    let x = Random::new(3).fractions(3 * rows * columns);
    let x = Tensor::from_slice(&[1, 3, rows, columns], &x).unwrap();
    let run = |level, vectors, threads| {
        let config = Config {
            level,
            vectors,
            threads: NonZeroUsize::new(threads),
            ..Config::default()
        };
        let compiled = core.compile_model_with(model, config).unwrap();
        let mut request = compiled.create_request();
        request.set_input_at(0, x.clone()).unwrap();
        let kernels = request.infer_profiled().unwrap();
        check(level, vectors, &kernels);
        request.outputs().to_vec()
    };
    let expected = run(Level::Interpreted, Vectors::Widest, 1);
    for vectors in [Vectors::Widest, Vectors::Bits256, Vectors::Bits128] {
        for (level, threads) in [
            (Level::Compiled, 1),
            (Level::Scheduled, 1),
            (Level::Scheduled, 3),
        ] {
            let found = run(level, vectors, threads);
            let is_same = found.iter().zip(&expected).all(|(a, b)| same(a, b));
            assert!(
                is_same,
                "{rows}x{columns}, {level:?}, {vectors:?}, {threads} threads"
            );
        }
    }
}

#[test]
fn all_ways_give_the_same_bits() {
    let core = Core::new().unwrap();
    for size in [[20, 33], [7, 7], [1, 5]] {
        check_all_ways(&core, &network(&core, size), size, |_, _, _| {});
    }
}

/// From 256 KiB of rows on, the tasks of a contraction make the rows that they take.
#[test]
fn rows_that_tasks_make_give_the_same_bits() {
    let core = Core::new().unwrap();
    for (size, are_made) in [([64, 64], true), ([65, 67], true), ([63, 65], false)] {
        let model = separable(&core, size);
        check_all_ways(&core, &model, size, |level, vectors, kernels| {
            let in_tasks =
                |kernel: &&KernelTime| kernel.how.ends_with("of the contraction after it");
            let count = kernels.iter().filter(in_tasks).count();
            // Rows are channels of a pixel where contractions read these in place.
            let may_be_made = level == Level::Scheduled && vectors != Vectors::Bits128;
            match are_made && may_be_made && has_avx2() {
                true => assert!(count > 0, "{size:?}, {vectors:?}: {kernels:?}"),
                false => assert_eq!(count, 0, "{size:?}, {level:?}, {vectors:?}: {kernels:?}"),
            }
        });
    }
}

/// Convolutions of windows with borders, whose points are up to six apart, of which one weight is `weight`.
fn dilated(core: &Core, size: [usize; 2], weight: f32) -> Model {
    let (mut net, x) = Network::over(core, size, 9);
    let mut picture = net.convolution(&x, &[32, 3, 1, 1], 1, [0, 0]);
    for dilation in [1, 6, 2] {
        let mut weights = net.random.fractions(32 * 32 * 9);
        weights[4] = weight;
        let weights = net.graph.floats(&[32, 32, 3, 3], &weights);
        let pads = [dilation; 2];
        picture = net.windows("Convolution", [&picture, &weights], 32, (1, dilation), pads);
    }
    net.graph.model(core, &[picture]).unwrap()
}

/// Products with the zeros around a small picture are left out, unless a weight makes them NaN.
#[test]
fn what_leaves_out_padding_gives_the_same_bits() {
    let core = Core::new().unwrap();
    let cases = [
        ([9, 11], 0.5, true),
        ([9, 11], f32::INFINITY, false),
        ([9, 11], f32::NAN, false),
        ([14, 14], 0.5, true),
        ([7, 7], -0.0, true),
    ];
    for (size, weight, leaves_out) in cases {
        let model = dilated(&core, size, weight);
        check_all_ways(&core, &model, size, |level, vectors, kernels| {
            let mut kernels_without = kernels.iter().filter(|k| k.how.contains("without padding"));
            let is_some = kernels_without.next().is_some();
            // Without AVX2 it depends on which operand is read as rows.
            let must_be = level == Level::Scheduled && vectors != Vectors::Bits128 && has_avx2();
            assert!(
                leaves_out || !is_some,
                "{size:?}, {level:?}, {vectors:?}: {kernels:?}"
            );
            assert!(
                is_some || !(leaves_out && must_be),
                "{size:?}, {level:?}, {vectors:?}: {kernels:?}"
            );
        });
    }
}

/// Whether contractions run with vectors of 256 bits or more.
fn has_avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    let has = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    let has = false;
    has
}

/// The order of dims depends on the instruction set that contractions use.
#[test]
fn channels_are_last_with_vectors_of_256_bits() {
    if !has_avx2() {
        eprintln!("skipped: this machine has no AVX2");
        return;
    }
    let core = Core::new().unwrap();
    let model = network(&core, [20, 33]);
    let text = |vectors| {
        let config = Config {
            vectors,
            ..Config::default()
        };
        let compiled = core.compile_model_with(&model, config).unwrap();
        compiled.dump(Stage::Scheduled, &[None], None).unwrap()
    };
    let is_last = |text: &str| text.contains(".channels_last[");
    assert!(is_last(&text(Vectors::Bits256)));
    assert!(!is_last(&text(Vectors::Bits128)));
}
