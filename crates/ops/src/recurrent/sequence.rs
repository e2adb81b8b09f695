//! The loop nest of a sequence.
//!
//! After the products of the weights with all inputs, the parts of a step take turns: a stage for each,
//! once for every step. Hidden and cell states are kept for all steps; those of step 0 are the initial
//! ones. Products and the state behind the reset gate are only those of the current step.
//!
//! A sample of length `n` takes its steps at the times `0 .. n`, or `n - 1 .. 0` in reverse. Steps
//! past its length are computed as well, and never looked at.

use super::formulas::{Frame, Part};
use super::network::{Direction, Network, row_of};
use crate::Lower;
use crate::elementwise::widened;
use crate::layout::index_map::extent;
use vinelift_nest::build::{index, select, zero};
use vinelift_nest::{BufferId, Mode, Policy, Scalar};
use vinelift_tensor::{ElementType, Extent};

pub(super) fn lower(network: &Network, direction: Direction, cx: &mut Lower<'_>) {
    let ty = cx.element("X");
    let wide = ty.compute();
    let x = cx.extents("X");
    let (batch, steps, directions) = (x[0], x[1], Extent::from(direction.count()));
    let cell = network.cell;
    let size = network.hidden_size;
    let lengths = lengths(cx, batch, steps);
    let inputs = inputs(network, direction, cx);
    let of_step = |count: usize| [directions, batch, count.into()];
    let of_all = [steps.sum(Extent::ONE), directions, batch, size.into()];
    let products = of_step(cell.gates() * size);
    let stages = Stages {
        network,
        direction,
        steps,
        lengths,
        inputs,
        hidden: cx.temporary("hidden", wide, &of_all),
        cell: match cell.has_cell_state() {
            true => Some(cx.temporary("cell", wide, &of_all)),
            false => None,
        },
        products: cx.temporary("products", wide, &products),
        reset: match cell.parts().contains(&Part::Reset) {
            true => Some(cx.temporary("reset", wide, &of_step(size))),
            false => None,
        },
    };

    let mut states = vec![(stages.hidden, "initial_hidden_state")];
    states.extend(stages.cell.map(|cell| (cell, "initial_cell_state")));
    for &(states, name) in &states {
        cx.stage(&of_step(size), states, Mode::Set, |cx, at| {
            let [d, b, h] = at else {
                return (vec![], zero(wide));
            };
            let state = cx.load(name, &[b.clone(), d.clone(), h.clone()]);
            let to = [&index(0), d, b, h].map(Clone::clone);
            (to.to_vec(), widened(state))
        });
    }
    cx.in_turns(|cx| {
        for part in cell.parts() {
            stages.part(cx, &part);
        }
    });

    outputs(&stages, &states, cx);
}

/// The hidden states of all steps, and of `states` those after the last step.
fn outputs(stages: &Stages<'_>, states: &[(BufferId, &str)], cx: &mut Lower<'_>) {
    let ty = cx.element("X");
    cx.define(cx.output(0), |cx, at| {
        let [b, d, t, h] = at else { return zero(ty) };
        let step = stages.mirrored(cx, d, b, t) + 1;
        let state = cx.load_from(stages.hidden, &[step, d.clone(), b.clone(), h.clone()]);
        let length = stages.length(cx, b);
        select(t.lt(length), state.cast(ty), zero(ty))
    });
    for (k, &(states, _)) in states.iter().enumerate() {
        cx.define(cx.output(k + 1), |cx, at| {
            let [b, d, h] = at else { return zero(ty) };
            let length = stages.length(cx, b);
            let at = [length.clone(), d.clone(), b.clone(), h.clone()];
            let state = cx.load_from(states, &at);
            select(length.gt(index(0)), state.cast(ty), zero(ty))
        });
    }
}

/// `[batch]`: the lengths, each at most `steps`.
fn lengths(cx: &mut Lower<'_>, batch: Extent, steps: Extent) -> BufferId {
    let lengths = cx.temporary("lengths", ElementType::I64, &[batch]);
    cx.define(lengths, |cx, at| {
        let length = cx.load("sequence_lengths", at);
        let extent = steps.sum(Extent::ONE);
        cx.wrap(length, extent, Policy::CHECK, "sequence_lengths", at)
    });
    lengths
}

/// `[batch, time, direction, gate · hidden_size + h]`: the products of the weights with the inputs, and
/// the biases.
fn inputs(network: &Network, direction: Direction, cx: &mut Lower<'_>) -> BufferId {
    let x = cx.extents("X");
    let wide = cx.element("X").compute();
    let rows = network.cell.gates() * network.hidden_size;
    let shape = [x[0], x[1], direction.count().into(), rows.into()];
    let inputs = cx.temporary("inputs", wide, &shape);
    cx.define(inputs, |cx, at| {
        let [b, t, d, row] = at else {
            return zero(wide);
        };
        let sum = cx.sum_of_products(&x[2..], wide, |cx, k| {
            let x = cx.load("X", &[b.clone(), t.clone(), k[0].clone()]);
            let w = cx.load("W", &[d.clone(), row.clone(), k[0].clone()]);
            (widened(x), widened(w))
        });
        sum + widened(cx.load("B", &[d.clone(), row.clone()]))
    });
    inputs
}

/// The buffers that the stages of a sequence share.
struct Stages<'n> {
    network: &'n Network,
    direction: Direction,
    steps: Extent,
    lengths: BufferId,
    inputs: BufferId,
    /// `[step, direction, batch, h]`: the states before each step, and after the last.
    hidden: BufferId,
    /// As `hidden`, if there is a cell state.
    cell: Option<BufferId>,
    /// `[direction, batch, gate · hidden_size + h]`, of the current step.
    products: BufferId,
    /// `[direction, batch, h]`: the state behind the reset gate, of the current step.
    reset: Option<BufferId>,
}

impl Stages<'_> {
    /// The length of sample `b`.
    fn length(&self, cx: &Lower<'_>, b: &Scalar) -> Scalar {
        let length = cx.load_from(self.lengths, std::slice::from_ref(b));
        length.max(index(0)).min(Scalar::extent(self.steps))
    }

    /// The time of a step in direction `d`, and the step at a time, within the sample's length.
    fn mirrored(&self, cx: &Lower<'_>, d: &Scalar, b: &Scalar, t: &Scalar) -> Scalar {
        if self.direction == Direction::Forward {
            return t.clone();
        }
        let reverse = (self.length(cx, b) - 1 - t).max(index(0));
        match self.direction {
            Direction::Bidirectional => select(d.eq(index(0)), t.clone(), reverse),
            _ => reverse,
        }
    }

    /// The stage that computes a part in every step.
    fn part(&self, cx: &mut Lower<'_>, part: &Part) {
        let (cell, act) = (self.network.cell, &self.network.activations);
        let (hidden, wide) = (self.hidden, cx.type_of(self.hidden));
        match part {
            Part::Products(gates) => self.multiply(cx, gates.clone(), |at| {
                let [step, d, b, j] = at;
                (hidden, [step, d, b, j].map(Clone::clone).to_vec())
            }),
            Part::ProductOfReset(gate) => {
                let Some(reset) = self.reset else { return };
                self.multiply(cx, *gate..gate + 1, |[_, d, b, j]| {
                    (reset, [d, b, j].map(Clone::clone).to_vec())
                });
            }
            Part::Reset | Part::Cell | Part::Hidden => {
                let all = cx.extents_of(hidden);
                let domain = [self.steps, all[1], all[2], all[3]];
                let target = match part {
                    Part::Reset => self.reset,
                    Part::Cell => self.cell,
                    _ => Some(hidden),
                };
                let Some(target) = target else { return };
                cx.stage(&domain, target, Mode::Set, |cx, at| {
                    let [step, d, b, h] = at else {
                        return (vec![], zero(wide));
                    };
                    let at = At {
                        stages: self,
                        cx,
                        step,
                        d,
                        b,
                        h,
                    };
                    let value = match part {
                        Part::Reset => cell.reset(act, &at),
                        Part::Cell => cell.cell(act, &at),
                        _ => cell.hidden(act, &at),
                    };
                    let own = [d, b, h].map(Clone::clone);
                    let to = match part {
                        Part::Reset => own.to_vec(),
                        _ => [&[step + 1], &own[..]].concat(),
                    };
                    (to, value)
                });
            }
        }
    }

    /// The products of `gates` with the vector whose element at `[step, direction, batch, j]` `vector`
    /// finds.
    fn multiply(
        &self,
        cx: &mut Lower<'_>,
        gates: std::ops::Range<usize>,
        vector: impl FnOnce([&Scalar; 4]) -> (BufferId, Vec<Scalar>),
    ) {
        let wide = cx.type_of(self.products);
        let all = cx.extents_of(self.hidden);
        let size = self.network.hidden_size;
        let rows = gates.len() * size;
        let domain = [self.steps, all[1], all[2], rows.into()];
        cx.stage(&domain, self.products, Mode::Set, |cx, at| {
            let [step, d, b, row] = at else {
                return (vec![], zero(wide));
            };
            let row = row_of(&gates, size, row);
            let sum = cx.sum_of_products(&[size], wide, |cx, j| {
                let (buffer, from) = vector([step, d, b, &j[0]]);
                let r = cx.load("R", &[d.clone(), row.clone(), j[0].clone()]);
                (cx.load_from(buffer, &from), widened(r))
            });
            (vec![d.clone(), b.clone(), row], sum)
        });
    }
}

/// Element `h` of sample `b` in a step in direction `d`.
struct At<'a, 'b> {
    stages: &'a Stages<'a>,
    cx: &'a Lower<'b>,
    step: &'a Scalar,
    d: &'a Scalar,
    b: &'a Scalar,
    h: &'a Scalar,
}

impl At<'_, '_> {
    fn row(&self, gate: usize) -> Scalar {
        self.h + extent(gate * self.stages.network.hidden_size)
    }

    /// The element of a buffer over all steps, `more` steps later.
    fn state(&self, states: BufferId, more: i64) -> Scalar {
        let step = match more {
            0 => self.step.clone(),
            more => self.step + more,
        };
        let at = [&step, self.d, self.b, self.h].map(Clone::clone);
        self.cx.load_from(states, &at)
    }
}

impl Frame for At<'_, '_> {
    fn input(&self, gate: usize) -> Scalar {
        let t = self.stages.mirrored(self.cx, self.d, self.b, self.step);
        let at = [self.b.clone(), t, self.d.clone(), self.row(gate)];
        self.cx.load_from(self.stages.inputs, &at)
    }

    fn bias(&self, gate: usize) -> Scalar {
        widened(self.cx.load("B", &[self.d.clone(), self.row(gate)]))
    }

    fn product(&self, gate: usize) -> Scalar {
        let at = [self.d.clone(), self.b.clone(), self.row(gate)];
        self.cx.load_from(self.stages.products, &at)
    }

    fn hidden_before(&self) -> Scalar {
        self.state(self.stages.hidden, 0)
    }

    fn cell_before(&self) -> Scalar {
        self.state(self.stages.cell.unwrap_or(self.stages.hidden), 0)
    }

    fn cell(&self) -> Scalar {
        self.state(self.stages.cell.unwrap_or(self.stages.hidden), 1)
    }
}
