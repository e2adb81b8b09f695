//! Sums over windows that slide along rows: several rows at once, and what is left over of them.

use crate::common::{bytes, random, reference, run, text_for_256_bits, vector_loops};
use vinelift_nest::{Binary, Nest, Role, Scalar, build::*};
use vinelift_tensor::ElementType::{self, F32, F64, I16, U8};

/// A window over the rows and columns of an image for each channel.
#[derive(Clone, Copy, Debug)]
struct Window {
    channels: usize,
    rows: usize,
    columns: usize,
    taps: [usize; 2],
    step: [usize; 2],
    apart: usize,
}

impl Window {
    fn image(&self) -> [usize; 3] {
        let Window {
            taps, step, apart, ..
        } = self;
        let size = |d: usize, n: usize| (n - 1) * step[d] + (taps[d] - 1) * apart + 1;
        [self.channels, size(0, self.rows), size(1, self.columns)]
    }

    /// `y[c, i, j] = max(Σ_{k, l} x[c, s·i + d·k, t·j + d·l] · w[c, k, l] + b[c], z[c, i, j])`, or of the
    /// largest instead of the sum.
    fn nest(&self, ty: ElementType, op: Binary) -> Nest {
        let mut nest = Nest::new();
        let shape = [self.channels, self.rows, self.columns];
        let x = nest.buffer("x", ty, &self.image(), Role::Input);
        let [k, l] = self.taps;
        let w = nest.buffer("w", ty, &[self.channels, k, l], Role::Input);
        let b = nest.buffer("b", ty, &[self.channels], Role::Input);
        let z = nest.buffer("z", ty, &shape, Role::Input);
        let y = nest.buffer("y", ty, &shape, Role::Output);
        nest.define(vec![], y, |n, at| {
            let axes = n.axes(&self.taps);
            let tap = |d: usize| Scalar::axis(axes[d].id);
            let place = |d: usize| &at[d + 1] * self.step[d] as i64 + tap(d) * self.apart as i64;
            let load = n.load(x, vec![at[0].clone(), place(0), place(1)]);
            let weight = n.load(w, vec![at[0].clone(), tap(0), tap(1)]);
            let (init, body) = match op {
                Binary::Add => (number(0.0, ty), Scalar::binary(Binary::Term, load, weight)),
                _ => (lowest(ty), load),
            };
            let fold = Scalar::reduce(op, axes, init, body);
            (fold + n.load(b, vec![at[0].clone()])).max(n.load(z, at.to_vec()))
        });
        nest
    }

    fn check(&self, ty: ElementType, op: Binary) {
        let nest = self.nest(ty, op);
        let mut next = random(self.columns as u64);
        let mut data = |shape: &[usize]| -> Vec<u8> {
            let count = shape.iter().product();
            let numbers = (0..count).map(|_| (next() % 2000) as f64 / 16.0 - 60.0);
            match ty {
                U8 => bytes(&numbers.map(|x| x as i64 as u8).collect::<Vec<u8>>()),
                I16 => bytes(&numbers.map(|x| (x * 99.0) as i16).collect::<Vec<i16>>()),
                F64 => bytes(&numbers.collect::<Vec<f64>>()),
                _ => bytes(&numbers.map(|x| x as f32).collect::<Vec<f32>>()),
            }
        };
        let [k, l] = self.taps;
        let (c, shape) = (self.channels, [self.channels, self.rows, self.columns]);
        let inputs = [
            data(&self.image()),
            data(&[c, k, l]),
            data(&[c]),
            data(&shape),
        ];
        let (found, _) = run(&nest, &inputs);
        let (expected, _) = reference(&nest, &inputs);
        assert!(
            found[4] == expected[4],
            "{self:?} of {ty} by {op:?}\n{nest}"
        );
    }
}

#[test]
fn rows_side_by_side() {
    let mut next = random(7);
    let mut of = |low: usize, high: usize| low + next() as usize % (high - low + 1);
    for _ in 0..100 {
        let window = Window {
            channels: of(1, 3),
            rows: of(1, 17),
            columns: of(3, 40),
            taps: [of(1, 5), of(1, 5)],
            step: [of(1, 2), of(1, 2)],
            apart: of(1, 2),
        };
        for op in [Binary::Add, Binary::Max] {
            window.check(F32, op);
        }
        window.check(F64, Binary::Add);
    }
}

/// Every column and every second one of bytes and pairs of them, in rows of any length.
#[test]
fn integers_of_few_bits() {
    for columns in 1..=80 {
        for (step, taps) in [(1, [3, 3]), (2, [2, 2]), (2, [3, 3])] {
            let window = Window {
                channels: 2,
                rows: 3,
                columns,
                taps,
                step: [step, step],
                apart: 1,
            };
            window.check(U8, Binary::Max);
            window.check(I16, Binary::Max);
        }
    }
}

/// More taps than there are registers.
#[test]
fn large_windows() {
    for taps in [[5, 5], [7, 7], [3, 11], [1, 30]] {
        Window {
            channels: 2,
            rows: 8,
            columns: 35,
            taps,
            step: [1, 1],
            apart: 1,
        }
        .check(F32, Binary::Add);
    }
}

/// Rows shorter than a register or a little longer, the last of which end where the memory ends: nothing behind is touched.
#[cfg(unix)]
#[test]
fn nothing_behind_a_buffer() {
    use memmap2::{MmapMut, MmapOptions};
    use vinelift_codegen::Pointer;

    // A multiple of the page size on all machines in use. The page after the file is not there.
    const PAGE: usize = 1 << 16;
    let guarded = || -> MmapMut {
        let file = tempfile::tempfile().unwrap();
        file.set_len(PAGE as u64).unwrap();
        // SAFETY: nobody else has the file, and only what it holds is accessed: that is the test.
        unsafe { MmapOptions::new().len(2 * PAGE).map_mut(&file) }.unwrap()
    };
    let cases = [
        (F32, Binary::Add, 17),
        (U8, Binary::Max, 70),
        (I16, Binary::Max, 35),
    ];
    for (ty, op, most) in cases {
        for (columns, step) in (1..=most).flat_map(|n| [(n, [1, 1]), (n, [2, 2])]) {
            let window = Window {
                channels: 2,
                rows: 7,
                columns,
                taps: [3, 3],
                step,
                apart: 1,
            };
            let nest = window.nest(ty, op);
            let code = crate::common::compile(&nest);
            let mut memory: Vec<MmapMut> = nest.buffers.iter().map(|_| guarded()).collect();
            let ends = memory.iter_mut().zip(&nest.buffers);
            let pointers: Vec<Pointer> = ends
                .map(|(memory, buffer)| {
                    let bytes = ty.bits() / 8 * buffer.example().iter().product::<usize>();
                    Pointer(memory.as_mut_ptr().wrapping_add(PAGE - bytes))
                })
                .collect();
            // SAFETY: one pointer for each buffer, to as many bytes as it takes.
            unsafe { code.run(0, &pointers, &[]) }.unwrap();
        }
    }
}

/// `y[i, j, c] = (Σ_{k, l} x[i, j + k, 0]) / 9`, which does not depend on the innermost axis.
#[test]
fn windows_that_are_the_same_in_all_lanes() {
    const IMAGES: usize = 3;
    const ROWS: usize = 381;
    for columns in [1, 6, 8, 40] {
        let mut nest = Nest::new();
        let x = nest.buffer("x", F32, &[IMAGES, ROWS + 2, 14], Role::Input);
        let y = nest.buffer("y", F32, &[IMAGES, ROWS, columns], Role::Output);
        nest.define(vec![], y, |n, at| {
            let axes = n.axes(&[3, 3]);
            let row = &at[1] + Scalar::axis(axes[0].id);
            let load = n.load(x, vec![at[0].clone(), row, index(0)]);
            let sum = Scalar::reduce(Binary::Add, axes, zero(F32), load);
            sum / index(9).cast(F32)
        });
        let mut next = random(1);
        let numbers = (0..IMAGES * (ROWS + 2) * 14).map(|_| (next() % 99) as f32 / 16.0);
        let inputs = [bytes(&numbers.collect::<Vec<f32>>())];
        let (found, expected) = (run(&nest, &inputs).0, reference(&nest, &inputs).0);
        assert!(found[1] == expected[1], "{columns} columns\n{nest}");
    }
}

/// `y[i, j, c] = Σ_{k, l} x[i + k, j + l, c] · w[k, l, c]`: weights differ along the lanes.
fn channels_inside([rows, columns, channels]: [usize; 3], taps: [usize; 2]) -> Nest {
    let mut nest = Nest::new();
    let image = [rows + taps[0] - 1, columns + taps[1] - 1, channels];
    let x = nest.buffer("x", F32, &image, Role::Input);
    let w = nest.buffer("w", F32, &[taps[0], taps[1], channels], Role::Input);
    let y = nest.buffer("y", F32, &[rows, columns, channels], Role::Output);
    nest.define(vec![], y, |n, at| {
        let axes = n.axes(&taps);
        let tap = |d: usize| Scalar::axis(axes[d].id);
        let place = |d: usize| &at[d] + tap(d);
        let load = n.load(x, vec![place(0), place(1), at[2].clone()]);
        let weight = n.load(w, vec![tap(0), tap(1), at[2].clone()]);
        let term = Scalar::binary(Binary::Term, load, weight);
        Scalar::reduce(Binary::Add, axes.clone(), zero(F32), term)
    });
    nest
}

/// Where rows that are jammed are neighbours along the window's rows, registers hold all weights that they share; where they are
/// neighbours across them, there are too few.
#[test]
fn weights_that_differ_along_the_lanes() {
    let mut next = random(11);
    let mut of = |low: usize, high: usize| low + next() as usize % (high - low + 1);
    for k in 0..60 {
        let columns = if k % 3 == 0 { 1 } else { of(2, 21) };
        let nest = channels_inside([of(1, 9), columns, of(3, 70)], [of(1, 5), of(1, 5)]);
        let mut numbers = random(k);
        let inputs = nest.buffers[..2].iter().map(|b| {
            let count = b.example().iter().product();
            let of_input = (0..count).map(|_| (numbers() % 2000) as f32 / 16.0 - 60.0);
            bytes(&of_input.collect::<Vec<f32>>())
        });
        let inputs: Vec<Vec<u8>> = inputs.collect();
        let (found, expected) = (run(&nest, &inputs).0, reference(&nest, &inputs).0);
        assert!(found[2] == expected[2], "{nest}");
    }
}

/// Four columns side by side take nine weights and eighteen vectors of the image, each loaded once.
#[test]
fn weights_that_differ_along_the_lanes_are_loaded_once() {
    if !vector_loops()[0] {
        eprintln!("skipped: this machine has no AVX2");
        return;
    }
    let nest = channels_inside([16, 128, 24], [3, 3]);
    let asm = text_for_256_bits(&nest).asm;
    assert_eq!(reads(&asm), 9 + 18, "{asm}");
}

/// How many vectors are read from buffers, by loads and as operands in memory.
fn reads(asm: &str) -> usize {
    let reads = |line: &&str| line.contains("ymm") && line.ends_with(']') && !line.contains("[rel");
    asm.lines().filter(reads).count()
}

/// The code of a window whose elements use one another again and again is there as soon as that of others.
#[test]
fn elements_that_are_used_again_and_again() {
    const TIMES: usize = 60;
    let mut nest = Nest::new();
    let x = nest.buffer("x", F32, &[3 * 8, 64], Role::Input);
    let y = nest.buffer("y", F32, &[8, 64], Role::Output);
    nest.define(vec![], y, |n, at| {
        let axes = n.axes(&[2]);
        // No row reads what another one does.
        let place = &at[0] * 3 + Scalar::axis(axes[0].id) * 2;
        let load = n.load(x, vec![place, at[1].clone()]);
        let body = (0..TIMES).fold(load, |x, _| x.clone().min(x));
        Scalar::reduce(Binary::Max, axes, lowest(F32), body)
    });
    let mut next = random(5);
    let numbers: Vec<f32> = (0..24 * 64).map(|_| next() as f32 / 16.0).collect();
    let inputs = [bytes(&numbers)];
    assert!(run(&nest, &inputs).0[1] == reference(&nest, &inputs).0[1]);
}

/// `y[i, j, c] = max(0, Σ_f Σ_{k, l} x[i + k, j + l, c] · w_f[k, l, c] + x[i, j, c])`, or with the channels outside.
fn several_windows(
    [rows, columns, channels]: [usize; 3],
    windows: &[[usize; 2]],
    are_inside: bool,
) -> Nest {
    let mut nest = Nest::new();
    let most = |d: usize| windows.iter().map(|taps| taps[d]).max().unwrap_or(1);
    let order = |[i, j, c]: [usize; 3]| if are_inside { [i, j, c] } else { [c, i, j] };
    let place = |i: Scalar, j: Scalar, c: Scalar| match are_inside {
        true => vec![i, j, c],
        false => vec![c, i, j],
    };
    let image = order([rows + most(0) - 1, columns + most(1) - 1, channels]);
    let x = nest.buffer("x", F32, &image, Role::Input);
    let weights: Vec<_> = (windows.iter())
        .map(|[k, l]| nest.buffer("w", F32, &[*k, *l, channels], Role::Input))
        .collect();
    let shape = order([rows, columns, channels]);
    let y = nest.buffer("y", F32, &shape, Role::Output);
    nest.define(vec![], y, |n, at| {
        let [i, j, c] = match are_inside {
            true => [&at[0], &at[1], &at[2]],
            false => [&at[1], &at[2], &at[0]],
        };
        let sums: Vec<Scalar> = (windows.iter().zip(&weights))
            .map(|(taps, w)| {
                let axes = n.axes(taps);
                let tap = |d: usize| Scalar::axis(axes[d].id);
                let load = n.load(x, place(i + tap(0), j + tap(1), c.clone()));
                let weight = n.load(*w, vec![tap(0), tap(1), c.clone()]);
                let term = Scalar::binary(Binary::Term, load, weight);
                Scalar::reduce(Binary::Add, axes.clone(), zero(F32), term)
            })
            .collect();
        let here = n.load(x, place(i.clone(), j.clone(), c.clone()));
        let sum = sums.into_iter().fold(here, |sum, fold| sum + fold);
        sum.max(zero(F32))
    });
    nest
}

/// Windows of one size are done side by side, others one after the other, and points row by row.
#[test]
fn several_windows_in_one_sum() {
    let mut next = random(13);
    let mut of = |low: usize, high: usize| low + next() as usize % (high - low + 1);
    for k in 0..80 {
        let shape = [of(1, 9), of(1, 21), of(1, 40)];
        let same = [of(1, 4), of(1, 4)];
        let windows: Vec<[usize; 2]> = (0..of(2, 5))
            .map(|_| match of(0, 3) {
                0 => [1, 1],
                1 => [of(1, 5), of(1, 5)],
                _ => same,
            })
            .collect();
        let nest = several_windows(shape, &windows, k % 2 == 0);
        let mut numbers = random(k);
        let inputs: Vec<Vec<u8>> = (nest.buffers[..=windows.len()].iter())
            .map(|b| {
                let count = b.example().iter().product();
                let of_input = (0..count).map(|_| (numbers() % 2000) as f32 / 16.0 - 60.0);
                bytes(&of_input.collect::<Vec<f32>>())
            })
            .collect();
        let (found, expected) = (run(&nest, &inputs).0, reference(&nest, &inputs).0);
        assert!(found.last() == expected.last(), "{nest}");
    }
}

/// Two windows of four rows take eighteen vectors of the image, each loaded once for both.
#[test]
fn windows_side_by_side_share_what_they_read() {
    if !vector_loops()[0] {
        eprintln!("skipped: this machine has no AVX2");
        return;
    }
    let nest = several_windows([16, 128, 24], &[[3, 3]; 2], true);
    let asm = text_for_256_bits(&nest).asm;
    let products = asm.lines().filter(|line| line.contains("vfmadd"));
    assert_eq!(products.count(), 4 * 2 * 9, "{asm}");
    // Weights are loaded for each row, and so is what is added to its sums.
    assert_eq!(reads(&asm), 18 + 4 * 2 * 9 + 4, "{asm}");
}
