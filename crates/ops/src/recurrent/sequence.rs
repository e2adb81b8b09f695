//! The loop nest of a sequence.
//!
//! After the products of the weights with all inputs, one stage computes everything that depends on
//! the step before, in a buffer `states[direction, sample, step, slot, h]`. Its slots are the values of
//! the cell's parts, one after the other, so that the row-major order of the domain is the order in
//! which they need each other. Step 0 holds the initial states.
//!
//! A sample of length `n` takes its steps at the times `0 .. n`, or `n - 1 .. 0` in reverse. Steps
//! past its length are computed as well, and never looked at.

use super::formulas::{Frame, Part};
use super::network::{Direction, Network};
use crate::Lower;
use crate::elementwise::widened;
use crate::layout::index_map::extent;
use vinelift_nest::build::{index, select, zero};
use vinelift_nest::{BufferId, Mode, Policy, Scalar};
use vinelift_tensor::ElementType;

pub(super) fn lower(network: &Network, direction: Direction, cx: &mut Lower<'_>) {
    let ty = cx.element("X");
    let wide = ty.compute();
    let x = cx.shape("X");
    let (batch, steps, directions) = (x[0], x[1], direction.count());
    let cell = network.cell;
    let slots = Slots::new(network);
    let run = Run {
        network,
        direction,
        steps: extent(steps),
        lengths: lengths(cx, batch, steps),
        inputs: inputs(network, direction, cx),
        states: {
            let shape = [
                directions,
                batch,
                steps + 1,
                slots.count,
                network.hidden_size,
            ];
            cx.temporary("states", wide, &shape)
        },
        slots,
    };

    let mut initial = vec![(run.slots.hidden, "initial_hidden_state")];
    if cell.has_cell_state() {
        initial.push((run.slots.cell, "initial_cell_state"));
    }
    for (slot, name) in &initial {
        let domain = [directions, batch, network.hidden_size];
        cx.stage(&domain, run.states, Mode::Set, |cx, at| {
            let [d, b, h] = at else {
                return (vec![], zero(wide));
            };
            let state = cx.load(name, &[b.clone(), d.clone(), h.clone()]);
            let to = [d, b, &index(0), &index(*slot), h].map(Clone::clone);
            (to.to_vec(), widened(state))
        });
    }
    let domain = [
        directions,
        batch,
        steps,
        run.slots.count,
        network.hidden_size,
    ];
    cx.stage(&domain, run.states, Mode::Set, |cx, at| {
        let [d, b, step, slot, h] = at else {
            return (vec![], zero(wide));
        };
        let to = [d, b, &(step + 1), slot, h].map(Clone::clone);
        (to.to_vec(), run.value(cx, d, b, step, slot, h))
    });

    cx.define(cx.output(0), |cx, at| {
        let [b, d, t, h] = at else { return zero(ty) };
        let step = run.mirrored(cx, d, b, t) + 1;
        let state = run.state(cx, d, b, step, run.slots.hidden, h);
        let length = run.length(cx, b);
        select(t.lt(length), state.cast(ty), zero(ty))
    });
    for (k, (slot, _)) in initial.iter().enumerate() {
        cx.define(cx.output(k + 1), |cx, at| {
            let [b, d, h] = at else { return zero(ty) };
            let length = run.length(cx, b);
            let state = run.state(cx, d, b, length.clone(), *slot, h);
            select(length.gt(index(0)), state.cast(ty), zero(ty))
        });
    }
}

/// `[batch]`: the lengths, each at most `steps`.
fn lengths(cx: &mut Lower<'_>, batch: usize, steps: usize) -> BufferId {
    let lengths = cx.temporary("lengths", ElementType::I64, &[batch]);
    cx.define(lengths, |cx, at| {
        let length = cx.load("sequence_lengths", at);
        cx.wrap(length, steps + 1, Policy::CHECK, "sequence_lengths", at)
    });
    lengths
}

/// `[batch, time, direction, gate · hidden_size + h]`: the products of the weights with the inputs, and
/// the biases.
fn inputs(network: &Network, direction: Direction, cx: &mut Lower<'_>) -> BufferId {
    let x = cx.shape("X");
    let wide = cx.element("X").compute();
    let rows = network.cell.gates() * network.hidden_size;
    let inputs = cx.temporary("inputs", wide, &[x[0], x[1], direction.count(), rows]);
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

/// Where the values of the parts stand.
struct Slots {
    /// Each part with its first slot, in order.
    parts: Vec<(Part, i64)>,
    count: usize,
    hidden: i64,
    cell: i64,
}

impl Slots {
    fn new(network: &Network) -> Slots {
        let mut slots = Slots {
            parts: vec![],
            count: 0,
            hidden: 0,
            cell: 0,
        };
        for part in network.cell.parts() {
            let first = extent(slots.count);
            match part {
                Part::Hidden => slots.hidden = first,
                Part::Cell => slots.cell = first,
                _ => {}
            }
            slots.count += part.width();
            slots.parts.push((part, first));
        }
        slots
    }

    /// The slot of the product of `gate`.
    fn product(&self, gate: usize) -> i64 {
        let of = |(part, first): &(Part, i64)| match part {
            Part::Products(gates) if gates.contains(&gate) => {
                Some(first + extent(gate - gates.start))
            }
            Part::ProductOfReset(g) if *g == gate => Some(*first),
            _ => None,
        };
        self.parts.iter().find_map(of).unwrap_or(0)
    }

    fn reset(&self) -> i64 {
        let found = self.parts.iter().find(|(part, _)| *part == Part::Reset);
        found.map_or(0, |(_, first)| *first)
    }
}

struct Run<'n> {
    network: &'n Network,
    direction: Direction,
    steps: i64,
    slots: Slots,
    lengths: BufferId,
    inputs: BufferId,
    states: BufferId,
}

impl Run<'_> {
    /// The length of sample `b`.
    fn length(&self, cx: &Lower<'_>, b: &Scalar) -> Scalar {
        let length = cx.load_from(self.lengths, std::slice::from_ref(b));
        length.max(index(0)).min(index(self.steps))
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

    fn state(
        &self,
        cx: &Lower<'_>,
        d: &Scalar,
        b: &Scalar,
        step: Scalar,
        slot: i64,
        h: &Scalar,
    ) -> Scalar {
        let at = [d.clone(), b.clone(), step, index(slot), h.clone()];
        cx.load_from(self.states, &at)
    }

    /// The value of a slot after `step` more steps than none.
    fn value(
        &self,
        cx: &mut Lower<'_>,
        d: &Scalar,
        b: &Scalar,
        step: &Scalar,
        slot: &Scalar,
        h: &Scalar,
    ) -> Scalar {
        let (cell, act) = (self.network.cell, &self.network.activations);
        let size = extent(self.network.hidden_size);
        let wide = cx.type_of(self.states);
        let mut value: Option<Scalar> = None;
        for (part, first) in self.slots.parts.iter().rev() {
            // `R_gate` times the state in slot `of` after `step` steps.
            let multiply = |cx: &mut Lower<'_>, gate: Scalar, of: i64, step: Scalar| {
                let row = gate * size + h;
                let extents = [self.network.hidden_size];
                cx.sum_of_products(&extents, wide, |cx, j| {
                    let r = cx.load("R", &[d.clone(), row, j[0].clone()]);
                    (self.state(cx, d, b, step, of, &j[0]), widened(r))
                })
            };
            let before = step.clone();
            let this = match part {
                Part::Products(gates) => {
                    let gate = slot + (extent(gates.start) - first);
                    multiply(cx, gate, self.slots.hidden, before)
                }
                Part::ProductOfReset(gate) => {
                    multiply(cx, index(extent(*gate)), self.slots.reset(), step + 1)
                }
                Part::Reset | Part::Cell | Part::Hidden => {
                    let at = At {
                        run: self,
                        cx,
                        d,
                        b,
                        step,
                        h,
                    };
                    match part {
                        Part::Reset => cell.reset(act, &at),
                        Part::Cell => cell.cell(act, &at),
                        _ => cell.hidden(act, &at),
                    }
                }
            };
            let end = first + extent(part.width());
            value = Some(match value {
                Some(later) => select(slot.lt(index(end)), this, later),
                None => this,
            });
        }
        value.unwrap_or_else(|| zero(wide))
    }
}

/// Element `h` of sample `b` in a step.
struct At<'a, 'b> {
    run: &'a Run<'a>,
    cx: &'a Lower<'b>,
    d: &'a Scalar,
    b: &'a Scalar,
    step: &'a Scalar,
    h: &'a Scalar,
}

impl At<'_, '_> {
    fn row(&self, gate: usize) -> Scalar {
        self.h + extent(gate * self.run.network.hidden_size)
    }

    /// What stands in a slot after `more` more steps.
    fn slot(&self, slot: i64, more: i64) -> Scalar {
        let step = if more == 0 {
            self.step.clone()
        } else {
            self.step + more
        };
        self.run.state(self.cx, self.d, self.b, step, slot, self.h)
    }
}

impl Frame for At<'_, '_> {
    fn input(&self, gate: usize) -> Scalar {
        let t = self.run.mirrored(self.cx, self.d, self.b, self.step);
        let at = [self.b.clone(), t, self.d.clone(), self.row(gate)];
        self.cx.load_from(self.run.inputs, &at)
    }

    fn bias(&self, gate: usize) -> Scalar {
        widened(self.cx.load("B", &[self.d.clone(), self.row(gate)]))
    }

    fn product(&self, gate: usize) -> Scalar {
        self.slot(self.run.slots.product(gate), 1)
    }

    fn hidden_before(&self) -> Scalar {
        self.slot(self.run.slots.hidden, 0)
    }

    fn cell_before(&self) -> Scalar {
        self.slot(self.run.slots.cell, 0)
    }

    fn cell(&self) -> Scalar {
        self.slot(self.run.slots.cell, 1)
    }
}
