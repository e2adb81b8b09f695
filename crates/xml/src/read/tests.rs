//! Whole documents and files.

mod errors;
mod random;

use super::*;
use crate::document::{BackEdge, Edge};
use crate::write;

/// Everything that the format has, laid out as OpenVINO does.
const FULL: &str = r#"<?xml version="1.0"?>
<net name="a &quot;&lt;>&amp;'" version="11">
	<layers>
		<layer id="0" name="x" type="Parameter" version="opset1">
			<data shape="?,3,1..7" element_type="f32" />
			<rt_info>
				<attribute name="old_api_map_element_type" version="0" value="f16" />
			</rt_info>
			<output>
				<port id="0" precision="FP32" names="x,a\,b,C:\d">
					<dim>-1</dim>
					<dim>3</dim>
					<rt_info>
						<attribute name="layout" version="0" layout="[N,C]" />
					</rt_info>
				</port>
			</output>
		</layer>
		<layer id="7" name="loop&#10;" type="Loop" version="opset5">
			<port_map>
				<input external_port_id="0" internal_layer_id="1" />
				<input axis="-1" external_port_id="2" internal_layer_id="0" start="0" end="-1" stride="1" part_size="1" />
				<input external_port_id="-1" internal_layer_id="4" purpose="current_iteration" />
				<output external_port_id="3" internal_layer_id="9" />
			</port_map>
			<back_edges>
				<edge from-layer="9" to-layer="1" />
			</back_edges>
			<input>
				<port id="0" />
			</input>
			<body>
				<layers>
					<layer id="9" name="" type="Result" version="opset1" output_names="y" />
				</layers>
				<edges />
				<rt_info />
			</body>
		</layer>
		<layer id="8" name="if" type="If" version="opset8">
			<else_port_map>
				<output external_port_id="1" internal_layer_id="1" />
			</else_port_map>
			<then_port_map />
			<then_body>
				<layers />
				<edges />
			</then_body>
			<else_body>
				<layers />
				<edges />
			</else_body>
		</layer>
	</layers>
	<edges>
		<edge from-layer="0" from-port="0" to-layer="7" to-port="2" />
	</edges>
	<rt_info>
		<info name="OpenVINO Runtime" value="2026.4" />
		<note>a  &lt; b</note>
	</rt_info>
</net>
"#;

fn error(text: impl AsRef<[u8]>) -> String {
    read(text.as_ref()).unwrap_err().to_string()
}

#[test]
fn a_full_document() {
    let document = read(FULL.as_bytes()).unwrap();
    assert_eq!((document.name.as_str(), document.version), ("a \"<>&'", 11));
    let [x, l, i] = document.layers.as_slice() else {
        panic!("{document:#?}")
    };
    assert_eq!(
        (x.id, x.name.as_str(), x.type_.as_str(), x.version.as_str()),
        (0, "x", "Parameter", "opset1")
    );
    assert_eq!(
        (x.attribute("shape"), x.attribute("size")),
        (Some("?,3,1..7"), None)
    );
    assert_eq!(x.outputs[0].names, ["x", "a,b", r"C:\d"]);
    assert_eq!(x.outputs[0].dims, [-1, 3]);
    assert_eq!(x.outputs[0].precision.as_deref(), Some("FP32"));
    let attribute = x.rt_info.as_ref().unwrap().child("attribute").unwrap();
    assert_eq!(attribute.attribute("value"), Some("f16"));

    assert_eq!(l.name, "loop\n");
    assert_eq!(l.inputs, [Port::default()]);
    let map = l.port_map(BodyKind::Body).unwrap();
    assert_eq!(map.inputs[1].axis, Some(-1));
    assert_eq!(map.inputs[1].part_size, Some(1));
    assert_eq!(map.inputs[2].external_port_id, -1);
    assert_eq!(map.inputs[2].purpose.as_deref(), Some("current_iteration"));
    assert_eq!(map.outputs[0].internal_layer_id, 9);
    assert_eq!(
        l.back_edges,
        [BackEdge {
            from_layer: 9,
            to_layer: 1
        }]
    );
    assert_eq!(
        l.body(BodyKind::Body).unwrap().layers[0].output_names,
        ["y"]
    );

    assert!(i.body(BodyKind::Then).is_some() && i.body(BodyKind::Body).is_none());
    assert_eq!(
        document.edges,
        [Edge {
            from_layer: 0,
            from_port: 0,
            to_layer: 7,
            to_port: 2
        }]
    );
    assert_eq!(
        document.rt_info.as_ref().unwrap().children[1].text,
        "a  < b"
    );
    assert_eq!(write(&document), FULL);
}

#[test]
fn other_layouts_of_the_same() {
    let document = read(b"<net version='10'><layers/></net>").unwrap();
    let same = "\u{feff}<?xml version='1.0' encoding='utf-8' ?>\r\n<!-- a --><?pi?>\n<net version = \"10\"\n name=''>\
                text<unknown><layers/></unknown><layers ></layers ><edges>\n</edges></net>\n<!-- b -->";
    assert_eq!(read(same.as_bytes()).unwrap(), document);

    let text = "<net version='10'><pre-process mean-precision='FP32'><channel id='0'><mean value='1.5'/></channel>\
                </pre-process><layers><layer id='1' name='a\tb&#9;&#x1F642;' type='t' version='v' more='m'>\
                <output><port id='&#48;'><dim> <![CDATA[1]]>2&#51; </dim></port></output></layer></layers></net>";
    let document = read(text.as_bytes()).unwrap();
    assert_eq!(document.layers[0].name, "a b\t🙂");
    assert_eq!(document.layers[0].outputs[0].dims, [123]);
    let mean = document.pre_process.unwrap().children[0].children[0].clone();
    assert_eq!(mean.attribute("value"), Some("1.5"));
}

#[test]
fn files() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.xml");
    let missing = read_file(&path).unwrap_err().to_string();
    assert_eq!(
        missing,
        format!(
            "cannot read `{}`: No such file or directory (os error 2)",
            path.display()
        )
    );
    std::fs::write(&path, FULL).unwrap();
    assert_eq!(read_file(&path).unwrap(), read(FULL.as_bytes()).unwrap());
    std::fs::write(&path, "<net>\n</nit>").unwrap();
    assert_eq!(
        read_file(&path).unwrap_err().to_string(),
        format!(
            "{}:2:1: ill-formed document: expected `</net>`, but `</nit>` was found",
            path.display()
        )
    );
}
