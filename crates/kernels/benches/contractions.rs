//! `cargo bench -p vinelift-kernels`: contractions of real networks, on one thread.
//!
//! Throughput counts floating-point operations, two for each multiply-add: Criterion's `Gelem/s` are
//! GFLOP/s. Compare them with the peak, which is printed first.

use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use vinelift_kernels::{
    Code, Coding, Contraction, Dim, Element, Form, Grouped, GroupedDim, GroupedProduct,
    GroupedRows, Isa, Operand, PreparedContraction, WinogradConvolution, peak,
};

/// `[batch, m, k] · [batch, k, n]`.
fn matrices(batch: usize, m: usize, n: usize, k: usize) -> Contraction {
    Contraction {
        element: Element::F32,
        batch: vec![Dim::new(batch, m * k, k * n, m * n)],
        m: vec![Dim::new(m, k, 0, n)],
        n: vec![Dim::new(n, 0, 1, 1)],
        k: vec![Dim::new(k, 1, n, 0)],
    }
}

/// A convolution of a padded input to a square output, all channels with each other.
fn convolution(
    inputs: usize,
    outputs: usize,
    size: usize,
    window: usize,
    step: usize,
) -> Contraction {
    let width = (size - 1) * step + window;
    Contraction {
        element: Element::F32,
        batch: vec![],
        m: vec![Dim::new(outputs, inputs * window * window, 0, size * size)],
        n: vec![
            Dim::new(size, 0, step * width, size),
            Dim::new(size, 0, step, 1),
        ],
        k: vec![
            Dim::new(inputs, window * window, width * width, 0),
            Dim::new(window, window, width, 0),
            Dim::new(window, 1, 1, 0),
        ],
    }
}

/// The same, every channel on its own.
fn depthwise(channels: usize, size: usize, window: usize, step: usize) -> Contraction {
    let width = (size - 1) * step + window;
    Contraction {
        batch: vec![Dim::new(
            channels,
            window * window,
            width * width,
            size * size,
        )],
        m: vec![],
        ..convolution(1, 1, size, window, step)
    }
}

fn contractions(criterion: &mut Criterion) {
    use Form::{Coded, Packed, Plain};
    let peak = peak();
    eprintln!(
        "peak of one thread: {:.1} GFLOP/s (f32), {:.1} GFLOP/s (f64), {:.1} GB/s",
        peak.f32_flops / 1e9,
        peak.f64_flops / 1e9,
        peak.bytes / 1e9
    );
    let cases = [
        (
            "weights/400x384x1536",
            matrices(1, 400, 1536, 384),
            Plain,
            Packed,
        ),
        (
            "weights/128x384x384",
            matrices(1, 128, 384, 384),
            Plain,
            Packed,
        ),
        (
            "weights/4x1536x384",
            matrices(1, 4, 384, 1536),
            Plain,
            Packed,
        ),
        (
            "weights/1x1536x384",
            matrices(1, 1, 384, 1536),
            Plain,
            Packed,
        ),
        ("weights/1x336x336", matrices(1, 1, 336, 336), Plain, Packed),
        (
            "pixels/16384x24x24",
            matrices(1, 16384, 24, 24),
            Plain,
            Packed,
        ),
        (
            "pixels/4096x32x128",
            matrices(1, 4096, 128, 32),
            Plain,
            Packed,
        ),
        (
            "pixels/12544x64x16",
            matrices(1, 12544, 16, 64),
            Plain,
            Packed,
        ),
        ("product/4x8x8", matrices(1, 4, 8, 8), Plain, Plain),
        (
            "product/512x512x512",
            matrices(1, 512, 512, 512),
            Plain,
            Plain,
        ),
        (
            "heads/6x400x64x400",
            matrices(6, 400, 400, 64),
            Plain,
            Plain,
        ),
        (
            "heads/6x400x400x64",
            matrices(6, 400, 64, 400),
            Plain,
            Plain,
        ),
        (
            "convolution/64-64 28x28 3x3",
            convolution(64, 64, 28, 3, 1),
            Packed,
            Plain,
        ),
        (
            "convolution/256-256 7x7 3x3",
            convolution(256, 256, 7, 3, 1),
            Packed,
            Plain,
        ),
        (
            "convolution/128-512 14x14 1x1",
            convolution(128, 512, 14, 1, 1),
            Packed,
            Plain,
        ),
        (
            "convolution/24-24 128x128 1x1",
            convolution(24, 24, 128, 1, 1),
            Packed,
            Plain,
        ),
        (
            "convolution/16-16 96x96 1x1",
            convolution(16, 16, 96, 1, 1),
            Packed,
            Plain,
        ),
        (
            "convolution/16-16 97x97 1x1",
            convolution(16, 16, 97, 1, 1),
            Packed,
            Plain,
        ),
        (
            "convolution/48-48 64x64 1x1",
            convolution(48, 48, 64, 1, 1),
            Packed,
            Plain,
        ),
        (
            "convolution/3-64 112x112 7x7 by 2",
            convolution(3, 64, 112, 7, 2),
            Packed,
            Plain,
        ),
        (
            "depthwise/256 14x14 5x5",
            depthwise(256, 14, 5, 1),
            Packed,
            Plain,
        ),
        (
            "depthwise/24 128x128 3x3",
            depthwise(24, 128, 3, 1),
            Packed,
            Plain,
        ),
        (
            "depthwise/64 28x28 3x3 by 2",
            depthwise(64, 28, 3, 2),
            Packed,
            Plain,
        ),
    ];
    let in_bytes = |contraction: Contraction| Contraction {
        element: Element::U8I8,
        ..contraction
    };
    let more = [
        (
            "bytes/400x384x1536",
            in_bytes(matrices(1, 400, 1536, 384)),
            Plain,
            Packed,
        ),
        (
            "bytes/6x400x64x400",
            in_bytes(matrices(6, 400, 400, 64)),
            Plain,
            Plain,
        ),
        (
            "bytes/convolution 64-64 28x28 3x3",
            Contraction {
                element: Element::I8U8,
                ..convolution(64, 64, 28, 3, 1)
            },
            Packed,
            Plain,
        ),
        (
            "coded/400x384x1536",
            matrices(1, 400, 1536, 384),
            Plain,
            Coded,
        ),
        (
            "weights/24x1536x384",
            matrices(1, 24, 384, 1536),
            Plain,
            Packed,
        ),
        (
            "coded/24x1536x384",
            matrices(1, 24, 384, 1536),
            Plain,
            Coded,
        ),
        ("coded/1x1536x384", matrices(1, 1, 384, 1536), Plain, Coded),
    ];
    for (name, contraction, left_form, right_form) in cases.into_iter().chain(more) {
        let mut group = criterion.benchmark_group(name);
        group
            .warm_up_time(Duration::from_millis(50))
            .measurement_time(Duration::from_millis(300));
        let is_of_bytes = matches!(contraction.element, Element::U8I8 | Element::I8U8);
        for isa in [
            Isa::Amx,
            Isa::Avx512,
            Isa::AvxVnni,
            Isa::Avx2,
            Isa::Portable,
        ] {
            if matches!(isa, Isa::Amx | Isa::AvxVnni) && !is_of_bytes {
                continue;
            }
            // Without a fused multiply-add in the target, the portable twin is only exact.
            if !isa.available() || isa == Isa::Portable && Isa::best() != Isa::Portable {
                continue;
            }
            let forms = [left_form, right_form];
            let kernel = PreparedContraction::with_forms(&contraction, isa, forms);
            let kernel = kernel.expect("a contraction");
            let [left, right, mut out] = kernel.elements().map(|count| vec![0u8; count * 4]);
            let (packed_left, packed_right) = (
                kernel.pack_left(&left).unwrap(),
                kernel.pack_right(&right).unwrap(),
            );
            let coding = Coding {
                code: Code::I8,
                group: usize::MAX,
                zero: None,
                scale: None,
            };
            let coded = kernel.pack_right_coded(&right, &coding);
            let left = match left_form {
                Plain | Coded => Operand::Plain(&left),
                Packed => Operand::Packed(&packed_left),
            };
            let right = match (right_form, &coded) {
                (Plain, _) => Operand::Plain(&right),
                (Coded, Some(coded)) => Operand::Packed(coded),
                _ => Operand::Packed(&packed_right),
            };
            let right_form = match (right_form, &coded) {
                (Coded, Some(coded)) => coded.form(),
                (form, _) => form,
            };
            let plan = kernel.plan(left_form, right_form, 1);
            let mut scratch = vec![0u8; plan.shared_bytes() + plan.worker_bytes()];
            group.throughput(Throughput::Elements(kernel.flops()));
            group.bench_function(plan.name(), |bencher| {
                bencher.iter(|| kernel.run(&plan, left, right, &mut out, &mut scratch));
            });
        }
    }
}

/// The bytes of weights that are read in turn: more than caches hold.
const MEMORY_BYTES: usize = 96 << 20;

/// By how many rows they are multiplied.
const ROWS: [usize; 4] = [1, 2, 4, 32];

/// Rows by weights that come from memory: bytes of weights a second, to be compared with what memory gives.
fn rows_from_memory(criterion: &mut Criterion) {
    let (columns, k) = (4864, 896);
    let codes = [
        ("u4", Code::U4, 4, 128),
        ("i4", Code::I4, 4, 128),
        ("nf4", Code::NF4, 4, 128),
        ("u8", Code::U8, 8, k),
        ("f16", Code::F16, 16, k),
    ];
    for (name, code, bits, length) in codes {
        for rows in ROWS {
            let mut group = criterion.benchmark_group(format!("memory/{rows} of {name}"));
            group
                .warm_up_time(Duration::from_millis(50))
                .measurement_time(Duration::from_millis(500));
            let contraction = Contraction {
                n: vec![Dim::new(columns, 0, k, 1)],
                k: vec![Dim::new(k, 1, 1, 0)],
                ..matrices(1, rows, columns, k)
            };
            for isa in [Isa::Avx512, Isa::Avx2] {
                let forms = [Form::Plain, Form::Coded];
                let kernel = PreparedContraction::with_forms(&contraction, isa, forms);
                let Ok(kernel) = kernel else { continue };
                let factors = vec![1.0; columns * k / length];
                let coding = Coding {
                    code,
                    group: length,
                    zero: Some(factors.clone()),
                    scale: Some(factors),
                };
                let bytes = columns * k * bits / 8;
                let weights = vec![0u8; bytes];
                let pack = || kernel.pack_right_coded(&weights, &coding).unwrap();
                let all: Vec<_> = (0..MEMORY_BYTES / bytes).map(|_| pack()).collect();
                let plan = kernel.plan(Form::Plain, Form::Coded, 1);
                let mut scratch = vec![0u8; plan.shared_bytes() + plan.worker_bytes()];
                let (left, mut out) = (vec![0u8; rows * k * 4], vec![0u8; rows * columns * 4]);
                group.throughput(Throughput::Bytes((all.len() * bytes) as u64));
                group.bench_function(plan.name(), |bencher| {
                    bencher.iter(|| {
                        for packed in &all {
                            let operands = (Operand::Plain(&left), Operand::Packed(packed));
                            kernel.run(&plan, operands.0, operands.1, &mut out, &mut scratch);
                        }
                    });
                });
            }
        }
    }
}

/// The same by groups of a row: of rows of `f32`, and of rows that were quantised. Beside it `memory/… of u4` and `… of u8` have
/// scales in every element.
fn grouped_rows_from_memory(criterion: &mut Criterion) {
    for (code, bits) in [(Code::U4, 4), (Code::U8, 8)] {
        for rows in ROWS {
            for (row_type, group) in [
                (GroupedRows::Floats, 128),
                (GroupedRows::Floats, 32),
                (GroupedRows::Bytes, 128),
                (GroupedRows::Bytes, 32),
            ] {
                let name = format!("memory/{rows} {row_type:?} in groups of {group} of {code:?}");
                let mut measured = criterion.benchmark_group(name);
                measured
                    .warm_up_time(Duration::from_millis(50))
                    .measurement_time(Duration::from_millis(500));
                grouped_from_memory(&mut measured, (code, bits), rows, (row_type, group));
            }
        }
    }
}

fn grouped_from_memory(
    measured: &mut BenchmarkGroup<WallTime>,
    (code, bits): (Code, usize),
    rows: usize,
    (row_type, group): (GroupedRows, usize),
) {
    let (columns, k) = (4864, 896);
    let coding_group = if bits == 4 { group.max(128) } else { k };
    let problem = Grouped {
        rows: row_type,
        m: vec![GroupedDim {
            extent: rows,
            rows: k,
            points: k / group,
            out: columns,
        }],
        n: columns,
        block: columns,
        block_out: 0,
        k,
        group,
        code,
        column_step: k,
        k_step: 1,
        coding_group,
    };
    // Rows of floats are multiplied by AVX2 where bytes are by AVX-VNNI.
    let isas: &[Isa] = match row_type {
        GroupedRows::Bytes => &[Isa::Avx512, Isa::AvxVnni, Isa::Avx2],
        GroupedRows::Floats => &[Isa::Avx512, Isa::Avx2],
    };
    for &isa in isas {
        let Ok(product) = GroupedProduct::new(&problem, isa) else {
            continue;
        };
        let points = columns * k / coding_group;
        let coding = Coding {
            code,
            group: coding_group,
            zero: Some((0..points).map(|point| (point % 16) as f32).collect()),
            scale: Some(vec![1.0; points]),
        };
        let bytes = columns * k * bits / 8;
        let weights = vec![0u8; bytes];
        let pack = || product.pack(&weights, &coding).unwrap();
        let all: Vec<_> = (0..MEMORY_BYTES / bytes).map(|_| pack()).collect();
        let plan = product.plan(1);
        let mut worker = vec![0u8; plan.worker_bytes()];
        let (left, points) = (vec![0u8; rows * k * 4], vec![0u8; rows * k / group * 4]);
        let mut out = vec![0u8; rows * columns * 4];
        measured.throughput(Throughput::Bytes((all.len() * bytes) as u64));
        measured.bench_function(product.name(), |bencher| {
            bencher.iter(|| {
                for packed in &all {
                    product.run(&plan, [&left, &points], packed, &mut out, &mut worker);
                }
            });
        });
    }
}

/// Convolutions of bytes whose channels follow each other, with windows of 3×3: as sums of products and by minimal filtering.
fn windows_of_bytes(criterion: &mut Criterion) {
    for (channels, size) in [(32, 112), (64, 56), (128, 28), (256, 14), (512, 7)] {
        let row = (size + 2) * channels;
        let contraction = Contraction {
            element: Element::U8I8,
            batch: vec![],
            m: vec![
                Dim::new(size, row, 0, size * channels),
                Dim::new(size, channels, 0, channels),
            ],
            n: vec![Dim::new(channels, 0, 9 * channels, 1)],
            k: vec![
                Dim::new(channels, 1, 9, 0),
                Dim::new(3, row, 3, 0),
                Dim::new(3, channels, 1, 0),
            ],
        };
        let mut group =
            criterion.benchmark_group(format!("bytes/channels last {channels}, {size}x{size}"));
        group
            .warm_up_time(Duration::from_millis(50))
            .measurement_time(Duration::from_millis(300));
        for isa in [Isa::Amx, Isa::Avx512, Isa::AvxVnni, Isa::Avx2] {
            if !isa.available() {
                continue;
            }
            let forms = [Form::Plain, Form::Packed];
            let kernel = PreparedContraction::with_forms(&contraction, isa, forms);
            let kernel = kernel.expect("a contraction");
            let [image, windows, out] = kernel.elements();
            let (image, windows) = (vec![0u8; image], vec![0u8; windows]);
            let mut out = vec![0u8; out * 4];
            let packed = kernel.pack_right(&windows).unwrap();
            let plan = kernel.plan(Form::Plain, Form::Packed, 1);
            let mut scratch = vec![0u8; plan.shared_bytes() + plan.worker_bytes()];
            group.throughput(Throughput::Elements(kernel.flops()));
            group.bench_function(plan.name(), |bencher| {
                let (left, right) = (Operand::Plain(&image), Operand::Packed(&packed));
                bencher.iter(|| kernel.run(&plan, left, right, &mut out, &mut scratch));
            });
            let Some(kernel) = WinogradConvolution::new(&contraction, isa, true) else {
                continue;
            };
            let packed = kernel.pack(&windows).unwrap();
            let plan = kernel.plan(1);
            let mut worker = vec![0u8; plan.worker_bytes()];
            group.bench_function(kernel.name(), |bencher| {
                bencher.iter(|| kernel.run(&plan, &image, &packed, &mut out, &mut worker));
            });
        }
    }
}

criterion_group!(
    benches,
    contractions,
    windows_of_bytes,
    rows_from_memory,
    grouped_rows_from_memory
);
criterion_main!(benches);
