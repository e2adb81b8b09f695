//! Caches of language models that are stored in fewer bits: what runs read, and what callers see.

use std::sync::LazyLock;
use vinelift::{CachePrecision, CompiledModel, Config, Core, InferRequest, Level, Tensor, Vectors};
use vinelift_tests::growing_cache;

/// `last`, a variable that is set to `new` and is no cache, and what it was.
const LAST: [&str; 2] = [
    r#"<layer id="11" name="read_last" type="ReadValue" version="opset6"><data variable_id="last" variable_type="f32"
variable_shape="?,?,WIDTH"/><input><port id="0"/></input><output><port id="1"/></output></layer>
<layer id="12" name="assign_last" type="Assign" version="opset6"><data variable_id="last" variable_type="f32"
variable_shape="?,?,WIDTH"/><input><port id="0"/></input></layer>
<layer id="13" name="before" type="Result" version="opset1"><input><port id="0"/></input></layer>
"#,
    r#"<edge from-layer="0" from-port="0" to-layer="11" to-port="0"/><edge from-layer="11" from-port="1" to-layer="13" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="12" to-port="0"/>
"#,
];

type Row = [f32; 4];

const ROWS: [Row; 5] = [
    [0.1, -0.7, 2.3, 1.0],
    [5.0, 5.0, 5.0, 5.0],
    [-1e-3, 1e-3, 0.0, 3e-4],
    [70000.0, -1.0, 0.333_333_34, 65504.0],
    [0.0, 0.0, 0.0, -0.0],
];

/// The bits of the rows as they are stored, from NumPy: `x.astype(float16)`; `x` rounded to the upper half of its bits,
/// ties to even; and with `lo = x.min()`, `s = maximum((x.max() - lo) / float32(255), 2**-126)` and
/// `q = rint((x - lo) / s)`, `q.astype(uint8).astype(float32) * s + lo`.
const STORED: [(CachePrecision, [[u32; 4]; 5]); 3] = [
    (
        CachePrecision::F16,
        [
            [0x3dccc000, 0xbf334000, 0x40134000, 0x3f800000],
            [0x40a00000, 0x40a00000, 0x40a00000, 0x40a00000],
            [0xba832000, 0x3a832000, 0x0, 0x399d4000],
            [0x7f800000, 0xbf800000, 0x3eaaa000, 0x477fe000],
            [0x0, 0x0, 0x0, 0x80000000],
        ],
    ),
    (
        CachePrecision::BF16,
        [
            [0x3dcd0000, 0xbf330000, 0x40130000, 0x3f800000],
            [0x40a00000, 0x40a00000, 0x40a00000, 0x40a00000],
            [0xba830000, 0x3a830000, 0x0, 0x399d0000],
            [0x47890000, 0xbf800000, 0x3eab0000, 0x47800000],
            [0x0, 0x0, 0x0, 0x80000000],
        ],
    ),
    (
        CachePrecision::U8,
        [
            [0x3dccccd0, 0xbf333333, 0x40133333, 0x3f7e7e7f],
            [0x40a00000, 0x40a00000, 0x40a00000, 0x40a00000],
            [0xba83126f, 0x3a83126f, 0x36839600, 0x399e507c],
            [0x4788b800, 0xbf800000, 0xbf800000, 0x478023e4],
            [0x0, 0x0, 0x0, 0x0],
        ],
    ),
];

fn compiled(config: Config) -> CompiledModel {
    let core = Core::new().unwrap();
    let model = growing_cache(&core, 4, LAST);
    core.compile_model_with(&model, config).unwrap()
}

fn tensor(rows: &[Row]) -> Tensor {
    let values: Vec<f32> = rows.iter().flatten().copied().collect();
    Tensor::from_slice(&[1, rows.len(), 4], &values).unwrap()
}

/// Adds rows; gives what the run has read.
fn add(request: &mut InferRequest, rows: &[Row]) -> Vec<f32> {
    request.set_input("new", tensor(rows)).unwrap();
    let order = Tensor::from_slice(&[1], &[0i32]).unwrap();
    request.set_input("order", order).unwrap();
    request.infer().unwrap();
    let doubled = request.output(0).unwrap().as_slice::<f32>().unwrap();
    doubled.iter().map(|x| x / 2.0).collect()
}

fn begun(compiled: &CompiledModel, rows: &[Row]) -> InferRequest {
    let mut request = compiled.create_request();
    request.set_input("start", tensor(rows)).unwrap();
    request
}

fn held(request: &InferRequest) -> Vec<f32> {
    let held = request.variable("held").unwrap();
    held.as_slice::<f32>().unwrap().to_vec()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn runs_read_what_is_stored() {
    for (precision, stored) in STORED {
        for (level, threads) in Level::ALL.into_iter().flat_map(|l| [(l, 1), (l, 2)]) {
            let config = Config::new().kv_cache_precision(precision);
            let compiled = compiled(config.level(level).threads(threads));
            let mut request = begun(&compiled, &ROWS[..2]);
            for k in 2..ROWS.len() {
                let want = &stored[..=k].concat();
                let found = add(&mut request, &ROWS[k..=k]);
                assert_eq!(bits(&found), *want, "{precision:?} {level:?} {k}");
                assert_eq!(bits(&held(&request)), *want);
            }
            // A variable that is no cache stays as it is.
            let last = request.output(1).unwrap().as_slice::<f32>().unwrap();
            assert_eq!(*last, ROWS[3]);
        }
    }
}

#[test]
fn callers_have_elements_of_the_type_of_the_model() {
    for (precision, stored) in STORED {
        let compiled = compiled(Config::new().kv_cache_precision(precision));
        assert_eq!(compiled.model().summary().variables, ["held", "last"]);
        let mut request = begun(&compiled, &ROWS[..1]);
        assert!(request.variable("held").is_none());
        request.set_variable("held", tensor(&ROWS)).unwrap();
        assert_eq!(bits(&held(&request)), stored.concat());
        let names: Vec<&str> = request.variables().map(|(name, _)| name).collect();
        assert_eq!(names, ["held"]);
        let found = add(&mut request, &ROWS[1..2]);
        assert_eq!(bits(&found), [stored.concat(), stored[1].to_vec()].concat());
        let names: Vec<&str> = request.variables().map(|(name, _)| name).collect();
        assert_eq!(names, ["held", "last"]);
        // A part of what is held is that of what was stored.
        let first = Tensor::from_slice(&[1, 2, 4], &held(&request)[..8]).unwrap();
        request.set_variable("held", first.clone()).unwrap();
        assert_eq!(*request.variable("held").unwrap(), first);
        request.set_variable("held", tensor(&[])).unwrap();
        assert_eq!(bits(&add(&mut request, &ROWS[2..3])), stored[2]);
        request.reset_variable("held");
        assert!(request.variable("held").is_none());
        let found = add(&mut request, &ROWS[2..3]);
        assert_eq!(bits(&found), [stored[0], stored[2]].concat());
        let wrong = Tensor::from_slice(&[1, 1, 4], &[0u8; 4]).unwrap();
        let message = request.set_variable("held", wrong).unwrap_err().to_string();
        assert!(
            message.starts_with("model: variable 'held' must be f32[?, ?, 4]"),
            "{message}"
        );
    }
}

/// Rows whose elements differ, as many as in a text.
fn row(k: usize) -> Row {
    std::array::from_fn(|i| ((k * 7919 + i * 104_729) % 2003) as f32 / 500.0 - 2.0)
}

#[test]
fn a_cache_grows_where_it_is() {
    for precision in CachePrecision::ALL {
        let compiled = compiled(Config::new().kv_cache_precision(precision));
        let mut request = begun(&compiled, &[row(0)]);
        let mut rows = vec![row(0)];
        for k in 1..300 {
            let new: Vec<Row> = (0..if k % 50 == 20 { 70 } else { 1 })
                .map(|i| row(k + i))
                .collect();
            rows.extend(&new);
            let found = add(&mut request, &new);
            // Half of a 255th of the range of a row, and a bit more for the rounding of the operations.
            let most = match precision {
                CachePrecision::F32 => 0.0,
                CachePrecision::F16 => 2.0 / 2048.0,
                CachePrecision::BF16 => 2.0 / 256.0,
                CachePrecision::U8 => 4.1 / 510.0,
            };
            let off = rows
                .iter()
                .flatten()
                .zip(&found)
                .map(|(x, y)| (x - y).abs());
            assert!(off.fold(0.0, f32::max) <= most, "{precision:?} {k}");
            assert_eq!(found.len(), 4 * rows.len());
        }
        let made = compiled.statistics();
        assert!(made.plans <= 20, "{precision:?}: {made:?}");
    }
}

/// A small decoder.
fn decoder(config: Config) -> CompiledModel {
    let path = "../ir-samples/models/storyteller/storyteller_u8.xml";
    let core = Core::new().unwrap();
    let model = core.read_model(path).unwrap();
    core.compile_model_with(&model, config).unwrap()
}

/// Has a decoder that has read `length` tokens read `new` more, and gives what it says after each.
fn read(request: &mut InferRequest, length: usize, new: usize) -> Vec<f32> {
    let all = length + new;
    let ids: Vec<i64> = (length..all).map(|k| (k * 13 % 40) as i64).collect();
    let places: Vec<i64> = (length..all).map(|k| k as i64).collect();
    let row = |values: &[i64]| Tensor::from_slice(&[1, values.len()], values).unwrap();
    request.set_input("input_ids", row(&ids)).unwrap();
    let mask = row(&vec![1; all]);
    request.set_input("attention_mask", mask).unwrap();
    request.set_input("position_ids", row(&places)).unwrap();
    let order = Tensor::from_slice(&[1], &[0i32]).unwrap();
    request.set_input("beam_idx", order).unwrap();
    request.infer().unwrap();
    let said = request.output(0).unwrap();
    said.as_slice::<f32>().unwrap().into_owned()
}

/// The logits of a small decoder after each token of a text.
fn decoded(config: Config) -> Vec<f32> {
    let mut request = decoder(config).create_request();
    let (mut length, mut all) = (0, Vec::new());
    for new in [9, 1, 1, 3, 1, 1] {
        all.extend(read(&mut request, length, new));
        length += new;
    }
    all
}

/// No length is compiled for, neither of a text nor of what is added to one.
#[test]
fn texts_of_all_lengths_share_plans() {
    let compiled = decoder(Config::new());
    let mut whole: Vec<f32> = Vec::new();
    for length in [30, 21, 9, 28, 11, 17] {
        let mut request = compiled.create_request();
        let said = read(&mut request, 0, length);
        // Sums over all tokens are divided by their number.
        let off = said.iter().zip(&whole).map(|(a, b)| (a - b).abs());
        assert!(off.fold(0.0, f32::max) <= 1e-4, "{length} tokens");
        if whole.is_empty() {
            whole = said;
        }
        read(&mut request, length, 1);
        read(&mut request, length + 1, length % 5 + 2);
    }
    let made = compiled.statistics();
    // One or two for the first tokens, for the one after them, and for several after these.
    assert!(made.plans <= 6 && made.unproven == 0, "{made:?}");
}

/// Compares the ways to run a decoder whose caches have this precision, and its results with those of exact caches.
fn a_decoder_says_the_same(precision: CachePrecision) {
    static EXACT: LazyLock<Vec<f32>> = LazyLock::new(|| decoded(Config::new()));
    let (threads, most) = match precision {
        CachePrecision::F32 => (2, 0.0),
        CachePrecision::F16 => (3, 0.02),
        CachePrecision::BF16 => (2, 0.2),
        CachePrecision::U8 => (3, 0.2),
    };
    let config = || Config::new().kv_cache_precision(precision);
    let found = decoded(config().threads(1));
    assert_eq!(bits(&decoded(config().threads(threads))), bits(&found));
    for vectors in [Vectors::Bits256, Vectors::Bits128] {
        assert_eq!(bits(&decoded(config().vectors(vectors))), bits(&found));
    }
    for level in [Level::Fused, Level::Compiled] {
        assert_eq!(
            bits(&decoded(config().level(level))),
            bits(&found),
            "{level:?}"
        );
    }
    let off = EXACT.iter().zip(&found).map(|(a, b)| (a - b).abs());
    let off = off.fold(0.0, f32::max);
    assert!(off <= most, "{precision:?}: {off}");
}

// A test for each precision, as they take seconds: they run beside each other.

#[test]
fn a_decoder_of_exact_caches_says_the_same() {
    a_decoder_says_the_same(CachePrecision::F32);
}

#[test]
fn a_decoder_of_caches_in_f16_says_the_same() {
    a_decoder_says_the_same(CachePrecision::F16);
}

#[test]
fn a_decoder_of_caches_in_bf16_says_the_same() {
    a_decoder_says_the_same(CachePrecision::BF16);
}

#[test]
fn a_decoder_of_caches_in_codes_says_the_same() {
    a_decoder_says_the_same(CachePrecision::U8);
}
