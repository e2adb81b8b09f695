//! From text to a [`Document`].

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;

use crate::attributes::{self, number};
use crate::document::{Body, BodyKind, Document, Element, Layer, MappedPort, Port, PortMap};
use crate::error::{Error, Fault, excerpt};
use crate::names;
use crate::tree::{Item, MAX_TEXT, Tree};

/// Reads the text of an `.xml` file, which must be UTF-8.
pub fn read(text: &[u8]) -> Result<Document, Error> {
    if text.len() > MAX_TEXT {
        return Err(Error::TooLong {
            len: text.len() as u64,
            max: MAX_TEXT as u64,
        });
    }
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    read_faulty(text).map_err(|fault| fault.into_error(text))
}

/// Reads an `.xml` file. Errors name it.
pub fn read_file(path: impl AsRef<Path>) -> Result<Document, Error> {
    let path = path.as_ref();
    let mut text = Vec::new();
    // One more than may be, so that a longer file is found out without being read.
    let file = File::open(path).map(|file| file.take(MAX_TEXT as u64 + 1));
    file.and_then(|mut file| file.read_to_end(&mut text))
        .map_err(|source| Error::Io {
            path: path.into(),
            source,
        })?;
    read(&text).map_err(|source| Error::File {
        path: path.into(),
        source: Box::new(source),
    })
}

fn read_faulty(text: &[u8]) -> Result<Document, Fault> {
    if text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff") {
        return Err(Fault::new(0, "expected encoding UTF-8, found UTF-16"));
    }
    let text = std::str::from_utf8(text)
        .map_err(|e| Fault::new(e.valid_up_to(), "expected encoding UTF-8, found another"))?;
    let tree = Tree::parse(text)?;
    match tree.root() {
        Some(root) if root.name() == "net" => net(root),
        Some(root) => Err(root.fault(format!(
            "expected `<net>`, found `<{}>`",
            excerpt(root.name())
        ))),
        None => Err(Fault::new(
            text.len(),
            "expected `<net>`, found the end of the text",
        )),
    }
}

fn net(item: Item) -> Result<Document, Fault> {
    #[derive(Deserialize)]
    struct Attributes {
        #[serde(default)]
        name: String,
        version: u64,
    }
    let Attributes { name, version } = attributes::read(item)?;
    let mut pre_process = None;
    for child in item
        .children()
        .filter(|child| child.name() == "pre-process")
    {
        once(&mut pre_process, child, element)?;
    }
    let Body {
        layers,
        edges,
        rt_info,
    } = body(item)?;
    Ok(Document {
        name,
        version,
        pre_process,
        layers,
        edges,
        rt_info,
    })
}

/// The common part of `<net>` and `<body>`.
fn body(item: Item) -> Result<Body, Fault> {
    let (mut layers, mut edges, mut rt_info) = (None, None, None);
    for child in item.children() {
        match child.name() {
            "layers" => once(&mut layers, child, |item| each(item, "layer", layer))?,
            "edges" => once(&mut edges, child, |item| {
                each(item, "edge", attributes::read)
            })?,
            "rt_info" => once(&mut rt_info, child, element)?,
            _ => {}
        }
    }
    let missing = || item.fault(format!("`<{}>`: `<layers>` is missing", item.name()));
    Ok(Body {
        layers: layers.ok_or_else(missing)?,
        edges: edges.unwrap_or_default(),
        rt_info,
    })
}

fn layer(item: Item) -> Result<Layer, Fault> {
    #[derive(Deserialize)]
    struct Attributes {
        id: u64,
        name: String,
        r#type: String,
        version: String,
        #[serde(default)]
        output_names: String,
    }
    let Attributes {
        id,
        name,
        r#type,
        version,
        output_names,
    } = attributes::read(item)?;
    let output_names = names::split(&output_names);
    let mut layer = Layer {
        id,
        name,
        type_: r#type,
        version,
        output_names,
        ..Layer::default()
    };

    let (mut data, mut inputs, mut outputs, mut back_edges) = (None, None, None, None);
    for child in item.children() {
        let name = child.name();
        let body_kind = BodyKind::ALL
            .into_iter()
            .find(|kind| kind.element() == name);
        let map_kind = BodyKind::ALL
            .into_iter()
            .find(|kind| kind.port_map_element() == name);
        match (name, body_kind, map_kind) {
            ("data", ..) => once(&mut data, child, |item| Ok(owned_attributes(item)))?,
            ("rt_info", ..) => once(&mut layer.rt_info, child, element)?,
            ("input", ..) => once(&mut inputs, child, |item| each(item, "port", port))?,
            ("output", ..) => once(&mut outputs, child, |item| each(item, "port", port))?,
            ("back_edges", ..) => {
                once(&mut back_edges, child, |item| {
                    each(item, "edge", attributes::read)
                })?;
            }
            (_, Some(kind), _) => once_of(&mut layer.bodies, kind, child, body)?,
            (_, _, Some(kind)) => once_of(&mut layer.port_maps, kind, child, port_map)?,
            ("blobs" | "weights" | "biases", ..) => {
                return Err(child.fault(format!("`<{name}>` is of a version before 10")));
            }
            _ => {}
        }
    }
    layer.data = data.unwrap_or_default();
    layer.inputs = inputs.unwrap_or_default();
    layer.outputs = outputs.unwrap_or_default();
    layer.back_edges = back_edges.unwrap_or_default();
    Ok(layer)
}

fn port(item: Item) -> Result<Port, Fault> {
    #[derive(Deserialize)]
    struct Attributes {
        id: u64,
        precision: Option<String>,
        #[serde(default)]
        names: String,
    }
    let Attributes {
        id,
        precision,
        names,
    } = attributes::read(item)?;
    let mut rt_info = None;
    for child in item.children().filter(|child| child.name() == "rt_info") {
        once(&mut rt_info, child, element)?;
    }
    let dims = each(item, "dim", |dim| match number::<i64>(dim.content()) {
        Ok(extent @ -1..) => Ok(extent),
        Ok(extent) => Err(dim.fault(format!("`<dim>`: expected -1 or more, found {extent}"))),
        Err(message) => Err(dim.fault(format!("`<dim>`: {message}"))),
    })?;
    Ok(Port {
        id,
        precision,
        dims,
        names: names::split(&names),
        rt_info,
    })
}

fn port_map(item: Item) -> Result<PortMap, Fault> {
    let ports = |name| each(item, name, attributes::read::<MappedPort>);
    Ok(PortMap {
        inputs: ports("input")?,
        outputs: ports("output")?,
    })
}

/// Keeps an element as it is. It recurses, but no deeper than [`MAX_DEPTH`](crate::MAX_DEPTH).
fn element(item: Item) -> Result<Element, Fault> {
    Ok(Element {
        name: item.name().to_owned(),
        attributes: owned_attributes(item),
        text: item.content().to_owned(),
        children: item.children().map(element).collect::<Result<_, _>>()?,
    })
}

fn owned_attributes(item: Item) -> Vec<(String, String)> {
    let owned = |a: &crate::tree::Attribute| (a.name.to_owned(), a.value.clone().into_owned());
    item.attributes().iter().map(owned).collect()
}

/// The result of `read` for each child of that name.
fn each<T>(
    item: Item,
    name: &str,
    read: impl Fn(Item) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    item.children()
        .filter(|child| child.name() == name)
        .map(read)
        .collect()
}

/// Fills `slot` with what `read` makes of an element that may be there only once.
fn once<T>(
    slot: &mut Option<T>,
    item: Item,
    read: impl FnOnce(Item) -> Result<T, Fault>,
) -> Result<(), Fault> {
    if slot.is_some() {
        return Err(item.fault(format!("a second `<{}>`", item.name())));
    }
    *slot = Some(read(item)?);
    Ok(())
}

/// As [`once`], for elements of which there is one of each kind.
fn once_of<T>(
    all: &mut Vec<(BodyKind, T)>,
    kind: BodyKind,
    item: Item,
    read: impl FnOnce(Item) -> Result<T, Fault>,
) -> Result<(), Fault> {
    let mut slot = None;
    once(&mut slot, item, read)?;
    if all.iter().any(|(k, _)| *k == kind) {
        return Err(item.fault(format!("a second `<{}>`", item.name())));
    }
    all.extend(slot.map(|value| (kind, value)));
    Ok(())
}

#[cfg(test)]
mod tests;
