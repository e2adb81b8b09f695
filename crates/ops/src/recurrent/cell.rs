//! The loop nest of a cell: a stage for each part of the step.

use super::formulas::{Frame, Part};
use super::network::{Network, row_of};
use crate::Lower;
use crate::elementwise::widened;
use crate::layout::index_map::extent;
use std::ops::Range;
use vinelift_nest::build::zero;
use vinelift_nest::{BufferId, Mode, Scalar};

pub(super) fn lower(network: &Network, cx: &mut Lower<'_>) {
    let (cell, act) = (network.cell, &network.activations);
    let ty = cx.element("X");
    let wide = ty.compute();
    let batch = cx.extents("X")[0];
    let size = network.hidden_size;
    let inputs = of_inputs(network, cx);
    let products = cx.temporary("products", wide, &[batch, (cell.gates() * size).into()]);
    let mut stages = Stages {
        size,
        inputs,
        products,
        cell_state: None,
    };
    let mut reset = None;
    for part in cell.parts() {
        match part {
            Part::Products(gates) => {
                stages.multiply(cx, gates, |cx, b, j| {
                    widened(cx.load("initial_hidden_state", &[b.clone(), j.clone()]))
                });
            }
            Part::Reset => {
                let target = cx.temporary("reset", wide, &[batch, size.into()]);
                cx.define(target, |cx, at| cell.reset(act, &stages.at(cx, at)));
                reset = Some(target);
            }
            Part::ProductOfReset(gate) => {
                let Some(reset) = reset else { continue };
                stages.multiply(cx, gate..gate + 1, |cx, b, j| {
                    cx.load_from(reset, &[b.clone(), j.clone()])
                });
            }
            Part::Cell => {
                let target = if wide == ty {
                    cx.output(1)
                } else {
                    cx.temporary("cell", wide, &[batch, size.into()])
                };
                cx.define(target, |cx, at| cell.cell(act, &stages.at(cx, at)));
                stages.cell_state = Some(target);
                if wide != ty {
                    cx.define(cx.output(1), |cx, at| cx.load_from(target, at).cast(ty));
                }
            }
            Part::Hidden => {
                cx.define(cx.output(0), |cx, at| {
                    cell.hidden(act, &stages.at(cx, at)).cast(ty)
                });
            }
        }
    }
}

/// `[batch, gate · size + h]`: the products of the weights with the inputs, and the biases.
fn of_inputs(network: &Network, cx: &mut Lower<'_>) -> BufferId {
    let wide = cx.element("X").compute();
    let x = cx.extents("X");
    let (batch, input_size) = (x[0], x[1]);
    let rows = network.cell.gates() * network.hidden_size;
    let inputs = cx.temporary("inputs", wide, &[batch, rows.into()]);
    cx.define(inputs, |cx, at| {
        let [b, row] = at else { return zero(wide) };
        let sum = cx.sum_of_products(&[input_size], wide, |cx, k| {
            let x = cx.load("X", &[b.clone(), k[0].clone()]);
            let w = cx.load("W", &[row.clone(), k[0].clone()]);
            (widened(x), widened(w))
        });
        match cx.has("B") {
            true => sum + widened(cx.load("B", std::slice::from_ref(row))),
            false => sum,
        }
    });
    inputs
}

/// The buffers that the stages of a cell share.
#[derive(Clone, Copy)]
struct Stages {
    size: usize,
    /// `[batch, gate · size + h]`
    inputs: BufferId,
    /// `[batch, gate · size + h]`
    products: BufferId,
    /// The new cell state, once there is one.
    cell_state: Option<BufferId>,
}

impl Stages {
    /// The products of `gates` with the vector that has `vector(b, j)`.
    fn multiply(
        &self,
        cx: &mut Lower<'_>,
        gates: Range<usize>,
        vector: impl FnOnce(&Lower<'_>, &Scalar, &Scalar) -> Scalar,
    ) {
        let wide = cx.type_of(self.products);
        let batch = cx.extents_of(self.products)[0];
        let domain = [batch, (gates.len() * self.size).into()];
        cx.stage(&domain, self.products, Mode::Set, |cx, at| {
            let row = row_of(&gates, self.size, &at[1]);
            let sum = cx.sum_of_products(&[self.size], wide, |cx, j| {
                let r = cx.load("R", &[row.clone(), j[0].clone()]);
                (vector(cx, &at[0], &j[0]), widened(r))
            });
            (vec![at[0].clone(), row], sum)
        });
    }

    fn at<'a, 'b>(&self, cx: &'a Lower<'b>, at: &'a [Scalar]) -> At<'a, 'b> {
        At {
            stages: *self,
            cx,
            b: &at[0],
            h: &at[1],
        }
    }
}

/// Element `h` of sample `b`.
struct At<'a, 'b> {
    stages: Stages,
    cx: &'a Lower<'b>,
    b: &'a Scalar,
    h: &'a Scalar,
}

impl At<'_, '_> {
    fn row(&self, gate: usize) -> Scalar {
        self.h + extent(gate * self.stages.size)
    }

    fn state(&self, name: &str) -> Scalar {
        widened(self.cx.load(name, &[self.b.clone(), self.h.clone()]))
    }
}

impl Frame for At<'_, '_> {
    fn input(&self, gate: usize) -> Scalar {
        let at = [self.b.clone(), self.row(gate)];
        self.cx.load_from(self.stages.inputs, &at)
    }

    fn bias(&self, gate: usize) -> Scalar {
        match self.cx.has("B") {
            true => widened(self.cx.load("B", &[self.row(gate)])),
            false => zero(self.cx.type_of(self.stages.inputs)),
        }
    }

    fn product(&self, gate: usize) -> Scalar {
        let at = [self.b.clone(), self.row(gate)];
        self.cx.load_from(self.stages.products, &at)
    }

    fn hidden_before(&self) -> Scalar {
        self.state("initial_hidden_state")
    }

    fn cell_before(&self) -> Scalar {
        self.state("initial_cell_state")
    }

    fn cell(&self) -> Scalar {
        match self.stages.cell_state {
            Some(buffer) => self.cx.load_from(buffer, &[self.b.clone(), self.h.clone()]),
            None => self.cell_before(),
        }
    }
}
