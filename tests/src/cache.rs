//! A variable that grows with every run, as the cache of a language model does.

use vinelift::{Core, Model};

const LAYERS: &str = r#"<net name="g" version="11"><layers>
<layer id="0" name="start" type="Parameter" version="opset1"><data shape="?,?,WIDTH" element_type="f32"/>
<output><port id="0"/></output></layer>
<layer id="1" name="new" type="Parameter" version="opset1"><data shape="?,?,WIDTH" element_type="f32"/>
<output><port id="0"/></output></layer>
<layer id="2" name="order" type="Parameter" version="opset1"><data shape="?" element_type="i32"/>
<output><port id="0"/></output></layer>
<layer id="3" name="axis" type="Const" version="opset1"><data element_type="i32" shape="" offset="0" size="4"/>
<output><port id="0"/></output></layer>
<layer id="4" name="two" type="Const" version="opset1"><data element_type="f32" shape="1" offset="4" size="4"/>
<output><port id="0"/></output></layer>
<layer id="5" name="read" type="ReadValue" version="opset6"><data variable_id="held" variable_type="f32"
variable_shape="?,?,WIDTH"/><input><port id="0"/></input><output><port id="1"/></output></layer>
<layer id="6" name="ordered" type="Gather" version="opset8"><data batch_dims="0"/><input><port id="0"/><port id="1"/>
<port id="2"/></input><output><port id="3"/></output></layer>
<layer id="7" name="grown" type="Concat" version="opset1"><data axis="1"/><input><port id="0"/><port id="1"/></input>
<output><port id="2"/></output></layer>
<layer id="8" name="assign" type="Assign" version="opset6"><data variable_id="held" variable_type="f32"
variable_shape="?,?,WIDTH"/><input><port id="0"/></input><output><port id="1"/></output></layer>
<layer id="9" name="doubled" type="Multiply" version="opset1"><data auto_broadcast="numpy"/><input><port id="0"/>
<port id="1"/></input><output><port id="2"/></output></layer>
<layer id="10" name="result" type="Result" version="opset1"><input><port id="0"/></input></layer>
"#;

const EDGES: &str = r#"<edge from-layer="0" from-port="0" to-layer="5" to-port="0"/><edge from-layer="5" from-port="1" to-layer="6" to-port="0"/>
<edge from-layer="2" from-port="0" to-layer="6" to-port="1"/><edge from-layer="3" from-port="0" to-layer="6" to-port="2"/>
<edge from-layer="6" from-port="3" to-layer="7" to-port="0"/><edge from-layer="1" from-port="0" to-layer="7" to-port="1"/>
<edge from-layer="7" from-port="2" to-layer="8" to-port="0"/><edge from-layer="7" from-port="2" to-layer="9" to-port="0"/>
<edge from-layer="4" from-port="0" to-layer="9" to-port="1"/><edge from-layer="9" from-port="2" to-layer="10" to-port="0"/>
"#;

/// `held = concat(gather(held, order), new)` along dim 1, and `result = 2 · held`, where `held` is `[?, ?, width]` and begins
/// as `start`; and more layers and edges, in whose text `WIDTH` stands for the width. The ids from 11 on are free.
pub fn growing_cache(core: &Core, width: usize, [layers, edges]: [&str; 2]) -> Model {
    let text = format!("{LAYERS}{layers}</layers><edges>\n{EDGES}{edges}</edges></net>");
    let text = text.replace("WIDTH", &width.to_string());
    // 0 as `axis`, and 2.0.
    let weights = [0, 0, 0, 0, 0, 0, 0, 64].to_vec();
    core.read_model_from_memory(text.as_bytes(), weights)
        .unwrap()
}
