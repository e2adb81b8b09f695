//! The text form.
//!
//! ```text
//! input data: f32[2, 3]
//! input indices: i64[2, 3]
//! output out: f32[2, 3]
//! for i<2, j<3: out[i, j] = data[wrap(indices[i, j], 2), j]  # gather_1
//! ```
//!
//! Axes get letters in the order in which a stage binds them. Constants other than `i64`, `f32` and
//! booleans carry their type (`1.5f64`, `3u8`); those of storage types are bits (`0x3c00_f16`).
//! A wrap is `wrap`, or `check` where negatives do not count from the end; `?` after it marks the
//! policy that reads zero. Where its site is not the load inside it, it says `in name[position]`.

mod wrapped;

use crate::ir::{
    Axis, AxisId, Binary, BufferId, Kind, LayerId, Mode, Nest, Policy, Role, Scalar, Stage, Unary,
    Wrap, one_line,
};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::fmt::{self, Display, Formatter, Write};
use vinelift_tensor::ElementType;

impl Nest {
    /// The text of a scalar of this nest.
    pub fn display<'a>(&'a self, scalar: &'a Scalar) -> impl Display + 'a {
        from_fn(move |f| Printer::new(self).scalar(f, scalar))
    }

    /// The text of a stage of this nest, without its layers.
    pub fn display_stage<'a>(&'a self, stage: &'a Stage) -> impl Display + 'a {
        from_fn(move |f| Printer::new(self).stage(f, stage))
    }

    /// The declaration of a buffer of this nest: its role, name, type and shape, and the bytes of a table.
    pub fn display_buffer(&self, buffer: BufferId) -> impl Display + '_ {
        let b = self.buf(buffer);
        from_fn(move |f| {
            let role = match b.role {
                Role::Input => "input",
                Role::Output => "output",
                Role::Temporary => "temporary",
                Role::Table(_) => "table",
            };
            write!(f, "{role} {}: {}{:?}", Name(&b.name), b.ty, b.shape)?;
            if let Role::Table(bytes) = &b.role {
                f.write_str(" = ")?;
                bytes.iter().try_for_each(|b| write!(f, "{b:02x}"))?;
            }
            Ok(())
        })
    }

    /// The buffers that some stage uses, in the order of their numbers.
    pub fn used_buffers(&self) -> Vec<BufferId> {
        let mut used: Vec<BufferId> = self.read_in(0..self.stages.len());
        used.extend(self.stages.iter().map(|s| s.target));
        used.sort_unstable();
        used.dedup();
        used
    }

    /// The texts of all stages.
    #[cfg(test)]
    pub(crate) fn stage_texts(&self) -> Vec<String> {
        let stages = self.stages.iter();
        stages.map(|s| self.display_stage(s).to_string()).collect()
    }

    /// The names of a stage's layers, separated by commas.
    pub fn layer_names(&self, stage: &Stage) -> String {
        let name = |l: &LayerId| one_line(&self.layers[l.0 as usize].name);
        let names: Vec<String> = stage.layers.iter().map(name).collect();
        names.join(", ")
    }
}

/// The symbols with their values at the example, the buffers that some stage uses, then the stages.
impl Display for Nest {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.is_symbolic() {
            let symbols = self.symbols.iter().enumerate();
            let symbols: Vec<String> = symbols.map(|(k, value)| format!("s{k}={value}")).collect();
            writeln!(f, "symbols {}", symbols.join(", "))?;
            for formula in &self.relations {
                writeln!(f, "where {formula} >= 0")?;
            }
        }
        for b in self.used_buffers() {
            writeln!(f, "{}", self.display_buffer(b))?;
        }
        for stage in &self.stages {
            write!(f, "{}", self.display_stage(stage))?;
            if !stage.layers.is_empty() {
                write!(f, "  # {}", self.layer_names(stage))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// A buffer's name, quoted if it is more than letters, digits, `_`, `.` and `/`.
pub(crate) struct Name<'a>(pub(crate) &'a str);

impl Display for Name<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/');
        let starts_well = self
            .0
            .starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if starts_well && self.0.chars().all(plain) {
            f.write_str(self.0)
        } else {
            write!(f, "{:?}", self.0)
        }
    }
}

/// The infix form of an operator, if it has one.
pub(crate) fn infix(op: Binary) -> Option<&'static str> {
    use Binary::*;
    Some(match op {
        Add => "+",
        Sub => "-",
        Mul => "*",
        Div => "/",
        Rem => "%",
        And => "&",
        Or => "|",
        Xor => "^",
        Shl => "<<",
        Shr => ">>",
        Eq => "==",
        Ne => "!=",
        Lt => "<",
        Le => "<=",
        Gt => ">",
        Ge => ">=",
        Min | Max | Pow | MulHigh | Term => return None,
    })
}

/// The name of an operator where it stands before its operands or a `=`.
pub(crate) fn binary_name(op: Binary) -> String {
    format!("{op:?}").to_ascii_lowercase()
}

pub(crate) fn unary_name(op: Unary) -> String {
    format!("{op:?}").to_ascii_lowercase()
}

pub(crate) fn wrap_name(policy: Policy) -> &'static str {
    match (policy.negative, policy.zero) {
        (true, false) => "wrap",
        (false, false) => "check",
        (true, true) => "wrap?",
        (false, true) => "check?",
    }
}

/// The load whose coordinates are a wrap's position by default: the one inside its index.
pub(crate) fn indexed_load(index: &Scalar) -> Option<(&Scalar, &[Scalar])> {
    match index.kind() {
        Kind::Cast(x) => indexed_load(x),
        Kind::Load { at, .. } => Some((index, at)),
        _ => None,
    }
}

/// Values of more terms than this are not written: nobody reads them, and there may be any number.
const MOST_TERMS: usize = 20_000;

/// The number of terms of the text of `x`; saturates.
fn tree_size(x: &Scalar, known: &mut FxHashMap<usize, usize>) -> usize {
    if let Some(size) = known.get(&x.address()) {
        return *size;
    }
    let children = x.children();
    let size = children.fold(1usize, |sum, c| sum.saturating_add(tree_size(c, known)));
    known.insert(x.address(), size);
    size
}

struct Printer<'a> {
    nest: &'a Nest,
    names: RefCell<FxHashMap<AxisId, String>>,
    /// The names of scalars that have one, by their addresses.
    named: RefCell<FxHashMap<usize, String>>,
}

impl<'a> Printer<'a> {
    fn new(nest: &'a Nest) -> Printer<'a> {
        Printer {
            nest,
            names: RefCell::default(),
            named: RefCell::default(),
        }
    }

    fn stage(&self, f: &mut Formatter<'_>, stage: &Stage) -> fmt::Result {
        self.loops(f, stage)?;
        f.write_char(' ')?;
        self.assigned(f, stage)?;
        match tree_size(&stage.value, &mut FxHashMap::default()) {
            // Shared scalars are written out wherever they are used.
            size if size > MOST_TERMS => write!(f, "… {size} terms …"),
            _ => self.scalar(f, &stage.value),
        }
    }

    /// The loops around the assignment of a stage.
    fn loops(&self, f: &mut Formatter<'_>, stage: &Stage) -> fmt::Result {
        if let Some(group) = stage.group {
            write!(f, "turn {group} ")?;
        }
        f.write_str("for ")?;
        self.axes(f, &stage.domain)?;
        f.write_char(':')
    }

    /// The assignment of a stage up to its value.
    fn assigned(&self, f: &mut Formatter<'_>, stage: &Stage) -> fmt::Result {
        write!(f, "{}", Name(&self.nest.buf(stage.target).name))?;
        self.list(f, &stage.at)?;
        match stage.mode {
            Mode::Set => f.write_str(" = "),
            Mode::Combine(op) => write!(f, " {}= ", binary_name(op)),
        }
    }

    fn axes(&self, f: &mut Formatter<'_>, axes: &[Axis]) -> fmt::Result {
        for (n, axis) in axes.iter().enumerate() {
            write!(
                f,
                "{}{}<{}",
                if n > 0 { ", " } else { "" },
                self.axis(axis.id),
                axis.extent
            )?;
        }
        Ok(())
    }

    /// `i` … `t`, then `i1` … `t1`, in the order of first mention.
    fn axis(&self, id: AxisId) -> String {
        let mut names = self.names.borrow_mut();
        let n = names.len();
        let letter = b"ijklmnopqrst"[n % 12] as char;
        let fresh = || {
            if n < 12 {
                letter.to_string()
            } else {
                format!("{letter}{}", n / 12)
            }
        };
        names.entry(id).or_insert_with(fresh).clone()
    }

    fn list(&self, f: &mut Formatter<'_>, items: &[Scalar]) -> fmt::Result {
        f.write_char('[')?;
        self.items(f, items)?;
        f.write_char(']')
    }

    fn items(&self, f: &mut Formatter<'_>, items: &[Scalar]) -> fmt::Result {
        for (n, item) in items.iter().enumerate() {
            f.write_str(if n > 0 { ", " } else { "" })?;
            self.scalar(f, item)?;
        }
        Ok(())
    }

    fn call(&self, f: &mut Formatter<'_>, name: &str, items: &[&Scalar]) -> fmt::Result {
        write!(f, "{name}(")?;
        for (n, item) in items.iter().enumerate() {
            f.write_str(if n > 0 { ", " } else { "" })?;
            self.scalar(f, item)?;
        }
        f.write_char(')')
    }

    fn scalar(&self, f: &mut Formatter<'_>, x: &Scalar) -> fmt::Result {
        match self.named.borrow().get(&x.address()) {
            Some(name) => f.write_str(name),
            None => self.written_out(f, x),
        }
    }

    /// The expression of `x` itself, also where `x` has a name.
    fn written_out(&self, f: &mut Formatter<'_>, x: &Scalar) -> fmt::Result {
        match x.kind() {
            Kind::Const(c) => constant(f, c.0, x.ty()),
            Kind::Axis(id) => f.write_str(&self.axis(*id)),
            Kind::Extent(extent) => write!(f, "extent({extent})"),
            Kind::Load { buffer, at } => {
                write!(f, "{}", Name(&self.nest.buf(*buffer).name))?;
                self.list(f, at)
            }
            Kind::Unary(op, y) => self.call(f, &unary_name(*op), &[y]),
            Kind::Binary(op, a, b) => match infix(*op) {
                Some(sign) => {
                    f.write_char('(')?;
                    self.scalar(f, a)?;
                    write!(f, " {sign} ")?;
                    self.scalar(f, b)?;
                    f.write_char(')')
                }
                None => self.call(f, &binary_name(*op), &[a, b]),
            },
            Kind::Select(c, yes, no) => self.call(f, "select", &[c, yes, no]),
            Kind::Cast(y) => self.call(f, x.ty().name(), &[y]),
            Kind::Bitcast(y) => self.call(f, &format!("bits.{}", x.ty()), &[y]),
            Kind::Reduce { body, .. } => {
                self.fold(f, x)?;
                f.write_char('(')?;
                self.scalar(f, body)?;
                f.write_char(')')
            }
            Kind::Wrap(w) => self.wrap(f, w),
        }
    }

    /// A fold without its body.
    fn fold(&self, f: &mut Formatter<'_>, x: &Scalar) -> fmt::Result {
        let Kind::Reduce { op, axes, init, .. } = x.kind() else {
            return Ok(());
        };
        write!(f, "{}[", binary_name(*op))?;
        self.axes(f, axes)?;
        f.write_str("; ")?;
        self.scalar(f, init)?;
        f.write_char(']')
    }

    fn wrap(&self, f: &mut Formatter<'_>, w: &Wrap) -> fmt::Result {
        write!(f, "{}(", wrap_name(w.policy))?;
        self.scalar(f, &w.index)?;
        write!(f, ", {}", w.extent)?;
        let obvious = indexed_load(&w.index).is_some_and(|(_, at)| at == w.position);
        if !obvious {
            let input = self
                .nest
                .sites
                .get(w.site.0 as usize)
                .map_or("", |s| &s.input);
            write!(f, " in {}", Name(input))?;
            self.list(f, &w.position)?;
        }
        f.write_char(')')
    }
}

fn constant(f: &mut Formatter<'_>, bits: u64, ty: ElementType) -> fmt::Result {
    use ElementType::*;
    let shift = 64 - ty.bits();
    match ty {
        Boolean => write!(f, "{}", bits != 0),
        I64 => write!(f, "{}", bits as i64),
        F32 => float(
            f,
            f64::from(f32::from_bits(bits as u32)),
            f32::from_bits(bits as u32).to_string(),
            bits,
            "",
        ),
        F64 => float(
            f,
            f64::from_bits(bits),
            f64::from_bits(bits).to_string(),
            bits,
            "f64",
        ),
        _ if ty.is_signed_integer() => write!(f, "{}{ty}", (bits << shift) as i64 >> shift),
        _ if ty.is_unsigned_integer() => write!(f, "{bits}{ty}"),
        _ => write!(f, "{bits:#x}_{ty}"),
    }
}

/// `text` with a point so that it reads as a float; NaN by its bits.
fn float(f: &mut Formatter<'_>, value: f64, text: String, bits: u64, suffix: &str) -> fmt::Result {
    if value.is_nan() {
        return write!(f, "nan({bits:#x}){suffix}");
    }
    let point = if value.is_finite() && !text.contains('.') {
        ".0"
    } else {
        ""
    };
    write!(f, "{text}{point}{suffix}")
}

fn from_fn(print: impl Fn(&mut Formatter<'_>) -> fmt::Result) -> impl Display {
    struct FromFn<F>(F);
    impl<F: Fn(&mut Formatter<'_>) -> fmt::Result> Display for FromFn<F> {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            (self.0)(f)
        }
    }
    FromFn(print)
}

#[cfg(test)]
mod tests {
    use crate::build::*;
    use crate::ir::{Binary, Mode, Nest, Policy, Role, Scalar, Site, Stage};
    use vinelift_tensor::ElementType::{F32, F64, I32};

    #[test]
    fn a_stage_is_one_line() {
        let mut nest = Nest::new();
        let data = nest.buffer("data", F32, &[2, 3], Role::Input);
        let indices = nest.buffer("indices", I32, &[2, 3], Role::Input);
        let out = nest.buffer("out", F32, &[2, 3], Role::Output);
        let layer = nest.layer("gather_1", "GatherElements, opset6");
        nest.define(vec![layer], out, |n, at| {
            let index = n.load(indices, at.to_vec());
            let site = Site {
                layer,
                input: "indices".into(),
            };
            let i = n.wrap(index, 2, Policy::WRAP, site, at.to_vec());
            n.load(data, vec![i, at[1].clone()])
        });
        let domain = nest.axes(&[2, 3]);
        let at: Vec<Scalar> = domain.iter().map(|a| Scalar::axis(a.id)).collect();
        let axes = nest.axes(&[3]);
        let k = Scalar::axis(axes[0].id);
        let body = nest.load(data, vec![at[0].clone(), k]).exp();
        let value = Scalar::reduce(Binary::Max, axes, lowest(F32), body);
        nest.stages.push(Stage {
            domain,
            target: out,
            at,
            mode: Mode::Combine(Binary::Add),
            value,
            layers: vec![],
            group: None,
        });
        assert_eq!(
            nest.to_string(),
            "input data: f32[2, 3]\n\
             input indices: i32[2, 3]\n\
             output out: f32[2, 3]\n\
             for i<2, j<3: out[i, j] = data[wrap(indices[i, j], 2), j]  # gather_1\n\
             for i<2, j<3: out[i, j] add= max[k<3; -inf](exp(data[i, k]))\n"
        );
    }

    #[test]
    fn constants_show_their_type() {
        let nest = Nest::new();
        let show = |x: Scalar| nest.display(&x).to_string();
        assert_eq!(show(number(2.0, F32) * number(-0.0, F32)), "(2.0 * -0.0)");
        assert_eq!(show(number(1.5, F64)), "1.5f64");
        assert_eq!(show(integer(-3, I32)), "-3i32");
        assert_eq!(show(number(f64::NAN, F32)), "nan(0x7fc00000)");
        assert_eq!(show(highest(F32)), "inf");
    }
}
