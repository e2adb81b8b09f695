//! The text form read back: the language that `print` writes, and no more than white space besides.
//!
//! The parser derives the parts of a nest that the text does not show. A stage's layers are the names in its comment, without
//! their operators. A [`Wrap`] belongs to the stage's first layer; its input is the one it names, else
//! the buffer that its index is loaded from. Equal expressions of a stage are shared, so that an axis
//! that printing mentions twice is still bound once.

mod extent;
mod lex;
mod words;

use crate::ir::{
    Axis, AxisId, Binary, BufferId, Kind, Layer, LayerId, Mode, Nest, Policy, Role, Scalar, Site,
    Stage, indexed_load, infix,
};
use lex::{COMMENT, comment, in_word};
use rustc_hash::{FxHashMap, FxHashSet};
use vinelift_tensor::{ElementType, element_count, numbers};
use words::{BINARIES, constant, element_type, named, unary};

/// Why a text is no nest, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ParseError {
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    /// The message.
    pub message: String,
}

/// How deep expressions may nest.
const MAX_DEPTH: usize = 500;

/// Reads a nest. What it says must still be verified: only operands of unequal types and names of
/// unknown buffers are refused here.
pub fn parse(text: &str) -> Result<Nest, ParseError> {
    let mut nest = Nest::new();
    for (number, text) in text.lines().enumerate() {
        Line::new(&mut nest, text)
            .parse()
            .map_err(|(at, message)| ParseError {
                line: number + 1,
                column: text.get(..at).map_or(0, |before| before.chars().count()) + 1,
                message,
            })?;
    }
    Ok(nest)
}

/// A value, or the byte at which it went wrong and how.
type Parsed<T> = Result<T, (usize, String)>;

struct Line<'a> {
    nest: &'a mut Nest,
    text: &'a str,
    at: usize,
    depth: usize,
    layers: Vec<LayerId>,
    axes: FxHashMap<&'a str, AxisId>,
    /// The scalars read so far: equal ones are shared.
    scalars: FxHashSet<Scalar>,
}

impl<'a> Line<'a> {
    fn new(nest: &'a mut Nest, text: &'a str) -> Line<'a> {
        let (layers, axes, scalars) = Default::default();
        Line {
            nest,
            text,
            at: 0,
            depth: 0,
            layers,
            axes,
            scalars,
        }
    }

    fn parse(&mut self) -> Parsed<()> {
        match self.word() {
            "for" => self.stage(None),
            "turn" => {
                let at = self.skip();
                let group = self.number()?;
                let Ok(group) = u32::try_from(group) else {
                    return fail(at, format!("{group} is too large a number of a group"));
                };
                let at = self.skip();
                match self.word() {
                    "for" => self.stage(Some(group)),
                    _ => fail(at, "expected `for`"),
                }
            }
            "symbols" if self.nest.buffers.is_empty() => self.symbols(),
            "where" if self.nest.buffers.is_empty() => self.relation(),
            role @ ("input" | "output" | "temporary" | "table") if self.nest.stages.is_empty() => {
                self.buffer(role)
            }
            _ => fail(
                0,
                "expected `for`, `turn`, or a buffer before the first stage",
            ),
        }
    }

    fn buffer(&mut self, role: &str) -> Parsed<()> {
        let start = self.skip();
        let name = self.name()?;
        if self.nest.names.contains(&name) {
            return fail(start, format!("a second buffer `{name}`"));
        }
        self.expect(":")?;
        let at = self.skip();
        let word = self.word();
        let ty = element_type(at, word)?;
        self.expect("[")?;
        let shape = self.separated("]", Line::extent)?;
        let role = match role {
            "input" => Role::Input,
            "output" => Role::Output,
            "temporary" => Role::Temporary,
            _ => Role::Table(self.bytes()?.into()),
        };
        if let Role::Table(bytes) = &role {
            let count = numbers(&shape).and_then(|shape| element_count(&shape));
            let expected = count.and_then(|n| ty.byte_len(n));
            if expected != Some(bytes.len()) {
                return fail(at, format!("{} bytes for {ty}{shape:?}", bytes.len()));
            }
        }
        self.nest.buffer(&name, ty, &shape, role);
        self.end()
    }

    fn stage(&mut self, group: Option<u32>) -> Parsed<()> {
        let whole = self.text;
        if let Some(comment) = comment(whole) {
            let names = whole[comment..].strip_prefix(COMMENT).unwrap_or("");
            self.layers = names.split(", ").map(|name| self.layer(name)).collect();
            self.text = &whole[..comment];
        }
        let domain = self.axes(":")?;
        let target = self.buffer_name()?;
        self.expect("[")?;
        let at = self.separated("]", Line::scalar)?;
        let start = self.skip();
        let mode = match self.word() {
            "" => Mode::Set,
            word => {
                Mode::Combine(named(word).ok_or_else(|| (start, format!("no operator `{word}`")))?)
            }
        };
        self.expect("=")?;
        let value = self.scalar()?;
        let layers = std::mem::take(&mut self.layers);
        self.nest.stages.push(Stage {
            domain,
            target,
            at,
            mode,
            value,
            layers,
            group,
        });
        self.end()
    }

    fn layer(&mut self, name: &str) -> LayerId {
        self.nest.adopt(&Layer {
            name: name.to_owned(),
            op: String::new(),
        })
    }

    /// `i<2, j<3` up to `end`.
    fn axes(&mut self, end: &str) -> Parsed<Vec<Axis>> {
        self.separated(end, |line| {
            let id = match line.word() {
                "" => return fail(line.at, "expected an axis"),
                name => line.axis(name),
            };
            line.expect("<")?;
            Ok(Axis {
                id,
                extent: line.extent()?,
            })
        })
    }

    fn axis(&mut self, name: &'a str) -> AxisId {
        *self
            .axes
            .entry(name)
            .or_insert_with(|| self.nest.axis(0).id)
    }

    fn scalar(&mut self) -> Parsed<Scalar> {
        if self.depth == MAX_DEPTH {
            return fail(
                self.at,
                format!("an expression of more than {MAX_DEPTH} levels"),
            );
        }
        self.depth += 1;
        let scalar = self.primary()?;
        self.depth -= 1;
        if let Some(known) = self.scalars.get(&scalar) {
            return Ok(known.clone());
        }
        self.scalars.insert(scalar.clone());
        Ok(scalar)
    }

    fn primary(&mut self) -> Parsed<Scalar> {
        let start = self.skip();
        match self.text[start..].chars().next() {
            Some('(') => self.infix(start),
            Some('"') => self.load(),
            Some(c) if c == '-' || c.is_ascii_digit() => {
                self.at += 1;
                self.rest_of_word();
                constant(start, &self.text[start..self.at])
            }
            _ => match self.word() {
                "" => fail(start, "expected an expression"),
                word => self.worded(start, word),
            },
        }
    }

    /// A scalar that starts with a word, which has been read.
    fn worded(&mut self, start: usize, word: &'a str) -> Parsed<Scalar> {
        if self.peek("[") {
            let inner = self.text[self.at + 1..].trim_start_matches(in_word);
            if inner.starts_with(['<', ';']) {
                return self.reduce(start, word);
            }
            self.at = start;
            return self.load();
        }
        if self.peek("(") || self.peek("?(") {
            return self.call(start, word);
        }
        match word {
            "true" | "false" => Ok(Scalar::constant(
                (word == "true").into(),
                ElementType::Boolean,
            )),
            "inf" | "inff64" => constant(start, word),
            _ => Ok(Scalar::axis(self.axis(word))),
        }
    }

    fn infix(&mut self, start: usize) -> Parsed<Scalar> {
        self.expect("(")?;
        let a = self.scalar()?;
        let at = self.skip();
        let fits = |op: &Binary| infix(*op).is_some_and(|sign| self.text[at..].starts_with(sign));
        let longest = BINARIES
            .into_iter()
            .filter(fits)
            .max_by_key(|op| infix(*op).map(str::len));
        let Some((op, sign)) = longest.and_then(|op| Some((op, infix(op)?))) else {
            return fail(at, "expected an infix operator");
        };
        self.at += sign.len();
        let b = self.scalar()?;
        self.expect(")")?;
        binary(start, op, &a, &b)
    }

    fn load(&mut self) -> Parsed<Scalar> {
        let buffer = self.buffer_name()?;
        self.expect("[")?;
        let at = self.separated("]", Line::scalar)?;
        Ok(Scalar::load(buffer, at, self.nest.buf(buffer).ty))
    }

    fn reduce(&mut self, start: usize, word: &str) -> Parsed<Scalar> {
        let op = named(word).ok_or_else(|| (start, format!("no operator `{word}`")))?;
        self.expect("[")?;
        let axes = self.axes(";")?;
        let init = self.scalar()?;
        self.expect("]")?;
        self.expect("(")?;
        let body = self.scalar()?;
        self.expect(")")?;
        same_types(start, &init, &body)?;
        Ok(Scalar::reduce(op, axes, init, body))
    }

    /// `word(…)`
    fn call(&mut self, start: usize, word: &str) -> Parsed<Scalar> {
        if let "wrap" | "check" = word {
            return self.wrap(word == "wrap");
        }
        self.expect("(")?;
        if word == "extent" {
            let extent = self.extent()?;
            self.expect(")")?;
            return Ok(Scalar::extent(extent));
        }
        if word == "nan" {
            return self.nan(start);
        }
        let arguments = self.separated(")", Line::scalar)?;
        let known = match arguments.as_slice() {
            [x] => unary(start, word, x)?,
            [a, b] => match named(word).filter(|op| infix(*op).is_none()) {
                Some(op) => Some(binary(start, op, a, b)?),
                None => None,
            },
            [condition, yes, no] if word == "select" => {
                same_types(start, yes, no)?;
                Some(Scalar::select(condition.clone(), yes.clone(), no.clone()))
            }
            _ => None,
        };
        let count = arguments.len();
        known.ok_or_else(|| (start, format!("no function `{word}` of {count} arguments")))
    }

    fn wrap(&mut self, negative: bool) -> Parsed<Scalar> {
        let policy = Policy {
            negative,
            zero: self.eat("?"),
        };
        self.expect("(")?;
        let index = self.scalar()?;
        self.expect(",")?;
        let extent = self.extent()?;
        let (input, position) = if self.peek("in") {
            self.expect("in")?;
            let input = self.name()?;
            self.expect("[")?;
            (input, self.separated("]", Line::scalar)?)
        } else {
            let loaded = indexed_load(&index).and_then(|(load, at)| match load.kind() {
                Kind::Load { buffer, .. } => {
                    Some((self.nest.buf(*buffer).name.clone(), at.to_vec()))
                }
                _ => None,
            });
            loaded.ok_or_else(|| {
                (
                    self.at,
                    "expected `in`, since the index is no load".to_owned(),
                )
            })?
        };
        self.expect(")")?;
        let layer = match self.layers.first() {
            Some(layer) => *layer,
            None => self.layer(""),
        };
        Ok(self
            .nest
            .wrap(index, extent, policy, Site { layer, input }, position))
    }

    /// `0x7fc00000)`, with the type behind it.
    fn nan(&mut self, start: usize) -> Parsed<Scalar> {
        self.skip();
        let bits = self.rest_of_word();
        self.expect(")")?;
        let ty = if self.eat("f64") {
            ElementType::F64
        } else {
            ElementType::F32
        };
        let parsed = bits
            .strip_prefix("0x")
            .and_then(|hex| u64::from_str_radix(hex, 16).ok());
        let is_nan = |bits: &u64| match ty {
            ElementType::F64 => f64::from_bits(*bits).is_nan(),
            _ => u32::try_from(*bits).is_ok_and(|bits| f32::from_bits(bits).is_nan()),
        };
        match parsed.filter(is_nan) {
            Some(bits) => Ok(Scalar::constant(bits, ty)),
            None => fail(start, format!("`{bits}` is no nan of {ty}")),
        }
    }

    fn buffer_name(&mut self) -> Parsed<BufferId> {
        let start = self.skip();
        let name = self.name()?;
        match self.nest.buffers.iter().position(|b| b.name == name) {
            Some(k) => Ok(BufferId(k as u32)),
            None => fail(start, format!("no buffer `{name}`")),
        }
    }
}

fn fail<T>(at: usize, message: impl Into<String>) -> Parsed<T> {
    Err((at, message.into()))
}

fn same_types(at: usize, a: &Scalar, b: &Scalar) -> Parsed<()> {
    if a.ty() == b.ty() {
        Ok(())
    } else {
        fail(at, format!("operands of {} and {}", a.ty(), b.ty()))
    }
}

fn binary(at: usize, op: Binary, a: &Scalar, b: &Scalar) -> Parsed<Scalar> {
    same_types(at, a, b)?;
    Ok(Scalar::binary(op, a.clone(), b.clone()))
}
