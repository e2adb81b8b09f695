//! Random documents are read back as they were written; random bytes are no panic.

use super::*;
use crate::document::{BackEdge, Edge};
use crate::write;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

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
