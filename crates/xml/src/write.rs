//! From a [`Document`] to text.

use std::fmt::{self, Display, Write};

use crate::document::{Body, Document, Edge, Element, Layer, MappedPort, Port, PortMap};
use crate::names;
use crate::tree::{is_name, is_name_char};

/// The text of an `.xml` file, laid out as OpenVINO lays it out.
///
/// Characters that XML or the format cannot express are lost: NUL becomes U+FFFD, a character that no name of a
/// tag or attribute may have becomes `_`, an attribute given twice is refused when it is read, and
/// in a list of tensor names an empty name is dropped and one that ends in `\` runs into the next.
pub fn write(document: &Document) -> String {
    let mut out = Writer {
        text: String::from("<?xml version=\"1.0\"?>\n"),
        depth: 0,
    };
    let head: [(&str, &dyn Display); 2] =
        [("name", &document.name), ("version", &document.version)];
    out.parent("net", &head, |out| {
        out.body(&document.layers, &document.edges);
        out.optional(document.pre_process.as_ref());
        out.optional(document.rt_info.as_ref());
    });
    out.text
}

struct Writer {
    text: String,
    depth: usize,
}

type Attributes<'a> = &'a [(&'a str, &'a dyn Display)];

impl Writer {
    fn body(&mut self, layers: &[Layer], edges: &[Edge]) {
        self.parent("layers", &[], |out| {
            layers.iter().for_each(|layer| out.layer(layer))
        });
        self.parent("edges", &[], |out| {
            for Edge {
                from_layer,
                from_port,
                to_layer,
                to_port,
            } in edges
            {
                out.empty(
                    "edge",
                    &[
                        ("from-layer", from_layer),
                        ("from-port", from_port),
                        ("to-layer", to_layer),
                        ("to-port", to_port),
                    ],
                );
            }
        });
    }

    fn layer(&mut self, layer: &Layer) {
        let output_names = names::join(&layer.output_names);
        let head: [(&str, &dyn Display); 5] = [
            ("id", &layer.id),
            ("name", &layer.name),
            ("type", &layer.type_),
            ("version", &layer.version),
            ("output_names", &output_names),
        ];
        let head = if output_names.is_empty() {
            &head[..4]
        } else {
            &head[..]
        };
        self.parent("layer", head, |out| {
            if !layer.data.is_empty() {
                let data: Vec<(&str, &dyn Display)> = layer
                    .data
                    .iter()
                    .map(|(name, value)| (name.as_str(), value as _))
                    .collect();
                out.empty("data", &data);
            }
            out.optional(layer.rt_info.as_ref());
            for (kind, map) in &layer.port_maps {
                out.parent(kind.port_map_element(), &[], |out| out.port_map(map));
            }
            if !layer.back_edges.is_empty() {
                out.parent("back_edges", &[], |out| {
                    for edge in &layer.back_edges {
                        let ends: Attributes = &[
                            ("from-layer", &edge.from_layer),
                            ("to-layer", &edge.to_layer),
                        ];
                        out.empty("edge", ends);
                    }
                });
            }
            out.ports("input", &layer.inputs);
            out.ports("output", &layer.outputs);
            for (
                kind,
                Body {
                    layers,
                    edges,
                    rt_info,
                },
            ) in &layer.bodies
            {
                out.parent(kind.element(), &[], |out| {
                    out.body(layers, edges);
                    out.optional(rt_info.as_ref());
                });
            }
        });
    }

    fn ports(&mut self, name: &str, ports: &[Port]) {
        if ports.is_empty() {
            return;
        }
        self.parent(name, &[], |out| {
            for port in ports {
                let names = names::join(&port.names);
                let mut head: Vec<(&str, &dyn Display)> = vec![("id", &port.id)];
                head.extend(port.precision.as_ref().map(|p| ("precision", p as _)));
                if !names.is_empty() {
                    head.push(("names", &names));
                }
                out.parent("port", &head, |out| {
                    port.dims
                        .iter()
                        .for_each(|dim| out.leaf("dim", &[], &dim.to_string()));
                    out.optional(port.rt_info.as_ref());
                });
            }
        });
    }

    fn port_map(&mut self, map: &PortMap) {
        let kinds = [("input", &map.inputs), ("output", &map.outputs)];
        for (name, port) in kinds
            .into_iter()
            .flat_map(|(name, all)| all.iter().map(move |p| (name, p)))
        {
            let MappedPort {
                external_port_id,
                internal_layer_id,
                ..
            } = port;
            let mut head: Vec<(&str, &dyn Display)> = Vec::new();
            head.extend(port.axis.as_ref().map(|n| ("axis", n as _)));
            head.push(("external_port_id", external_port_id));
            head.push(("internal_layer_id", internal_layer_id));
            let rest = [
                ("start", &port.start),
                ("end", &port.end),
                ("stride", &port.stride),
                ("part_size", &port.part_size),
            ];
            for (name, value) in rest {
                head.extend(value.as_ref().map(|n| (name, n as _)));
            }
            head.extend(port.purpose.as_ref().map(|p| ("purpose", p as _)));
            self.empty(name, &head);
        }
    }

    fn optional(&mut self, element: Option<&Element>) {
        if let Some(element) = element {
            self.element(element);
        }
    }

    fn element(&mut self, element: &Element) {
        let attributes: Vec<(&str, &dyn Display)> = element
            .attributes
            .iter()
            .map(|(name, value)| (name.as_str(), value as _))
            .collect();
        if element.children.is_empty() && !element.text.is_empty() {
            return self.leaf(&element.name, &attributes, &element.text);
        }
        self.parent(&element.name, &attributes, |out| {
            if !element.text.is_empty() {
                out.indent();
                out.content(&element.text);
                out.text.push('\n');
            }
            element.children.iter().for_each(|child| out.element(child));
        });
    }

    /// `<name attributes>`, what `children` writes, `</name>`; or `<name />` if that is nothing.
    fn parent(&mut self, name: &str, attributes: Attributes, children: impl FnOnce(&mut Writer)) {
        self.start(name, attributes);
        self.text.push_str(">\n");
        let before = self.text.len();
        self.depth += 1;
        children(self);
        self.depth -= 1;
        if self.text.len() == before {
            self.text.truncate(before - ">\n".len());
            self.text.push_str(" />\n");
            return;
        }
        self.indent();
        self.end(name);
    }

    fn empty(&mut self, name: &str, attributes: Attributes) {
        self.parent(name, attributes, |_| {});
    }

    fn leaf(&mut self, name: &str, attributes: Attributes, content: &str) {
        self.start(name, attributes);
        self.text.push('>');
        self.content(content);
        self.end(name);
    }

    fn start(&mut self, name: &str, attributes: Attributes) {
        self.indent();
        self.text.push('<');
        self.name(name);
        for (name, value) in attributes {
            self.text.push(' ');
            self.name(name);
            self.text.push_str("=\"");
            self.escaped(value);
            self.text.push('"');
        }
    }

    fn end(&mut self, name: &str) {
        self.text.push_str("</");
        self.name(name);
        self.text.push_str(">\n");
    }

    fn indent(&mut self) {
        self.text.extend(std::iter::repeat_n('\t', self.depth));
    }

    fn name(&mut self, name: &str) {
        match is_name(name) {
            true => self.text.push_str(name),
            false if name.is_empty() => self.text.push('_'),
            false => self
                .text
                .extend(name.chars().map(|c| if is_name_char(c) { c } else { '_' })),
        }
    }

    /// The text of an element. Spaces at its ends are escaped, or they would be layout.
    fn content(&mut self, content: &str) {
        let inner = content.trim_matches(' ');
        let leading = content.len() - content.trim_start_matches(' ').len();
        let trailing = content.len() - inner.len() - leading;
        self.text.extend(std::iter::repeat_n("&#32;", leading));
        self.escaped(inner);
        self.text.extend(std::iter::repeat_n("&#32;", trailing));
    }

    fn escaped(&mut self, value: impl Display) {
        // Writing to a string does not fail.
        let _: fmt::Result = write!(Escaper(&mut self.text), "{value}");
    }
}

/// Escapes all that is written through it.
struct Escaper<'a>(&'a mut String);

impl Write for Escaper<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '"' => self.0.push_str("&quot;"),
                // Text may not hold `]]>`.
                '>' if self.0.ends_with("]]") => self.0.push_str("&gt;"),
                '\0' => self.0.push(char::REPLACEMENT_CHARACTER),
                c if c.is_ascii_control() => write!(self.0, "&#{:02};", c as u32)?,
                c => self.0.push(c),
            }
        }
        Ok(())
    }
}
