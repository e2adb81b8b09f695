//! `Einsum`: `out[o..] = Σ Π inputs[labels..]` over the labels of `equation` that the output lacks.
//!
//! Specification: Einsum-7. A label is a letter; `...` stands for any number of dims, broadcast
//! together; without `->` the output has `...` and then the labels that occur once, in alphabetical
//! order, capitals first. Equal labels have equal extents, 1 being stretched. Integers wrap.

use crate::elementwise::widened;
use crate::error::ensure;
use crate::layout::extent::countable;
use crate::op::parse;
use crate::{Build, Family, Infer, Lower, Op, OpDef, OpError, Signature, TensorType};
use serde::Deserialize;
use vinelift_nest::build::{index, integer, zero};
use vinelift_nest::{Binary, BufferId, Scalar};
use vinelift_tensor::{Dim, Extent, PartialShape};

pub(crate) static DEF: OpDef = OpDef {
    name: "Einsum",
    versions: &["opset7"],
    signature: Signature::new(&["inputs"]).variadic(),
    family: Family::Compose,
    build: Build::Op(parse::<Einsum>),
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Einsum {
    equation: String,
}

/// The label of one dim.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Label {
    Letter(char),
    /// A dim of the ellipsis, counted from its end.
    Ellipsis(usize),
}

/// The labels of each input's dims, and of the output's.
struct Plan {
    inputs: Vec<Vec<Label>>,
    output: Vec<Label>,
}

impl Op for Einsum {
    fn infer(&self, cx: &Infer<'_>) -> Result<Vec<TensorType>, OpError> {
        let element = cx.expect("inputs", "a numeric type", |t| {
            t.is_integer() || t.is_float()
        })?;
        for (i, input) in cx.inputs().iter().enumerate() {
            ensure!(
                input.element == element,
                "input {i} must be of the type of the first, {element}, found {}",
                input.element
            );
        }
        let ranks: Vec<_> = cx.inputs().iter().map(|t| t.shape.rank()).collect();
        let known: Option<Vec<usize>> = ranks.iter().copied().collect();
        let Some(ranks) = known else {
            return Ok(vec![TensorType::new(element, PartialShape::DYNAMIC)]);
        };
        let plan = self.plan(&ranks)?;
        let mut dims: Vec<(Label, Dim)> = vec![];
        for (input, labels) in cx.inputs().iter().zip(&plan.inputs) {
            for (&label, &dim) in labels.iter().zip(input.shape.dims().unwrap_or_default()) {
                match dims.iter_mut().find(|(known, _)| *known == label) {
                    Some((_, known)) => {
                        let both = known.broadcast(dim);
                        ensure!(
                            both.is_some(),
                            "the extents {known} and {dim} of a label of `equation` {} differ",
                            self.equation
                        );
                        *known = both.unwrap_or(dim);
                    }
                    None => dims.push((label, dim)),
                }
            }
        }
        let dim = |label: &Label| {
            let known = dims.iter().find(|(known, _)| known == label);
            known.map_or(Dim::fixed(1), |(_, dim)| *dim)
        };
        let shape = countable(PartialShape::ranked(plan.output.iter().map(dim).collect()))?;
        Ok(vec![TensorType::new(element, shape)])
    }

    fn lower(&self, cx: &mut Lower<'_>) {
        let shapes: Vec<Vec<Extent>> = cx.inputs().iter().map(|&b| cx.extents_of(b)).collect();
        let ranks: Vec<usize> = shapes.iter().map(Vec::len).collect();
        let Ok(plan) = self.plan(&ranks) else {
            return;
        };
        let mut summed: Vec<(Label, Extent)> = vec![];
        for (&label, &n) in plan.inputs.iter().flatten().zip(shapes.iter().flatten()) {
            if plan.output.contains(&label) {
                continue;
            }
            match summed.iter_mut().find(|(known, _)| *known == label) {
                Some((_, known)) if *known == 1 => *known = n,
                Some(_) => {}
                None => summed.push((label, n)),
            }
        }
        let inputs = cx.inputs().to_vec();
        let ty = cx.type_of(cx.output(0));
        let extents: Vec<Extent> = summed.iter().map(|(_, n)| *n).collect();
        cx.define(cx.output(0), |cx, at| {
            let factors = |cx: &mut Lower<'_>, point: &[Scalar]| -> Vec<Scalar> {
                let place = |label: &Label| {
                    let outer = plan.output.iter().position(|known| known == label);
                    let inner = summed.iter().position(|(known, _)| known == label);
                    let inner = inner.and_then(|k| point.get(k));
                    outer.and_then(|k| at.get(k)).or(inner).cloned()
                };
                let places = plan.inputs.iter().zip(&shapes);
                let factor =
                    |(&input, (labels, shape)): (&BufferId, (&Vec<Label>, &Vec<Extent>))| {
                        let dims = labels.iter().zip(shape);
                        let from = dims.map(|(label, &n)| match place(label) {
                            Some(i) if n != 1 => i,
                            _ => index(0),
                        });
                        let from: Vec<Scalar> = from.collect();
                        widened(cx.load_from(input, &from))
                    };
                inputs.iter().zip(places).map(factor).collect()
            };
            let wide = ty.compute();
            let product = |factors: Vec<Scalar>| {
                let product = factors.into_iter().reduce(|x, y| x * y);
                product.unwrap_or_else(|| integer(1, wide))
            };
            let result = match (extents.as_slice(), inputs.len()) {
                ([], _) => product(factors(cx, &[])),
                (extents, ..2) => cx.reduce(Binary::Add, extents, zero(wide), |cx, point| {
                    product(factors(cx, point))
                }),
                (extents, _) => cx.sum_of_products(extents, wide, |cx, point| {
                    let mut factors = factors(cx, point);
                    let last = factors.pop().unwrap_or_else(|| integer(1, wide));
                    (product(factors), last)
                }),
            };
            result.cast(ty)
        });
    }
}

impl Einsum {
    /// The labels for inputs of these ranks.
    fn plan(&self, ranks: &[usize]) -> Result<Plan, OpError> {
        let text: String = self
            .equation
            .chars()
            .filter(|c| !c.is_whitespace())
            .collect();
        let (left, right) = match text.split_once("->") {
            Some((left, right)) => (left, Some(right)),
            None => (text.as_str(), None),
        };
        let terms: Vec<&str> = left.split(',').collect();
        ensure!(
            terms.len() == ranks.len(),
            "`equation` {} must have {} terms, one for each input",
            self.equation,
            ranks.len()
        );
        let mut inputs = vec![];
        let mut widest = None;
        for (term, &rank) in terms.iter().zip(ranks) {
            let letters = term.replace("...", "").chars().count();
            let spare = rank
                .checked_sub(letters)
                .filter(|n| *n == 0 || term.contains("..."));
            let Some(spare) = spare else {
                return Err(OpError::Shape(format!(
                    "the term `{term}` of `equation` {} does not fit an input of rank {rank}",
                    self.equation
                )));
            };
            if term.contains("...") {
                widest = Some(spare.max(widest.unwrap_or(0)));
            }
            inputs.push(self.labels(term, spare)?);
        }
        let output = match right {
            Some(right) => self.labels(right, widest.unwrap_or(0))?,
            None => {
                let letters: Vec<char> = left.chars().filter(char::is_ascii_alphabetic).collect();
                let mut once: Vec<char> = letters.clone();
                once.retain(|c| letters.iter().filter(|other| *other == c).count() == 1);
                once.sort_unstable();
                let ellipsis = (0..widest.unwrap_or(0)).rev().map(Label::Ellipsis);
                ellipsis
                    .chain(once.into_iter().map(Label::Letter))
                    .collect()
            }
        };
        for (k, label) in output.iter().enumerate() {
            let known =
                matches!(label, Label::Ellipsis(_)) || inputs.iter().any(|i| i.contains(label));
            ensure!(
                known && !output[..k].contains(label),
                "the output of `equation` {} must have labels of the inputs, each once",
                self.equation
            );
        }
        Ok(Plan { inputs, output })
    }

    /// The labels of one term, whose ellipsis stands for `spare` dims.
    fn labels(&self, term: &str, spare: usize) -> Result<Vec<Label>, OpError> {
        let (before, after) = term.split_once("...").unwrap_or((term, ""));
        let letters = |text: &str| -> Vec<Label> { text.chars().map(Label::Letter).collect() };
        let fits = |text: &str| text.chars().all(|c| c.is_ascii_alphabetic());
        ensure!(
            fits(before) && fits(after),
            "the term `{term}` of `equation` {} must be of letters and one `...`",
            self.equation
        );
        let ellipsis = if term.contains("...") { spare } else { 0 };
        let mut labels = letters(before);
        labels.extend((0..ellipsis).rev().map(Label::Ellipsis));
        labels.extend(letters(after));
        Ok(labels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{error, i32s, infer, run};
    use vinelift_tensor::{ElementType, Tensor};

    fn einsum(equation: &str, inputs: &[Tensor]) -> Tensor {
        run(&DEF, &[("equation", equation)], inputs)
    }

    /// Values of NumPy.
    #[test]
    fn every_form() {
        let m = i32s(&[2, 2], &[1, 2, 3, 4]);
        let v = i32s(&[2], &[5, 6]);
        let one = std::slice::from_ref(&m);
        assert_eq!(einsum("ij->ji", one), i32s(&[2, 2], &[1, 3, 2, 4]));
        assert_eq!(einsum("ij->i", one), i32s(&[2], &[3, 7]));
        assert_eq!(einsum("ba", one), i32s(&[2, 2], &[1, 3, 2, 4]));
        assert_eq!(einsum("ii", one), i32s(&[], &[5]));
        assert_eq!(einsum("...ii -> ...i", one), i32s(&[2], &[1, 4]));
        assert_eq!(einsum("->", &[i32s(&[], &[3])]), i32s(&[], &[3]));
        let product = einsum("ij,j->i", &[m.clone(), v.clone()]);
        assert_eq!(product, i32s(&[2], &[17, 39]));
        let outer = einsum("i,j", &[v.clone(), v.clone()]);
        assert_eq!(outer, i32s(&[2, 2], &[25, 30, 30, 36]));
        let batched = einsum("...ij,...jk->...ik", &[i32s(&[1, 2, 2], &[1, 2, 3, 4]), m]);
        assert_eq!(batched, i32s(&[1, 2, 2], &[7, 10, 15, 22]));
        let stretched = einsum("ab,b->a", &[i32s(&[2, 1], &[1, 2]), v]);
        assert_eq!(stretched, i32s(&[2], &[11, 22]));
    }

    #[test]
    fn what_does_not_fit() {
        let m = i32s(&[2, 3], &[0; 6]);
        let of = |equation| error(&DEF, &[("equation", equation)], std::slice::from_ref(&m));
        let message = "the extents 2 and 3 of a label of `equation` ii differ";
        assert_eq!(of("ii"), message);
        let message = "the term `ijk` of `equation` ijk does not fit an input of rank 2";
        assert_eq!(of("ijk"), message);
        let message = "`equation` i,j must have 1 terms, one for each input";
        assert_eq!(of("i,j"), message);
        let message = "the output of `equation` ij->k must have labels of the inputs, each once";
        assert_eq!(of("ij->k"), message);
    }

    #[test]
    fn partial_shapes() {
        let input = |shape| (ElementType::F16, shape, None);
        let inputs = [
            input(PartialShape::any_of_rank(2)),
            input([4usize, 5][..].into()),
        ];
        let found = infer(&DEF, &[("equation", "ij,jk->ik")], &inputs).0;
        assert_eq!(found, "f16[?, 5]");
        let inputs = [input(PartialShape::DYNAMIC)];
        assert_eq!(infer(&DEF, &[("equation", "i->i")], &inputs).0, "f16[...]");
    }
}
