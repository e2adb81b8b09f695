//! Any indices into a compiled model give what the interpreter gives: the same tensors or the same
//! error, and nothing is read or written outside a buffer. Two threads share what is worth it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::fmt::Write;
use std::num::NonZeroUsize;
use std::sync::OnceLock;
use vinelift::{CompiledModel, Config, Core, ElementType, IndexPolicy, Level, Tensor};

const POLICIES: [IndexPolicy; 3] = [IndexPolicy::Spec, IndexPolicy::Error, IndexPolicy::Zero];
const INDEX_TYPES: [&str; 6] = ["i8", "u8", "i32", "u32", "i64", "u64"];

/// An operator whose inputs are written `f32[2,3]` if constant, `?i[2,3]` if they come from the fuzzer,
/// `=1` for the constant 1; `i` stands for the index type.
struct Case {
    operator: &'static str,
    version: &'static str,
    attributes: &'static str,
    inputs: &'static [&'static str],
}

const fn case(
    operator: &'static str,
    version: &'static str,
    attributes: &'static str,
    inputs: &'static [&'static str],
) -> Case {
    Case {
        operator,
        version,
        attributes,
        inputs,
    }
}

const CASES: &[Case] = &[
    case("Gather", "opset1", "", &["f32[3,4]", "?i[5]", "=1"]),
    case("Gather", "opset8", "", &["f32[3,4]", "?i[2,2]", "=0"]),
    case(
        "Gather",
        "opset8",
        r#"batch_dims="1""#,
        &["f32[2,3,4]", "?i[2,2]", "=2"],
    ),
    case(
        "GatherElements",
        "opset6",
        r#"axis="1""#,
        &["f32[3,4]", "?i[3,5]"],
    ),
    case(
        "GatherND",
        "opset5",
        r#"batch_dims="2""#,
        &["f32[2,2,3]", "?i[2,2,1]"],
    ),
    case(
        "GatherND",
        "opset8",
        r#"batch_dims="0""#,
        &["f32[2,3,4]", "?i[4,2]"],
    ),
    case(
        "GatherND",
        "opset8",
        r#"batch_dims="1""#,
        &["f32[2,3,4]", "?i[2,3,2]"],
    ),
    case(
        "ScatterUpdate",
        "opset3",
        "",
        &["f32[3,4]", "?i[2]", "f32[3,2]", "=1"],
    ),
    case(
        "ScatterElementsUpdate",
        "opset3",
        "",
        &["f32[3,4]", "?i[2,4]", "f32[2,4]", "=0"],
    ),
    case(
        "ScatterElementsUpdate",
        "opset12",
        r#"reduction="sum""#,
        &["f32[3,4]", "?i[3,5]", "f32[3,5]", "=1"],
    ),
    case(
        "ScatterElementsUpdate",
        "opset12",
        r#"reduction="prod""#,
        &["f32[3,4]", "?i[3,5]", "f32[3,5]", "=1"],
    ),
    case(
        "ScatterElementsUpdate",
        "opset12",
        r#"reduction="min""#,
        &["f32[3,4]", "?i[3,5]", "f32[3,5]", "=1"],
    ),
    case(
        "ScatterElementsUpdate",
        "opset12",
        r#"reduction="mean" use_init_val="false""#,
        &["f32[3,4]", "?i[3,5]", "f32[3,5]", "=1"],
    ),
    case(
        "ScatterNDUpdate",
        "opset3",
        "",
        &["f32[3,4]", "?i[2,1]", "f32[2,4]"],
    ),
    case(
        "ScatterNDUpdate",
        "opset15",
        r#"reduction="sum""#,
        &["f32[3,4]", "?i[5,2]", "f32[5]"],
    ),
    case(
        "ScatterNDUpdate",
        "opset15",
        r#"reduction="max""#,
        &["f32[3,4]", "?i[5,2]", "f32[5]"],
    ),
    case(
        "EmbeddingBagOffsets",
        "opset15",
        r#"reduction="sum""#,
        &["f32[5,2]", "?i[4]", "?i[3]", "?i[]", "f32[4]"],
    ),
    case(
        "EmbeddingBagOffsets",
        "opset15",
        r#"reduction="mean""#,
        &["f32[5,2]", "?i[4]", "?i[3]"],
    ),
    case(
        "GatherTree",
        "opset1",
        "",
        &["?i[4,2,3]", "?i[4,2,3]", "?i[2]", "?i[]"],
    ),
    case(
        "OneHot",
        "opset1",
        r#"axis="1""#,
        &["?i[3,2]", "=4", "f32[]", "f32[]"],
    ),
    case(
        "OneHot",
        "opset16",
        r#"axis="-1" negative_indices_mode="normalize""#,
        &["?i[3]", "=4", "f32[]", "f32[]"],
    ),
    case(
        "SearchSorted",
        "opset15",
        r#"right_mode="true""#,
        &["?i[2,5]", "?i[2,3]"],
    ),
    // Enough points for vectors: along rows, across them, in short rows, in rows of few columns, by blocks of
    // columns that are packed or not.
    case("Gather", "opset8", "", &["f32[3,40]", "?i[37]", "=1"]),
    case("Gather", "opset8", "", &["f32[40,3]", "?i[37]", "=0"]),
    case("Gather", "opset8", "", &["f32[9,70]", "?i[5]", "=0"]),
    case(
        "GatherElements",
        "opset6",
        r#"axis="1""#,
        &["f32[3,40]", "?i[3,37]"],
    ),
    case(
        "GatherElements",
        "opset6",
        r#"axis="1""#,
        &["f32[2,300]", "?i[2,67]"],
    ),
    case(
        "GatherElements",
        "opset6",
        r#"axis="1""#,
        &["f32[3,29]", "?i[3,19]"],
    ),
    case(
        "GatherElements",
        "opset6",
        r#"axis="1""#,
        &["u8[3,11]", "?i[3,37]"],
    ),
    case(
        "GatherElements",
        "opset6",
        r#"axis="0""#,
        &["f32[9,37]", "?i[5,37]"],
    ),
    case(
        "GatherElements",
        "opset6",
        r#"axis="0""#,
        &["f32[30,4]", "?i[24,4]"],
    ),
    case(
        "GatherElements",
        "opset6",
        r#"axis="0""#,
        &["f32[4100,40]", "?i[1030,40]"],
    ),
    case(
        "GatherElements",
        "opset6",
        r#"axis="0""#,
        &["u8[600,140]", "?i[160,140]"],
    ),
    case(
        "GatherElements",
        "opset6",
        r#"axis="1""#,
        &["f32[90,12]", "?i[90,3]"],
    ),
    case(
        "GatherElements",
        "opset6",
        r#"axis="1""#,
        &["u8[60,13]", "?i[60,6]"],
    ),
    case(
        "GatherND",
        "opset8",
        r#"batch_dims="0""#,
        &["f32[6,7]", "?i[40,2]"],
    ),
    case(
        "ScatterElementsUpdate",
        "opset12",
        r#"reduction="sum""#,
        &["f32[9,70]", "?i[7,70]", "f32[7,70]", "=0"],
    ),
    case(
        "ScatterElementsUpdate",
        "opset12",
        "",
        &["f32[3,40]", "?i[3,37]", "f32[3,37]", "=1"],
    ),
    case(
        "ScatterNDUpdate",
        "opset15",
        "",
        &["f32[9,40]", "?i[5,1]", "f32[5,40]"],
    ),
];

/// The same model, interpreted and as code.
struct Pair {
    text: String,
    interpreted: CompiledModel,
    scheduled: CompiledModel,
}

/// One for every case, index type and policy, as far as the operators exist.
fn pairs() -> Vec<Pair> {
    let core = Core::new().unwrap();
    let mut pairs = Vec::new();
    let known = |case: &&Case| {
        vinelift::operators()
            .any(|def| def.name == case.operator && def.versions.contains(&case.version))
    };
    for case in CASES.iter().filter(known) {
        for index_type in INDEX_TYPES {
            let (text, weights) = model(case, index_type);
            for index_policy in POLICIES {
                let compile = |level| {
                    let config = Config {
                        level,
                        index_policy,
                        threads: NonZeroUsize::new(2),
                        ..Config::default()
                    };
                    let model = core.read_model_from_memory(text.as_bytes(), weights.clone());
                    let compiled = model.and_then(|model| core.compile_model_with(&model, config));
                    compiled.unwrap_or_else(|e| panic!("{e}\n{text}"))
                };
                let (interpreted, scheduled) =
                    (compile(Level::Interpreted), compile(Level::Scheduled));
                pairs.push(Pair {
                    text: format!("{index_policy:?}\n{text}"),
                    interpreted,
                    scheduled,
                });
            }
        }
    }
    assert!(!pairs.is_empty(), "none of the operators exists");
    pairs
}

/// The text and the weights of a model that consists of one operator.
fn model(case: &Case, index_type: &str) -> (String, Vec<u8>) {
    let (mut layers, mut edges, mut ports, mut weights) =
        (String::new(), String::new(), String::new(), Vec::new());
    let count = case.inputs.len();
    for (id, input) in case.inputs.iter().enumerate() {
        let (kind, rest) = input.split_at(usize::from(input.starts_with(['?', '='])));
        let (ty, shape) = if kind == "=" {
            ("i64", "")
        } else {
            rest.trim_end_matches(']').split_once('[').unwrap()
        };
        let ty: ElementType = if ty == "i" { index_type } else { ty }.parse().unwrap();
        let (layer, data) = if kind == "?" {
            ("Parameter", String::new())
        } else {
            let offset = weights.len();
            weights.extend(constant(rest, shape));
            (
                "Const",
                format!(r#" offset="{offset}" size="{}""#, weights.len() - offset),
            )
        };
        let precision = ty.precision();
        write!(
            layers,
            r#"<layer id="{id}" name="in_{id}" type="{layer}" version="opset1"><data element_type="{ty}" shape="{shape}"{data}/>
            <output><port id="0" precision="{precision}"/></output></layer>"#
        )
        .unwrap();
        write!(
            edges,
            r#"<edge from-layer="{id}" from-port="0" to-layer="{count}" to-port="{id}"/>"#
        )
        .unwrap();
        write!(ports, r#"<port id="{id}" precision="{precision}"/>"#).unwrap();
    }
    let Case {
        operator,
        version,
        attributes,
        ..
    } = case;
    let result = count + 1;
    let text = format!(
        r#"<net name="{operator}" version="11"><layers>{layers}
        <layer id="{count}" name="op" type="{operator}" version="{version}"><data {attributes}/>
            <input>{ports}</input><output><port id="{count}"/></output></layer>
        <layer id="{result}" name="out" type="Result" version="opset1"><input><port id="0"/></input></layer>
        </layers><edges>{edges}
        <edge from-layer="{count}" from-port="{count}" to-layer="{result}" to-port="0"/></edges></net>"#
    );
    (text, weights)
}

/// The bytes of a number, or of a tensor of `shape` with numbers of its own.
fn constant(number: &str, shape: &str) -> Vec<u8> {
    if let Ok(number) = number.parse::<i64>() {
        return number.to_le_bytes().to_vec();
    }
    let extents = shape.split(',').filter(|d| !d.is_empty());
    let count: usize = extents.map(|d| d.parse::<usize>().unwrap()).product();
    if number.starts_with("u8") {
        return (0..count).map(|k| (k % 251) as u8).collect();
    }
    (0..count)
        .flat_map(|k| (k as f32 + 0.5).to_le_bytes())
        .collect()
}

/// Tensors for all inputs from `bytes`: as they are, or one byte an element, so that many are in range.
fn inputs(model: &CompiledModel, small: bool, bytes: &[u8]) -> Vec<Tensor> {
    let mut bytes = bytes.iter().copied().chain(std::iter::repeat(0));
    let mut tensors = Vec::new();
    for port in model.inputs() {
        let mut tensor =
            Tensor::zeros(port.element_type, &port.shape.to_static().unwrap()).unwrap();
        for element in tensor.bytes_mut().chunks_mut(port.element_type.bits() / 8) {
            let first = bytes.next().unwrap_or(0);
            let sign = if (first as i8) < 0 { 0xff } else { 0 };
            for (k, byte) in element.iter_mut().enumerate() {
                *byte = match (k, small) {
                    (0, _) => first,
                    (_, true) => sign,
                    (_, false) => bytes.next().unwrap_or(0),
                };
            }
        }
        tensors.push(tensor);
    }
    tensors
}

fn run(model: &CompiledModel, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
    let mut request = model.create_request();
    for (k, tensor) in inputs.iter().enumerate() {
        request.set_input_at(k, tensor.clone()).unwrap();
    }
    request.infer().map_err(|e| e.to_string())?;
    Ok(request.outputs().to_vec())
}

fuzz_target!(|input: (u16, bool, &[u8])| {
    static PAIRS: OnceLock<Vec<Pair>> = OnceLock::new();
    let pairs = PAIRS.get_or_init(pairs);
    let (which, small, bytes) = input;
    let pair = &pairs[usize::from(which) % pairs.len()];
    let inputs = inputs(&pair.interpreted, small, bytes);
    let (expected, found) = (
        run(&pair.interpreted, &inputs),
        run(&pair.scheduled, &inputs),
    );
    assert_eq!(found, expected, "{inputs:?}\n{}", pair.text);
});
