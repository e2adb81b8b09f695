use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::document::{BackEdge, Edge};
use crate::tree::{MAX_ATTRIBUTES, MAX_DEPTH};
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
fn errors_say_what_and_where() {
    let layer = |inner: &str| format!("<net version='11'>\n<layers>\n  é{inner}</layers></net>");
    let full = |inner: &str| {
        layer(&format!(
            "<layer id='0' name='' type='' version=''>{inner}</layer>"
        ))
    };
    for (text, message) in [
        // No XML.
        (
            String::new(),
            "1:1: expected `<net>`, found the end of the text",
        ),
        (
            "<net".into(),
            "1:1: syntax error: tag not closed: `>` not found before end of input",
        ),
        (
            "<net version='11'>\n<layers>".into(),
            "2:1: `<layers>` is not closed",
        ),
        (
            "<net></nit>".into(),
            "1:6: ill-formed document: expected `</net>`, but `</nit>` was found",
        ),
        (
            "</net>".into(),
            "1:1: ill-formed document: close tag `</net>` does not match any open tag",
        ),
        (
            "<net a='1' b='2' a='3'/>".into(),
            "1:18: attribute `a` is given twice",
        ),
        (
            "<net a/>".into(),
            "1:7: expected `=` after the name of an attribute",
        ),
        (
            "<net a= />".into(),
            "1:9: expected a quoted value after `=`",
        ),
        (
            "<net a=1/>".into(),
            "1:8: expected a quoted value after `=`",
        ),
        (
            "<net a&='1'/>".into(),
            "1:6: `a&` is no name of an attribute",
        ),
        ("<n&t/>".into(), "1:1: `n&t` is no name of an element"),
        (
            "<net a='&x;'/>".into(),
            "1:6: attribute `a`: unknown entity `&x;`",
        ),
        (
            "<net a='&#0;'/>".into(),
            "1:6: attribute `a`: invalid character reference: 0x0 character is not permitted in XML",
        ),
        (
            "<net version='11'><layers/><rt_info>&x;</rt_info></net>".into(),
            "1:37: unknown entity `&x;`",
        ),
        (
            "<net version='11'><layers/></net>\nx".into(),
            "2:1: text outside of the root element",
        ),
        (
            "<net version='11'><layers/></net><net/>".into(),
            "1:34: a second root, `<net>`",
        ),
        ("<net>\0</net>".into(), "1:6: a NUL character"),
        (
            " <?xml version='1.0'?><net/>".into(),
            "1:2: the XML declaration is not at the start",
        ),
        (
            "<?xml version='1.0' encoding='latin1'?><net/>".into(),
            "1:1: expected encoding UTF-8, found `latin1`",
        ),
        (
            "<!DOCTYPE net><net/>".into(),
            "1:1: a DOCTYPE is not allowed",
        ),
        (
            "<!DOCTYPE n [<!ENTITY a \"aa\"><!ENTITY b \"&a;&a;\">]><net/>".into(),
            "1:1: a DOCTYPE is not allowed",
        ),
        // No IR.
        ("<html/>".into(), "1:1: expected `<net>`, found `<html>`"),
        (
            "<net/>".into(),
            "1:1: `<net>`: attribute `version` is missing",
        ),
        (
            "<net version='x'/>".into(),
            "1:6: attribute `version`: expected a 64-bit whole number of no sign, found `x`",
        ),
        (
            "<net version='11'/>".into(),
            "1:1: `<net>`: `<layers>` is missing",
        ),
        (
            "<net version='11'><layers/><layers/></net>".into(),
            "1:28: a second `<layers>`",
        ),
        (
            layer("<layer name='a'/>"),
            "3:4: `<layer>`: attribute `id` is missing",
        ),
        (
            layer("<layer id='-1'/>"),
            "3:11: attribute `id`: expected a 64-bit whole number of no sign, found `-1`",
        ),
        (
            layer("<layer id='99999999999999999999'/>"),
            "3:11: attribute `id`: expected a 64-bit whole number of no sign, found `99999999999999999999`",
        ),
        (
            layer("<layer id='+1'/>"),
            "3:11: attribute `id`: expected a 64-bit whole number of no sign, found `+1`",
        ),
        (
            full("<blobs/>"),
            "3:45: `<blobs>` is of a version before 10",
        ),
        (full("<data/><data/>"), "3:52: a second `<data>`"),
        (
            full("<body><layers/></body><body><layers/></body>"),
            "3:67: a second `<body>`",
        ),
        (full("<body/>"), "3:45: `<body>`: `<layers>` is missing"),
        (
            full("<input><port/></input>"),
            "3:52: `<port>`: attribute `id` is missing",
        ),
        (
            full("<input><port id='0'><dim>-2</dim></port></input>"),
            "3:65: `<dim>`: expected -1 or more, found -2",
        ),
        (
            full("<input><port id='0'><dim/></port></input>"),
            "3:65: `<dim>`: expected a 64-bit whole number, found ``",
        ),
        (
            full(
                "<port_map><input external_port_id='0' internal_layer_id='0' axis='x'/></port_map>",
            ),
            "3:105: attribute `axis`: expected a 64-bit whole number, found `x`",
        ),
    ] {
        assert_eq!(error(&text), message, "{text}");
    }
    assert_eq!(
        error(b"<net>\n\xff"),
        "2:1: expected encoding UTF-8, found another"
    );
    assert_eq!(
        error(b"\xff\xfe<\0"),
        "1:1: expected encoding UTF-8, found UTF-16"
    );
    let name = "x".repeat(1000);
    assert_eq!(
        error(format!("<net></{name}\u{1}>")).chars().count(),
        "1:6: ".len() + 200 + 1
    );
    let long = format!("<net version='{}\n'/>", "é".repeat(50));
    let cut = "é".repeat(40);
    assert_eq!(
        error(long),
        format!(
            "1:6: attribute `version`: expected a 64-bit whole number of no sign, found `{cut}…`"
        )
    );
}

#[test]
fn depth_and_attributes_are_limited() {
    let nested = |depth: usize| {
        let inside = "<a>".repeat(depth - 2) + &"</a>".repeat(depth - 2);
        format!("<net version='11'><layers/><rt_info>{inside}</rt_info></net>")
    };
    let deepest = read(nested(MAX_DEPTH).as_bytes()).unwrap();
    assert_eq!(read(write(&deepest).as_bytes()).unwrap(), deepest);
    let offset = 36 + 3 * (MAX_DEPTH - 2) + 1;
    assert_eq!(
        error(nested(MAX_DEPTH + 1)),
        format!("1:{offset}: elements nest deeper than 256")
    );
    assert!(error("<a>".repeat(1_000_000)).ends_with("elements nest deeper than 256"));

    let bodies = |count: usize| {
        let open = "<layers><layer id='0' name='' type='' version=''><body>".repeat(count);
        let close = "</body></layer></layers>".repeat(count);
        format!("<net version='11'>{open}<layers/>{close}</net>")
    };
    let deepest = read(bodies(84).as_bytes()).unwrap();
    assert_eq!(read(write(&deepest).as_bytes()).unwrap(), deepest);
    assert!(error(bodies(86)).ends_with("elements nest deeper than 256"));

    let attributes = |count: usize| {
        let all: String = (0..count).map(|i| format!(" a{i}=''")).collect();
        format!("<net version='11'{all}><layers/></net>")
    };
    assert!(read(attributes(MAX_ATTRIBUTES - 1).as_bytes()).is_ok());
    assert!(error(attributes(MAX_ATTRIBUTES)).ends_with("more than 1000 attributes"));
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

#[test]
fn truncation_is_an_error_at_every_byte() {
    let end = FULL.trim_end().len();
    for end in 0..end {
        assert!(read(&FULL.as_bytes()[..end]).is_err(), "{end}");
    }
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-z/_:.0-9]{0,6}", 1 => "[^\0]{0,8}", 1 => "[ \t\r\n&<>'\"\\],\\\\\u{1}]{0,5}"]
}

/// The names of tensors that a list can express.
fn names() -> impl Strategy<Value = Vec<String>> {
    let name = text().prop_map(|name| format!("{name}."));
    vec(name, 0..3)
}

fn attributes() -> impl Strategy<Value = Vec<(String, String)>> {
    vec(("[a-z_:][a-z0-9.-]{0,4}", text()), 0..4).prop_map(|mut all| {
        all.sort();
        all.dedup_by(|a, b| a.0 == b.0);
        all.reverse();
        all
    })
}

fn any_element() -> impl Strategy<Value = Element> {
    let leaf = |children| {
        ("[A-Za-z_]{1,5}", attributes(), text(), children).prop_map(
            |(name, attributes, text, children)| Element {
                name,
                attributes,
                text,
                children,
            },
        )
    };
    leaf(Just(Vec::new()).boxed())
        .prop_recursive(3, 8, 3, move |inner| leaf(vec(inner, 0..3).boxed()))
}

fn rt_info() -> impl Strategy<Value = Option<Element>> {
    option::of(any_element().prop_map(|element| Element {
        name: "rt_info".to_owned(),
        ..element
    }))
}

fn any_port() -> impl Strategy<Value = Port> {
    (
        any::<u64>(),
        option::of(text()),
        vec(-1..i64::MAX, 0..3),
        names(),
        rt_info(),
    )
        .prop_map(|(id, precision, dims, names, rt_info)| Port {
            id,
            precision,
            dims,
            names,
            rt_info,
        })
}

fn mapped_port() -> impl Strategy<Value = MappedPort> {
    let number = || option::of(any::<i64>());
    let ids = (any::<i64>(), any::<u64>());
    (
        ids,
        number(),
        number(),
        number(),
        number(),
        number(),
        option::of(text()),
    )
        .prop_map(
            |(
                (external_port_id, internal_layer_id),
                axis,
                start,
                end,
                stride,
                part_size,
                purpose,
            )| {
                MappedPort {
                    external_port_id,
                    internal_layer_id,
                    axis,
                    start,
                    end,
                    stride,
                    part_size,
                    purpose,
                }
            },
        )
}

fn of_kinds<T: std::fmt::Debug>(
    value: impl Strategy<Value = T> + Clone + 'static,
) -> impl Strategy<Value = Vec<(BodyKind, T)>> {
    (
        option::of(value.clone()),
        option::of(value.clone()),
        option::of(value),
    )
        .prop_map(|(a, b, c)| {
            let all = [
                (BodyKind::Else, a),
                (BodyKind::Then, b),
                (BodyKind::Body, c),
            ];
            all.into_iter()
                .filter_map(|(kind, value)| Some((kind, value?)))
                .collect()
        })
}

fn edges() -> impl Strategy<Value = Vec<Edge>> {
    let edge = any::<[u64; 4]>().prop_map(|[from_layer, from_port, to_layer, to_port]| Edge {
        from_layer,
        from_port,
        to_layer,
        to_port,
    });
    vec(edge, 0..3)
}

fn any_layer(bodies: BoxedStrategy<Vec<(BodyKind, Body)>>) -> impl Strategy<Value = Layer> {
    let map = (vec(mapped_port(), 0..3), vec(mapped_port(), 0..2));
    let map = map.prop_map(|(inputs, outputs)| PortMap { inputs, outputs });
    let back_edge = any::<(u64, u64)>().prop_map(|(from_layer, to_layer)| BackEdge {
        from_layer,
        to_layer,
    });
    (
        (any::<u64>(), text(), text(), text()),
        (names(), attributes(), rt_info()),
        (of_kinds(map.boxed()), vec(back_edge, 0..2)),
        (vec(any_port(), 0..3), vec(any_port(), 0..3)),
        bodies,
    )
        .prop_map(|(head, info, maps, ports, bodies)| Layer {
            id: head.0,
            name: head.1,
            type_: head.2,
            version: head.3,
            output_names: info.0,
            data: info.1,
            rt_info: info.2,
            port_maps: maps.0,
            back_edges: maps.1,
            inputs: ports.0,
            outputs: ports.1,
            bodies,
        })
}

fn any_body() -> impl Strategy<Value = Body> {
    let of_layers = |bodies| {
        (vec(any_layer(bodies), 0..3), edges(), rt_info()).prop_map(|(layers, edges, rt_info)| {
            Body {
                layers,
                edges,
                rt_info,
            }
        })
    };
    of_layers(Just(Vec::new()).boxed())
        .prop_recursive(2, 8, 3, move |inner| of_layers(of_kinds(inner).boxed()))
}

fn any_document() -> impl Strategy<Value = Document> {
    let pre_process = any_element().prop_map(|e| Element {
        name: "pre-process".to_owned(),
        ..e
    });
    (text(), any::<u64>(), option::of(pre_process), any_body()).prop_map(
        |(
            name,
            version,
            pre_process,
            Body {
                layers,
                edges,
                rt_info,
            },
        )| {
            Document {
                name,
                version,
                pre_process,
                layers,
                edges,
                rt_info,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_back(document in any_document()) {
        let text = write(&document);
        let again = read(text.as_bytes());
        prop_assert_eq!(again.map_err(|e| format!("{e}\n{text}")), Ok(document));
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(bytes: Vec<u8>) {
        let _ = read(&bytes);
    }

    #[test]
    fn mutated_documents_do_not_panic(edits in vec((0..FULL.len(), 0..12usize, "[<>&'\"=/!\\[\\]\\-? a-z0-9;#\r\n]{0,6}"), 1..4)) {
        let mut bytes = FULL.as_bytes().to_vec();
        for (start, len, replacement) in edits {
            let start = start.min(bytes.len());
            let end = (start + len).min(bytes.len());
            bytes.splice(start..end, replacement.bytes());
        }
        if let Ok(document) = read(&bytes) {
            let again = read(write(&document).as_bytes());
            prop_assert_eq!(again.map_err(|e| e.to_string()), Ok(document));
        }
    }
}
