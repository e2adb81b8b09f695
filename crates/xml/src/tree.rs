//! XML text as a tree of elements, in one array: neither making nor dropping it recurses.

use std::borrow::Cow;

use quick_xml::escape::{EscapeError, resolve_predefined_entity};
use quick_xml::events::attributes::{AttrError, Attributes};
use quick_xml::events::{BytesDecl, Event};
use quick_xml::{Reader, XmlVersion};

use crate::error::{Fault, excerpt, excerpt_of};

/// The longest text that is read, in bytes. Offsets in it fit a `u32`.
pub const MAX_TEXT: usize = 1 << 30;
/// How deep elements may nest. A body within a body takes three.
pub const MAX_DEPTH: usize = 256;
/// How many elements and attributes there may be together; a model of ten thousand layers has some
/// hundred thousand.
pub const MAX_ITEMS: usize = 1 << 25;
/// How many attributes an element may have.
pub const MAX_ATTRIBUTES: usize = 1000;

#[derive(Debug)]
pub(crate) struct Tree<'a> {
    /// In the order of the text: an element's children follow it.
    nodes: Vec<Node<'a>>,
    /// Of all the elements, in the order of the text.
    attributes: Vec<Attribute<'a>>,
}

#[derive(Debug)]
struct Node<'a> {
    name: &'a str,
    /// Of its `<` in the text.
    offset: u32,
    first_attribute: u32,
    /// The index after that of its last descendant.
    end: u32,
    content: Cow<'a, str>,
}

#[derive(Debug)]
pub(crate) struct Attribute<'a> {
    pub(crate) name: &'a str,
    pub(crate) value: Cow<'a, str>,
    offset: u32,
}

impl Attribute<'_> {
    pub(crate) fn fault(&self, message: impl Into<String>) -> Fault {
        Fault::new(self.offset as usize, message)
    }
}

/// An element of a tree.
#[derive(Clone, Copy)]
pub(crate) struct Item<'t, 'a> {
    tree: &'t Tree<'a>,
    node: &'t Node<'a>,
    index: usize,
}

impl<'a> Tree<'a> {
    /// Reads the elements of a text of at most [`MAX_TEXT`] bytes, which starts with no byte order
    /// mark.
    pub(crate) fn parse(text: &'a str) -> Result<Tree<'a>, Fault> {
        if let Some(offset) = text.find('\0') {
            return Err(Fault::new(offset, "a NUL character"));
        }
        let mut builder = Builder {
            text,
            tree: Tree::with_room_for(text),
            open: Vec::new(),
        };
        let mut reader = Reader::from_str(text);
        loop {
            let start = reader.buffer_position() as usize;
            match reader.read_event() {
                Ok(Event::Eof) => return builder.finish(),
                Ok(event) => builder.add(start, event)?,
                Err(error) => {
                    let message = excerpt_of(&error.to_string(), 200);
                    return Err(Fault::new(reader.error_position() as usize, message));
                }
            }
        }
    }

    /// A tree with room for about what the text has, so that it need not be moved as it grows: memory that is asked for
    /// and not used costs nothing.
    fn with_room_for(text: &str) -> Tree<'a> {
        // OpenVINO writes an element for each 34 bytes or more, and an attribute for each 26; with more of them it grows.
        const BYTES_PER_NODE: usize = 32;
        const BYTES_PER_ATTRIBUTE: usize = 24;
        const MOST: usize = 1 << 18;
        Tree {
            nodes: Vec::with_capacity((text.len() / BYTES_PER_NODE).min(MOST)),
            attributes: Vec::with_capacity((text.len() / BYTES_PER_ATTRIBUTE).min(MOST)),
        }
    }

    pub(crate) fn root(&self) -> Option<Item<'_, 'a>> {
        self.item(0)
    }

    fn item(&self, index: usize) -> Option<Item<'_, 'a>> {
        self.nodes.get(index).map(|node| Item {
            tree: self,
            node,
            index,
        })
    }
}

impl<'t, 'a> Item<'t, 'a> {
    pub(crate) fn name(self) -> &'a str {
        self.node.name
    }

    /// The text in the element, without white space around it.
    pub(crate) fn content(self) -> &'t str {
        &self.node.content
    }

    pub(crate) fn attributes(self) -> &'t [Attribute<'a>] {
        let nodes = &self.tree.nodes;
        let all = &self.tree.attributes;
        let end = nodes
            .get(self.index + 1)
            .map_or(all.len(), |next| next.first_attribute as usize);
        all.get(self.node.first_attribute as usize..end)
            .unwrap_or_default()
    }

    pub(crate) fn children(self) -> impl Iterator<Item = Item<'t, 'a>> {
        let end = self.node.end as usize;
        let child_at = move |index| self.tree.item(index).filter(|_| index < end);
        std::iter::successors(child_at(self.index + 1), move |child| {
            child_at(child.node.end as usize)
        })
    }

    pub(crate) fn fault(self, message: impl Into<String>) -> Fault {
        Fault::new(self.node.offset as usize, message)
    }
}

/// Whether a tag or attribute may have this name. XML allows less, but all of these are read back
/// as they are written.
pub(crate) fn is_name(name: &str) -> bool {
    // Apart, because almost all names are so, and there are hundreds of thousands in a large model.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !name.is_empty() && (name.bytes().all(is_plain) || name.chars().all(is_name_char))
}

pub(crate) fn is_name_char(c: char) -> bool {
    !c.is_ascii_whitespace() && !c.is_control() && !"<>&\"'/=?![]".contains(c)
}

struct Builder<'a> {
    text: &'a str,
    tree: Tree<'a>,
    open: Vec<Open>,
}

/// An element whose end tag has not been read yet.
struct Open {
    index: usize,
    /// White space read after its text, which belongs to the text if more follows.
    space: String,
}

impl<'a> Builder<'a> {
    fn add(&mut self, start: usize, event: Event<'a>) -> Result<(), Fault> {
        match event {
            Event::Start(tag) => self.open(start, tag.name().as_ref().len(), tag.len()),
            Event::Empty(tag) => {
                self.open(start, tag.name().as_ref().len(), tag.len())?;
                self.close()
            }
            // The reader has checked that it matches.
            Event::End(_) => self.close(),
            Event::Text(text) => self.text(start, text.xml10_content()),
            Event::CData(text) => self.literal(start, text.xml10_content()),
            Event::GeneralRef(reference) => match reference.resolve_char_ref() {
                Ok(Some(c)) => self.literal(start, Cow::Owned(c.into())),
                Ok(None) => match resolve_predefined_entity(&reference) {
                    Some(text) => self.literal(start, Cow::Borrowed(text)),
                    None => Err(Fault::new(start, unknown_entity(&reference))),
                },
                Err(error) => Err(Fault::new(start, escape_message(&error))),
            },
            Event::Decl(declaration) => check_declaration(start, &declaration),
            Event::DocType(_) => Err(Fault::new(start, "a DOCTYPE is not allowed")),
            Event::Comment(_) | Event::PI(_) | Event::Eof => Ok(()),
        }
    }

    /// Starts an element, from the text `<name attributes…`, of which the part after `<` is `len`
    /// bytes long.
    fn open(&mut self, start: usize, name_len: usize, len: usize) -> Result<(), Fault> {
        let tag = self
            .text
            .get(start + 1..start + 1 + len)
            .unwrap_or_default();
        let name = tag.get(..name_len).unwrap_or_default();
        if !is_name(name) {
            return Err(Fault::new(
                start,
                format!("`{}` is no name of an element", excerpt(name)),
            ));
        }
        if self.open.is_empty() && !self.tree.nodes.is_empty() {
            return Err(Fault::new(
                start,
                format!("a second root, `<{}>`", excerpt(name)),
            ));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(Fault::new(
                start,
                format!("elements nest deeper than {MAX_DEPTH}"),
            ));
        }
        let first_attribute = self.tree.attributes.len();
        self.attributes(start + 1, tag, name_len)?;
        let index = self.tree.nodes.len();
        if index + self.tree.attributes.len() >= MAX_ITEMS {
            return Err(Fault::new(
                start,
                format!("more than {MAX_ITEMS} elements and attributes"),
            ));
        }
        self.tree.nodes.push(Node {
            name,
            offset: start as u32,
            first_attribute: first_attribute as u32,
            end: index as u32 + 1,
            content: Cow::Borrowed(""),
        });
        self.open.push(Open {
            index,
            space: String::new(),
        });
        Ok(())
    }

    fn attributes(&mut self, start: usize, tag: &'a str, name_len: usize) -> Result<(), Fault> {
        for (count, attribute) in Attributes::new(tag, name_len).enumerate() {
            let attribute = attribute.map_err(|error| attribute_fault(start, tag, error))?;
            let name = attribute.key.0;
            // How far the name, which is a part of the text, lies from its start.
            let offset = (name.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
            let fault = |message| Err(Fault::new(offset, message));
            if !is_name(name) {
                return fault(format!("`{}` is no name of an attribute", excerpt(name)));
            }
            if count >= MAX_ATTRIBUTES {
                return fault(format!("more than {MAX_ATTRIBUTES} attributes"));
            }
            let value = match attribute.normalized_value(XmlVersion::Explicit1_0) {
                Ok(value) => value,
                Err(error) => {
                    let message = escape_message(&error);
                    return fault(format!("attribute `{}`: {message}", excerpt(name)));
                }
            };
            self.tree.attributes.push(Attribute {
                name,
                value,
                offset: offset as u32,
            });
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), Fault> {
        let end = self.tree.nodes.len() as u32;
        let open = self.open.pop();
        if let Some(node) = open.and_then(|open| self.tree.nodes.get_mut(open.index)) {
            node.end = end;
        }
        Ok(())
    }

    /// Adds text, of which white space at either end may be layout.
    fn text(&mut self, start: usize, text: Cow<'a, str>) -> Result<(), Fault> {
        let content = text.trim_ascii();
        if content.is_empty() {
            self.space(&text);
            return Ok(());
        }
        let leading = text.len() - text.trim_ascii_start().len();
        let trailing = leading + content.len();
        self.space(text.get(..leading).unwrap_or_default());
        let content = match text {
            Cow::Borrowed(text) => Cow::Borrowed(text.trim_ascii()),
            Cow::Owned(ref text) => Cow::Owned(text.trim_ascii().to_owned()),
        };
        self.literal(start + leading, content)?;
        self.space(text.get(trailing..).unwrap_or_default());
        Ok(())
    }

    /// Adds white space that is part of the text only if it stands between other text.
    fn space(&mut self, space: &str) {
        if let Some(open) = self.open.last_mut()
            && self
                .tree
                .nodes
                .get(open.index)
                .is_some_and(|node| !node.content.is_empty())
        {
            open.space.push_str(space);
        }
    }

    fn literal(&mut self, start: usize, text: Cow<'a, str>) -> Result<(), Fault> {
        let Some(open) = self.open.last_mut() else {
            return Err(Fault::new(start, "text outside of the root element"));
        };
        if let Some(node) = self.tree.nodes.get_mut(open.index) {
            if node.content.is_empty() {
                node.content = text;
            } else {
                let content = node.content.to_mut();
                content.push_str(&open.space);
                content.push_str(&text);
                open.space.clear();
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Tree<'a>, Fault> {
        let unclosed = self.open.last().and_then(|open| self.tree.item(open.index));
        match unclosed {
            Some(item) => Err(item.fault(format!("`<{}>` is not closed", excerpt(item.name())))),
            None => Ok(self.tree),
        }
    }
}

fn check_declaration(start: usize, declaration: &BytesDecl) -> Result<(), Fault> {
    if start != 0 {
        return Err(Fault::new(start, "the XML declaration is not at the start"));
    }
    match declaration.encoding() {
        None => Ok(()),
        Some(Ok(name)) if name.eq_ignore_ascii_case("utf-8") => Ok(()),
        Some(Ok(name)) => Err(Fault::new(
            start,
            format!("expected encoding UTF-8, found `{}`", excerpt(&name)),
        )),
        Some(Err(error)) => Err(Fault::new(start, format!("XML declaration: {error}"))),
    }
}

/// The error in an entity. The library's own text would give a position in the value.
fn escape_message(error: &quick_xml::Error) -> String {
    match error {
        quick_xml::Error::Escape(EscapeError::UnrecognizedEntity(_, name)) => unknown_entity(name),
        quick_xml::Error::Escape(EscapeError::UnterminatedEntity(_)) => {
            "`&` without `;`".to_owned()
        }
        quick_xml::Error::Escape(error) => excerpt_of(&error.to_string(), 200),
        other => excerpt_of(&other.to_string(), 200),
    }
}

fn unknown_entity(name: &str) -> String {
    format!("unknown entity `&{};`", excerpt(name))
}

/// The fault in the attributes of `tag`, which starts at `start`.
fn attribute_fault(start: usize, tag: &str, error: AttrError) -> Fault {
    let name_at = |position: usize| {
        let rest = tag.get(position..).unwrap_or_default();
        excerpt(
            rest.split(|c: char| c == '=' || c.is_ascii_whitespace())
                .next()
                .unwrap_or(rest),
        )
    };
    let (position, message) = match error {
        AttrError::ExpectedEq(at) => (at, "expected `=` after the name of an attribute".to_owned()),
        AttrError::ExpectedValue(at) => (at, "expected a quoted value after `=`".to_owned()),
        AttrError::UnquotedValue(at) => (at, "expected a quoted value after `=`".to_owned()),
        AttrError::ExpectedQuote(at, quote) => {
            (at, format!("expected a closing {}", quote as char))
        }
        AttrError::Duplicated(at, _) => (at, format!("attribute `{}` is given twice", name_at(at))),
    };
    Fault::new(start + position, message)
}
