//! Rows of attention that are masked from end to end, as those of padding are.

use vinelift::{Config, Core, Level, Tensor};

/// `y = attention(q, k, v, mask)`; with `STATE`, `v` is read from a variable that it initialises, and that keeps it.
const ATTENTION: &str = r#"<net name="masked" version="11"><layers>
<layer id="0" name="q" type="Parameter" version="opset1"><data shape="1,2,1" element_type="f32"/>
<output><port id="0"/></output></layer>
<layer id="1" name="k" type="Parameter" version="opset1"><data shape="1,2,1" element_type="f32"/>
<output><port id="0"/></output></layer>
<layer id="2" name="v" type="Parameter" version="opset1"><data shape="1,2,2" element_type="f32"/>
<output><port id="0"/></output></layer>
<layer id="3" name="mask" type="Parameter" version="opset1"><data shape="1,2,2" element_type="boolean"/>
<output><port id="0"/></output></layer>
<layer id="4" name="y" type="ScaledDotProductAttention" version="opset13"><data causal="false"/>
<input><port id="0"/><port id="1"/><port id="2"/><port id="3"/></input><output><port id="4"/></output></layer>
<layer id="5" name="result" type="Result" version="opset1"><input><port id="0"/></input></layer>
STATE_LAYERS</layers><edges>
<edge from-layer="0" from-port="0" to-layer="4" to-port="0"/><edge from-layer="1" from-port="0" to-layer="4" to-port="1"/>
<edge from-layer="3" from-port="0" to-layer="4" to-port="3"/><edge from-layer="4" from-port="4" to-layer="5" to-port="0"/>
STATE_EDGES</edges></net>"#;

const STATELESS_EDGE: &str = r#"<edge from-layer="2" from-port="0" to-layer="4" to-port="2"/>"#;

const STATE_LAYERS: &str = r#"
<layer id="6" name="read" type="ReadValue" version="opset6"><data variable_id="held" variable_type="f32"
variable_shape="1,2,2"/><input><port id="0"/></input><output><port id="1"/></output></layer>
<layer id="7" name="assign" type="Assign" version="opset6"><data variable_id="held" variable_type="f32"
variable_shape="1,2,2"/><input><port id="0"/></input><output><port id="1"/></output></layer>"#;

const STATE_EDGES: &str = r#"<edge from-layer="2" from-port="0" to-layer="6" to-port="0"/>
<edge from-layer="6" from-port="1" to-layer="4" to-port="2"/><edge from-layer="6" from-port="1" to-layer="7" to-port="0"/>"#;

fn attention(state: (&str, &str), mask: [bool; 4], level: Level) -> Vec<f32> {
    let text = ATTENTION.replace("STATE_LAYERS", state.0);
    let text = text.replace("STATE_EDGES", state.1);
    let core = Core::new().unwrap();
    let model = core.read_model_from_memory(text.as_bytes(), Vec::new());
    let config = Config {
        level,
        ..Config::default()
    };
    let compiled = core.compile_model_with(&model.unwrap(), config).unwrap();
    let floats = |shape: &[usize], values: &[f32]| Tensor::from_slice(shape, values).unwrap();
    let outputs = compiled
        .run([
            ("q", floats(&[1, 2, 1], &[1.0, 1.0])),
            ("k", floats(&[1, 2, 1], &[0.0, 3f32.ln()])),
            ("v", floats(&[1, 2, 2], &[4.0, 8.0, 12.0, 0.0])),
            ("mask", Tensor::from_bools(&[1, 2, 2], &mask).unwrap()),
        ])
        .unwrap();
    outputs[0].as_slice::<f32>().unwrap().into_owned()
}

fn close(found: &[f32], want: [f32; 4]) {
    let near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-5 || a.is_nan() && b.is_nan();
    assert!(found.iter().zip(&want).all(near), "{found:?} {want:?}");
}

/// The scores are 0 and ln 3, so the weights are 1/4 and 3/4 where nothing is masked. A masked row is NaN by the
/// specification's formula; with state it is the mean of the values, as on OpenVINO's CPU device.
#[test]
fn a_masked_row_is_finite_if_there_is_state() {
    for level in Level::ALL {
        let stateless = |mask| attention(("", STATELESS_EDGE), mask, level);
        let stateful = |mask| attention((STATE_LAYERS, STATE_EDGES), mask, level);
        let one_masked = [false, false, true, true];
        close(&stateless(one_masked), [f32::NAN, f32::NAN, 10.0, 2.0]);
        close(&stateful(one_masked), [8.0, 4.0, 10.0, 2.0]);
        for mask in [[true, false, true, true], [false, true, true, false]] {
            assert_eq!(stateful(mask), stateless(mask));
        }
    }
}
