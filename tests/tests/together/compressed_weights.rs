//! Weights of few bits, as files write them: decompressed in `f32`, the same bits at every level and for any number of
//! rows, and near to the sum in real numbers.

use half::{bf16, f16};
use proptest::prelude::*;
use vinelift::{
    Config, Core, ElementType, Level, Model, PartialShape, Specialization, Tensor, Vectors,
};
use vinelift_tensor::float8;
use vinelift_tests::{Graph, Value, different_bits, outputs, outputs_with, step};

/// `x · (Convert(codes) [- Convert(zero)] · scale)`, whose scales are shared by `length` of each row's `groups · length` codes.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) code: ElementType,
    /// The type of all steps but the last.
    pub(crate) via: ElementType,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) groups: usize,
    pub(crate) length: usize,
    pub(crate) has_zero: bool,
    /// Whether columns come first, as with `transpose_b`.
    pub(crate) is_transposed: bool,
    /// Whether rows of the weights are gathered, too.
    pub(crate) is_shared: bool,
    pub(crate) seed: u64,
}

fn case() -> impl Strategy<Value = Case> {
    use ElementType::{BF16, F4E2M1, F8E4M3, F8E5M2, F16, F32, I4, I8, NF4, U4, U8};
    let code = prop::sample::select(vec![U4, I4, U8, I8, NF4, F4E2M1, F8E4M3, F8E5M2]);
    let rows = prop::sample::select(vec![1usize, 2, 3, 7, 33]);
    let length = prop_oneof![Just(16usize), Just(32), Just(17), Just(8), 1..70usize];
    (
        code,
        prop::sample::select(vec![F16, F32, BF16]),
        rows,
        1..150usize,
        1..5usize,
        length,
        any::<[bool; 3]>(),
        any::<u64>(),
    )
        .prop_map(
            |(code, via, rows, columns, groups, length, flags, seed)| Case {
                code,
                via,
                rows,
                columns,
                groups,
                length,
                has_zero: flags[0] && code.is_integer(),
                is_transposed: flags[1],
                is_shared: flags[2],
                seed,
            },
        )
}

/// The bytes of numbers as elements of a type of 16 or 32 bits.
fn bytes(ty: ElementType, values: &[f32]) -> Vec<u8> {
    let each = values.iter();
    match ty {
        ElementType::F16 => each.flat_map(|x| f16::from_f32(*x).to_le_bytes()).collect(),
        ElementType::BF16 => each
            .flat_map(|x| bf16::from_f32(*x).to_le_bytes())
            .collect(),
        _ => each.flat_map(|x| x.to_le_bytes()).collect(),
    }
}

/// The nearest number of a type of 16 or 32 bits.
fn rounded(ty: ElementType, x: f32) -> f32 {
    match ty {
        ElementType::F16 => f16::from_f32(x).to_f32(),
        ElementType::BF16 => bf16::from_f32(x).to_f32(),
        _ => x,
    }
}

/// The number that a code stands for.
fn number(ty: ElementType, code: u8) -> f32 {
    match ty {
        ElementType::U4 | ElementType::U8 => f32::from(code),
        ElementType::I8 => f32::from(code as i8),
        ElementType::I4 => f32::from((code << 4) as i8 >> 4),
        _ => float8::decode(ty, code).unwrap(),
    }
}

/// Random codes of finite numbers, one to a byte, and as bytes of a file.
fn codes(random: &mut fastrand::Rng, ty: ElementType, count: usize) -> (Vec<u8>, Vec<u8>) {
    let bits = ty.bits();
    let code = |_| loop {
        let code = random.u8(..) & (255 >> (8 - bits));
        if number(ty, code).is_finite() {
            return code;
        }
    };
    let codes: Vec<u8> = (0..count).map(code).collect();
    let packed = match bits {
        4 => codes
            .chunks(2)
            .map(|pair| pair[0] | pair.get(1).unwrap_or(&0) << 4)
            .collect(),
        _ => codes.clone(),
    };
    (codes, packed)
}

/// The model, and the elements that its weights have: those of each column together.
pub(crate) fn build(case: &Case, core: &Core) -> (Model, Vec<f32>) {
    let Case {
        code,
        via,
        columns,
        groups,
        length,
        ..
    } = *case;
    let mut random = fastrand::Rng::with_seed(case.seed);
    let mut graph = Graph::default();
    let k = groups * length;
    let x = graph.parameter("x", ElementType::F32, &[case.rows, k]);
    let ids = graph.parameter("ids", ElementType::I64, &[3]);
    let (shape, shared) = match case.is_transposed {
        true => ([columns, groups, length], [columns, groups, 1]),
        false => ([groups, length, columns], [groups, 1, columns]),
    };
    let (numbers, stored) = codes(&mut random, code, k * columns);
    let (zeros, stored_zeros) = codes(&mut random, code, groups * columns);
    let scale = |_| rounded(via, random.f32() * 0.1 - 0.02);
    let scales: Vec<f32> = (0..groups * columns).map(scale).collect();
    let convert = |graph: &mut Graph, from: &Value, to: ElementType| {
        let attributes = format!("destination_type=\"{to}\"");
        let made = graph.node(core, "Convert", "opset1", &attributes, &[from], 1);
        made.unwrap().remove(0)
    };
    let both = |graph: &mut Graph, ty: &str, a: &Value, b: &Value| {
        let numpy = "auto_broadcast=\"numpy\"";
        graph
            .node(core, ty, "opset1", numpy, &[a, b], 1)
            .unwrap()
            .remove(0)
    };
    let w = graph.constant(code, &shape, &stored);
    let mut w = convert(&mut graph, &w, via);
    if case.has_zero {
        let zero = graph.constant(code, &shared, &stored_zeros);
        let zero = convert(&mut graph, &zero, via);
        w = both(&mut graph, "Subtract", &w, &zero);
    }
    let scale = graph.constant(via, &shared, &bytes(via, &scales));
    w = both(&mut graph, "Multiply", &w, &scale);
    let flat = match case.is_transposed {
        true => [columns as i64, k as i64],
        false => [k as i64, columns as i64],
    };
    let flat = graph.list(&flat);
    let reshaped = graph.node(
        core,
        "Reshape",
        "opset1",
        "special_zero=\"false\"",
        &[&w, &flat],
        1,
    );
    w = reshaped.unwrap().remove(0);
    if via != ElementType::F32 {
        w = convert(&mut graph, &w, ElementType::F32);
    }
    let attributes = format!(
        "transpose_a=\"false\" transpose_b=\"{}\"",
        case.is_transposed
    );
    let y = graph.node(core, "MatMul", "opset1", &attributes, &[&x, &w], 1);
    let mut results = y.unwrap();
    if case.is_shared {
        let axis = graph.number(0);
        let rows = graph.node(
            core,
            "Gather",
            "opset8",
            "batch_dims=\"0\"",
            &[&w, &ids, &axis],
            1,
        );
        results.extend(rows.unwrap());
    }
    let element = |column: usize, k: usize| {
        let group = k / length;
        let (at, shared) = match case.is_transposed {
            true => (column * groups * length + k, column * groups + group),
            false => (k * columns + column, group * columns + column),
        };
        let zero = if case.has_zero {
            number(code, zeros[shared])
        } else {
            0.0
        };
        (number(code, numbers[at]) - zero) * scales[shared]
    };
    let elements = (0..columns).flat_map(|column| (0..k).map(move |k| (column, k)));
    let elements = elements.map(|(column, k)| element(column, k)).collect();
    (graph.model(core, &results).unwrap(), elements)
}

/// The ways to run a model, by name, and whether its shapes are open then.
fn ways(config: &Config) -> Vec<(&'static str, Config, bool)> {
    let levels = Level::ALL.map(|level| (level.name(), config.clone().level(level), false));
    let generic = config.clone().specialization(Specialization::Generic);
    let always = config.clone().specialization(Specialization::Always);
    let others = [
        ("128 bits", config.clone().vectors(Vectors::Bits128), false),
        ("256 bits", config.clone().vectors(Vectors::Bits256), false),
        ("3 threads", config.clone().threads(3), false),
        ("generic", generic, true),
        ("always", always, true),
    ];
    levels.into_iter().chain(others).collect()
}

/// The first result of a model of inputs of rank 2 and 1 in all ways, if it has the same bits in all.
pub(crate) fn same_in_all_ways(
    core: &Core,
    model: &Model,
    config: &Config,
    inputs: &[Tensor],
) -> Result<Tensor, String> {
    let any = model.reshape(&[(0, PartialShape::any_of_rank(2))]).unwrap();
    let mut first: Option<Tensor> = None;
    for (name, config, is_open) in ways(config) {
        let model = if is_open { &any } else { model };
        let found = outputs_with(core, model, config, inputs).unwrap().remove(0);
        match &first {
            None => first = Some(found),
            Some(first) => {
                if let Some(difference) = different_bits(first, &found) {
                    return Err(format!("{name}: {difference}"));
                }
            }
        }
    }
    first.ok_or_else(|| "no way to run it".to_owned())
}

/// Asserts that each result is no further from the sum in real numbers than `most` of the sum of the products' sizes.
fn check_near(case: &Case, y: &Tensor, x: &[f32], elements: &[f32], most: fn(f64) -> f64) {
    let k = case.groups * case.length;
    let y = y.to_f64_vec().unwrap();
    for (row, x) in x.chunks(k).enumerate() {
        for (column, w) in elements.chunks(k).enumerate() {
            let products = x.iter().zip(w).map(|(x, w)| f64::from(*x) * f64::from(*w));
            let (sum, size) = products.fold((0.0, 0.0), |(sum, size), p| (sum + p, size + p.abs()));
            let found = y[row * case.columns + column];
            let is_near = (found - sum).abs() <= most(size);
            assert!(
                is_near,
                "{found} for {sum} at row {row}, column {column}: {case:?}"
            );
        }
    }
}

fn check(case: &Case) {
    let core = Core::new().unwrap();
    let (model, elements) = build(case, &core);
    let k = case.groups * case.length;
    let value = |i: usize| ((i * 7919) % 2003) as f32 / 1001.5 - 1.0;
    let x: Vec<f32> = (0..case.rows * k).map(value).collect();
    let size = if case.is_transposed { case.columns } else { k };
    let ids = [0, size as i64 - 1, -(size as i64)];
    let inputs = [
        Tensor::from_slice(&[case.rows, k], &x).unwrap(),
        Tensor::from_slice(&[3], &ids).unwrap(),
    ];
    let all = Level::ALL.map(|level| outputs(&core, &model, level, &inputs).unwrap());
    for (other, level) in all.iter().zip(0..) {
        for (a, b) in all[0].iter().zip(other) {
            assert_eq!(different_bits(a, b), None, "level {level}, {case:?}");
        }
    }
    check_near(case, &all[0][0], &x, &elements, |size| size * 1e-5 + 1e-30);
    if let Some(rows) = all[0].get(1) {
        let element = |row: usize, at: usize| match case.is_transposed {
            true => elements[row * k + at],
            false => elements[at * k + row],
        };
        let width = if case.is_transposed { k } else { case.columns };
        let wanted = ids.map(|id| id.rem_euclid(size as i64) as usize);
        let wanted = wanted
            .into_iter()
            .flat_map(|row| (0..width).map(move |at| (row, at)));
        let wanted: Vec<f32> = wanted.map(|(row, at)| element(row, at)).collect();
        let wanted = Tensor::from_slice(&[3, width], &wanted).unwrap();
        // Zeros of either sign are the same here.
        let difference = different_bits(rows, &wanted);
        assert_eq!(difference, None, "gathered rows of {case:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn decompressed_in_f32(case in case()) {
        check(&case);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    /// As many as have their scales hoisted, mostly.
    #[test]
    fn many_weights_decompressed_in_f32(case in case(), columns in 0usize..40, eights in 1usize..20) {
        check(&Case {
            rows: case.rows.min(7),
            columns: case.columns.max(16) + 8 * columns,
            length: 8 * eights,
            ..case
        });
    }
}

/// The forms that kernels take as they are, on both sides of the least length of a group.
#[test]
fn groups_of_many_lengths() {
    use ElementType::{F16, I4, NF4, U4, U8};
    let mut cases = Vec::new();
    for code in [U4, I4, NF4, U8] {
        for (groups, length) in [(1, 128), (2, 64), (4, 16), (8, 8), (3, 17), (128, 1)] {
            for rows in [1, 2, 5, 40] {
                for is_transposed in [false, true] {
                    cases.push(Case {
                        code,
                        via: F16,
                        rows,
                        columns: 96,
                        groups,
                        length,
                        has_zero: code != NF4,
                        is_transposed,
                        is_shared: rows == 2,
                        seed: 1,
                    });
                }
            }
        }
    }
    cases.iter().step_by(step(3)).for_each(check);
}

/// 129 columns of 512 weights have their scales hoisted, 128 do not. Both give the same bits in every way, near to the sum in real
/// numbers, although all elements of the row have the same sign.
#[test]
fn scales_of_many_weights() {
    use ElementType::{F16, F32, I4, I8, U4, U8};
    let mut cases = Vec::new();
    for (code, has_zero) in [(U4, true), (U8, true), (I4, false), (I8, true)] {
        for (number, rows) in [1, 2, 3, 9, 65].into_iter().enumerate() {
            for columns in [128, 129] {
                let (groups, length) = [(4, 128), (16, 32), (1, 512), (32, 16)][number % 4];
                cases.push(Case {
                    code,
                    via: if columns == 128 { F32 } else { F16 },
                    rows,
                    columns,
                    groups,
                    length,
                    has_zero,
                    is_transposed: number % 2 == 0,
                    is_shared: rows == 2,
                    seed: 1,
                });
            }
        }
    }
    for case in cases.iter().step_by(step(3)) {
        check_positive(case);
    }
}

fn check_positive(case: &Case) {
    let core = Core::new().unwrap();
    let (model, elements) = build(case, &core);
    let k = case.groups * case.length;
    let value = |i: usize| ((i * 7919) % 2003) as f32 / 1001.5 + 0.1;
    let x: Vec<f32> = (0..case.rows * k).map(value).collect();
    let inputs = [
        Tensor::from_slice(&[case.rows, k], &x).unwrap(),
        Tensor::from_slice(&[3], &[0i64, 1, 2]).unwrap(),
    ];
    let y = same_in_all_ways(&core, &model, &Config::new(), &inputs);
    let y = y.unwrap_or_else(|difference| panic!("{difference}, {case:?}"));
    check_near(case, &y, &x, &elements, |size| size * 2e-6);
}
