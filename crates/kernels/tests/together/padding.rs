//! Pictures with borders of zeros: leaving out products with these changes no bit, and no border is read that is left out.

use crate::problems::lengths;
use proptest::prelude::*;
use vinelift_kernels::{
    Contraction, Dim, Element, Form, Isa, Operand, Padding, PreparedContraction,
};
use zerocopy::IntoBytes;

/// A convolution of pictures whose channels follow each other, and so do those of the result; groups are the batch.
#[derive(Clone, Copy, Debug)]
struct Convolution {
    pictures: usize,
    groups: usize,
    inputs: usize,
    outputs: usize,
    /// Height and width of the picture without its border.
    picture: [usize; 2],
    window: usize,
    dilation: usize,
    step: usize,
    border: usize,
}

impl Convolution {
    /// Height and width with the border.
    fn padded(&self) -> [usize; 2] {
        self.picture.map(|n| n + 2 * self.border)
    }

    fn contraction(&self) -> Option<Contraction> {
        let [height, width] = self.padded();
        let reach = (self.window - 1) * self.dilation;
        let points = |n: usize| Some(n.checked_sub(reach + 1)? / self.step + 1);
        let (rows, columns) = (points(height)?, points(width)?);
        let channels = self.groups * self.inputs;
        let (line, out) = (width * channels, self.groups * self.outputs);
        let weights = self.inputs * self.window * self.window;
        let contraction = Contraction {
            element: Element::F32,
            batch: vec![Dim::new(
                self.groups,
                self.inputs,
                self.outputs * weights,
                self.outputs,
            )],
            m: vec![
                Dim::new(self.pictures, height * line, 0, rows * columns * out),
                Dim::new(rows, self.step * line, 0, columns * out),
                Dim::new(columns, self.step * channels, 0, out),
            ],
            n: vec![Dim::new(self.outputs, 0, weights, 1)],
            k: vec![
                Dim::new(self.inputs, 1, self.window * self.window, 0),
                Dim::new(self.window, self.dilation * line, self.window, 0),
                Dim::new(self.window, self.dilation * channels, 1, 0),
            ],
        };
        Some(contraction)
    }

    fn padding(&self) -> [Padding; 2] {
        let [height, width] = self.padded();
        let channels = self.groups * self.inputs;
        let inside = |n: usize| self.border..self.border + n;
        [
            Padding {
                stride: width * channels,
                extent: height,
                first: (0, 0),
                inside: inside(self.picture[0]),
            },
            Padding {
                stride: channels,
                extent: width,
                first: (0, 0),
                inside: inside(self.picture[1]),
            },
        ]
    }

    /// The pictures, with this in their borders.
    fn pictures(&self, border: f32, random: &mut fastrand::Rng) -> Vec<f32> {
        let [height, width] = self.padded();
        let channels = self.groups * self.inputs;
        let mut pictures = Vec::new();
        for at in 0..self.pictures * height * width {
            let (row, column) = (at / width % height, at % width);
            let inside = |n: usize, at: usize| (self.border..self.border + n).contains(&at);
            let is_inside = inside(self.picture[0], row) && inside(self.picture[1], column);
            for _ in 0..channels {
                let x = random.f32() - 0.5;
                pictures.push(if is_inside { x } else { border });
            }
        }
        pictures
    }
}

/// The result in this many tasks, of weights that are packed before or not.
fn run(
    kernel: &PreparedContraction,
    [left, right]: [&[f32]; 2],
    out: usize,
    (form, tasks): (Form, usize),
) -> Vec<f32> {
    let plan = kernel.plan(Form::Plain, form, tasks);
    let mut result = vec![1.5f32; out];
    let mut scratch = vec![0xffu8; plan.shared_bytes() + plan.worker_bytes()];
    let packed = kernel.pack_right(right.as_bytes()).unwrap();
    let right = match form {
        Form::Plain => Operand::Plain(right.as_bytes()),
        _ => Operand::Packed(&packed),
    };
    let left = Operand::Plain(left.as_bytes());
    kernel.run(&plan, left, right, result.as_mut_bytes(), &mut scratch);
    result
}

/// Compares kernels that leave out padding with those that do not; whether there was one.
fn check(convolution: &Convolution, seed: u64) -> bool {
    let Some(contraction) = convolution.contraction() else {
        return false;
    };
    let [_, right, out] = lengths(&contraction);
    let mut random = fastrand::Rng::with_seed(seed);
    let padding = convolution.padding();
    let pictures = convolution.pictures(0.0, &mut random);
    let weights: Vec<f32> = (0..right).map(|_| random.f32() - 0.5).collect();
    let mut is_any = false;
    for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
        for form in [Form::Plain, Form::Packed] {
            let forms = [Form::Plain, form];
            let kernel = || PreparedContraction::with_forms(&contraction, isa, forms).unwrap();
            let mut less = kernel();
            less.leave_out_padding(&padding, || true);
            is_any |= less.leaves_out_padding();
            let operands = [&pictures[..], &weights[..]];
            let bits = |x: Vec<f32>| -> Vec<u32> { x.into_iter().map(f32::to_bits).collect() };
            let want = bits(run(&kernel(), operands, out, (form, 1)));
            for tasks in [1, 5] {
                let got = bits(run(&less, operands, out, (form, tasks)));
                assert_eq!(got, want, "{convolution:?} {isa} {form:?}");
            }
        }
    }
    is_any
}

const SMALL: Convolution = Convolution {
    pictures: 1,
    groups: 1,
    inputs: 24,
    outputs: 40,
    picture: [7, 7],
    window: 3,
    dilation: 1,
    step: 1,
    border: 1,
};

/// A convolution of a picture of this size, whose taps are `dilation` apart, with as wide a border.
fn dilated(picture: [usize; 2], dilation: usize) -> Convolution {
    Convolution {
        picture,
        dilation,
        border: dilation,
        ..SMALL
    }
}

/// Near the border of a small picture, and where taps lie far apart.
#[test]
fn results_are_the_same_bits() {
    assert!(check(&SMALL, 1));
    assert!(check(
        &Convolution {
            inputs: 300,
            ..SMALL
        },
        2
    ));
    assert!(check(&dilated([9, 11], 6), 3));
    let pictures = Convolution {
        pictures: 4,
        ..dilated([5, 8], 5)
    };
    assert!(check(&pictures, 4));
    let groups = Convolution {
        groups: 3,
        outputs: 16,
        ..dilated([9, 11], 6)
    };
    assert!(check(&groups, 5));
    // There is little to leave out of a large picture.
    assert!(!check(&dilated([90, 90], 1), 6));
    assert!(!check(&Convolution { border: 0, ..SMALL }, 7));
}

/// Of windows whose taps but the middle one are outside of the picture everywhere, nothing else is read.
#[test]
fn borders_are_not_read() {
    let convolution = dilated([4, 4], 4);
    let contraction = convolution.contraction().unwrap();
    let mut random = fastrand::Rng::with_seed(8);
    let pictures = convolution.pictures(f32::NAN, &mut random);
    let [_, right, out] = lengths(&contraction);
    let weights = vec![1.0; right];
    for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
        let forms = [Form::Plain, Form::Packed];
        let mut kernel = PreparedContraction::with_forms(&contraction, isa, forms).unwrap();
        kernel.leave_out_padding(&convolution.padding(), || true);
        let operands = [&pictures[..], &weights[..]];
        let result = run(&kernel, operands, out, (Form::Packed, 1));
        assert!(result.iter().all(|x| x.is_finite()), "{isa}");
    }
}

/// A border of which digits might carry is as good as not known; with weights that are not finite no product is left out.
#[test]
fn what_is_not_left_out() {
    let convolution = dilated([6, 6], 3);
    let contraction = convolution.contraction().unwrap();
    let [height, width] = convolution.padding();
    let leaves_out = |padding: &[Padding], is_finite: bool| {
        let mut kernel = PreparedContraction::new(&contraction).unwrap();
        kernel.leave_out_padding(padding, || is_finite);
        kernel.leaves_out_padding()
    };
    assert!(leaves_out(&[height.clone(), width.clone()], true));
    assert!(!leaves_out(&[height.clone(), width], false));
    let less = |change: fn(&mut Padding)| {
        let mut changed = height.clone();
        change(&mut changed);
        leaves_out(&[changed], true)
    };
    assert!(less(|_| {}));
    assert!(!less(|height| height.extent -= 1));
    assert!(!less(|height| height.first = (1, 0)));
    assert!(!less(|height| height.first = (0, 1)));
    assert!(!less(|height| height.stride -= 1));
    assert!(!less(|height| height.stride = 0));
    assert!(!less(|height| height.extent = 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn of_any_size(
        (pictures, groups) in (1..3usize, 1..4usize),
        (inputs, outputs) in (1..70usize, 1..50usize),
        picture in [1..12usize, 1..12usize],
        (window, dilation, step, border) in (1..6usize, 1..7usize, 1..3usize, 0..8usize),
        seed in any::<u64>(),
    ) {
        let convolution = Convolution {
            pictures,
            groups,
            inputs,
            outputs,
            picture,
            window,
            dilation,
            step,
            border,
        };
        check(&convolution, seed);
    }
}
