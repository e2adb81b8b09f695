//! A model for the examples in the documentation.

/// `GatherElements` along axis 0 of a 2×2 tensor.
pub const GATHER: &str = r#"<?xml version="1.0"?>
<net name="gather" version="11">
	<layers>
		<layer id="0" name="data" type="Parameter" version="opset1">
			<data shape="2,2" element_type="f32" />
			<output><port id="0" precision="FP32"><dim>2</dim><dim>2</dim></port></output>
		</layer>
		<layer id="1" name="indices" type="Parameter" version="opset1">
			<data shape="?,2" element_type="i32" />
			<output><port id="0" precision="I32"><dim>-1</dim><dim>2</dim></port></output>
		</layer>
		<layer id="2" name="gathered" type="GatherElements" version="opset6">
			<data axis="0" />
			<input>
				<port id="0" precision="FP32"><dim>2</dim><dim>2</dim></port>
				<port id="1" precision="I32"><dim>-1</dim><dim>2</dim></port>
			</input>
			<output><port id="2" precision="FP32"><dim>-1</dim><dim>2</dim></port></output>
		</layer>
		<layer id="3" name="out" type="Result" version="opset1">
			<input><port id="0" precision="FP32"><dim>-1</dim><dim>2</dim></port></input>
		</layer>
	</layers>
	<edges>
		<edge from-layer="0" from-port="0" to-layer="2" to-port="0" />
		<edge from-layer="1" from-port="0" to-layer="2" to-port="1" />
		<edge from-layer="2" from-port="2" to-layer="3" to-port="0" />
	</edges>
</net>
"#;
