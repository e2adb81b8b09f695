//! Scalars, from a list of tasks.

use super::emitter::{Emitter, MOST_INSTRUCTIONS, Refusal, Result, no_primitive, register};
use super::state::{Binding, Reduce, Select, Task};
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Value};
use vinelift_nest::{Axis, AxisId, Binary, FoldBounds, Kind, Scalar, Unary};
use vinelift_tensor::ElementType;

impl<'n> Emitter<'n, '_> {
    /// Computes scalars in the current scope, in their order.
    pub(crate) fn compute(&mut self, scalars: impl IntoIterator<Item = &'n Scalar>) -> Result {
        self.need(scalars);
        while let Some(task) = self.tasks.pop() {
            if self.builder.func.dfg.num_insts() > MOST_INSTRUCTIONS {
                return Err(Refusal::TooLarge);
            }
            self.run(task)?;
        }
        Ok(())
    }

    /// Puts scalars on the list, the first on top.
    pub(super) fn need(&mut self, scalars: impl IntoIterator<Item = &'n Scalar>) {
        let below = self.tasks.len();
        self.tasks.extend(scalars.into_iter().map(Task::Need));
        self.tasks[below..].reverse();
    }

    fn run(&mut self, task: Task<'n>) -> Result {
        match task {
            Task::Need(x) if self.is_known(x) => {}
            Task::Need(x) => self.begin(x)?,
            Task::Finish(x) => self.finish(x)?,
            Task::Choose(select) => self.choose(select),
            Task::Otherwise { select, no, join } => {
                self.leave(select.yes, join);
                self.builder.switch_to_block(no);
                self.open_scope();
            }
            Task::Join { select, join } => {
                self.leave(select.no, join);
                let ty = register(select.whole.ty());
                let value = self.builder.append_block_param(join, ty);
                self.builder.switch_to_block(join);
                self.set(select.whole, value);
            }
            Task::Start(reduce) => self.start(reduce),
            Task::Hoist(reduce) => {
                let ready = self.ready([reduce.body].into_iter());
                self.need(ready);
            }
            Task::Open(axis, turns) => {
                let accumulator: Vec<Value> =
                    self.accumulators.last().copied().into_iter().collect();
                let carried = match turns {
                    Some(turns) => self.open_loop(axis, turns, 1, &accumulator),
                    None => self.open_loop_by(axis, 1, &accumulator),
                };
                if let (Some(top), [carried]) = (self.accumulators.last_mut(), &carried[..]) {
                    *top = *carried;
                }
            }
            Task::Fold(reduce) => self.fold(reduce)?,
            Task::Report {
                whole,
                wrap,
                index,
                resume,
            } => {
                self.report(wrap);
                self.close_scope();
                self.builder.switch_to_block(resume);
                self.set(whole, index);
            }
        }
        Ok(())
    }

    /// Puts what `x` is made of on the list, and then itself.
    fn begin(&mut self, x: &'n Scalar) -> Result {
        match x.kind() {
            Kind::Const(bits) => {
                let value = self.constant(bits.0, x.ty());
                self.set(x, value);
            }
            Kind::Extent(extent) => {
                let value = self.extent(*extent);
                self.set(x, value);
            }
            Kind::Axis(id) => {
                let value = self.axis(*id)?;
                self.set(x, value);
            }
            Kind::Load { buffer, at } => {
                let linear = self.analysis.linear(*buffer, at);
                self.tasks.push(Task::Finish(x));
                let leaves: Vec<&'n Scalar> = linear.leaves().collect();
                self.need(leaves);
            }
            Kind::Wrap(wrap) => {
                self.tasks.push(Task::Finish(x));
                self.need([&wrap.index]);
            }
            Kind::Select(condition, yes, no) => {
                self.tasks.push(Task::Choose(Select {
                    whole: x,
                    condition,
                    yes,
                    no,
                }));
                self.need([condition]);
            }
            Kind::Reduce {
                op,
                axes,
                init,
                body,
            } => {
                let bounds = FoldBounds::of(x);
                self.tasks.push(Task::Start(Reduce {
                    whole: x,
                    op: *op,
                    axes,
                    init,
                    body: bounds.map_or(body, |bounds| bounds.value),
                    bounds,
                }));
                let ends = bounds.into_iter().flat_map(FoldBounds::ends);
                let needed: Vec<&'n Scalar> = std::iter::once(init).chain(ends).collect();
                self.need(needed);
            }
            Kind::Unary(..) | Kind::Binary(..) | Kind::Cast(_) | Kind::Bitcast(_) => {
                self.tasks.push(Task::Finish(x));
                match x.as_sum() {
                    Some(operands) => self.need(operands),
                    None => self.need(x.children()),
                }
            }
        }
        Ok(())
    }

    fn axis(&mut self, id: AxisId) -> Result<Value> {
        match self.axes.get(&id) {
            Some(&Binding { value, plus: 0, .. }) => Ok(value),
            Some(&Binding { value, plus, .. }) => Ok(self.builder.ins().iadd_imm_s(value, plus)),
            None => no_primitive(format_args!("axis {}, which is not in scope", id.0)),
        }
    }

    fn finish(&mut self, x: &'n Scalar) -> Result {
        if let Some([sum, a, b]) = x.as_sum() {
            let value = self.add_term(x.ty(), self.get(sum), self.get(a), self.get(b))?;
            self.set(x, value);
            return Ok(());
        }
        let value = match x.kind() {
            Kind::Load { buffer, at } => self.load_checked(*buffer, x.ty(), at),
            Kind::Wrap(wrap) => {
                self.wrap(x, wrap);
                return Ok(());
            }
            Kind::Unary(op, y) => self.unary(*op, y.ty(), self.get(y))?,
            Kind::Binary(op @ (Binary::Div | Binary::Rem), a, b)
                if a.ty() == ElementType::I64 && self.is_natural(a) && self.is_natural(b) =>
            {
                self.divide_natural(*op, self.get(a), self.get(b), b.as_const())
            }
            Kind::Binary(op, a, b) => {
                self.binary(*op, a.ty(), self.get(a), self.get(b), b.as_const())?
            }
            Kind::Cast(y) => self.cast(self.get(y), y.ty(), x.ty())?,
            Kind::Bitcast(y) => self.bitcast(self.get(y), y.ty(), x.ty()),
            Kind::Select(c, yes, no) => {
                let (c, yes, no) = (self.get(c), self.get(yes), self.get(no));
                self.builder.ins().select(c, yes, no)
            }
            Kind::Const(_) | Kind::Axis(_) | Kind::Extent(_) | Kind::Reduce { .. } => return Ok(()),
        };
        self.set(x, value);
        Ok(())
    }

    fn is_natural(&mut self, x: &Scalar) -> bool {
        self.analysis.ranges.of(x).low >= 0
    }

    /// Sides that are arithmetic alone are both evaluated, unless one is rarely taken; otherwise only the one that is taken.
    fn choose(&mut self, select: Select<'n>) {
        let Select {
            whole,
            condition,
            yes,
            no,
        } = select;
        let is_rare = matches!(condition.kind(), Kind::Unary(Unary::Rarely, _));
        if !is_rare && !self.has_effect(yes) && !self.has_effect(no) {
            self.tasks.push(Task::Finish(whole));
            self.need([yes, no]);
            return;
        }
        // Otherwise what both sides share would be emitted twice, and what it shares four times.
        let both = self.in_both(yes, no);
        if !both.is_empty() {
            self.tasks.push(Task::Choose(select));
            self.need(both);
            return;
        }
        let condition = self.get(select.condition);
        let b = &mut self.builder;
        let (if_yes, if_no, join) = (b.create_block(), b.create_block(), b.create_block());
        b.ins().brif(condition, if_yes, &[], if_no, &[]);
        b.switch_to_block(if_yes);
        self.open_scope();
        self.tasks.extend([
            Task::Join { select, join },
            Task::Need(no),
            Task::Otherwise {
                select,
                no: if_no,
                join,
            },
            Task::Need(yes),
        ]);
    }

    /// Ends a side of a select with its value.
    fn leave(&mut self, side: &Scalar, join: Block) {
        let value = self.get(side);
        self.builder.ins().jump(join, &[BlockArg::from(value)]);
        self.close_scope();
    }

    fn start(&mut self, reduce: Reduce<'n>) {
        let init = self.get(reduce.init);
        if reduce.axes.iter().any(|axis| axis.extent == 0) {
            self.set(reduce.whole, init);
            return;
        }
        self.accumulators.push(init);
        self.analysis.ranges.bind(reduce.axes);
        self.tasks.push(Task::Fold(reduce));
        match reduce.body.as_term() {
            Some((x, y)) => self.need([x, y]),
            None => self.need([reduce.body]),
        }
        if let Some(bounds) = reduce.bounds {
            let turns = self.turns_between(bounds);
            self.tasks.push(Task::Open(bounds.axis, Some(turns)));
            return;
        }
        for &axis in reduce.axes.iter().filter(|axis| axis.extent == 1) {
            self.bind_point(axis);
        }
        for &axis in reduce.axes.iter().filter(|axis| axis.extent > 1).rev() {
            self.tasks
                .extend([Task::Open(axis, None), Task::Hoist(reduce)]);
        }
    }

    fn fold(&mut self, reduce: Reduce<'n>) -> Result {
        let Some(old) = self.accumulators.pop() else {
            return Ok(());
        };
        let ty = reduce.whole.ty();
        let mut value = match reduce.body.as_term() {
            Some((x, y)) => self.add_term(ty, old, self.get(x), self.get(y))?,
            None => {
                let [a, b] = reduce.op.fold_operands(ty, old, self.get(reduce.body));
                self.binary(reduce.op, ty, a, b, None)?
            }
        };
        let has_loop = |axis: &&Axis| axis.extent > 1 || reduce.bounds.is_some();
        for _ in reduce.axes.iter().filter(has_loop) {
            value = self.close_loop(&[value]).first().copied().unwrap_or(value);
        }
        for axis in reduce.axes {
            self.axes.remove(&axis.id);
        }
        self.set(reduce.whole, value);
        Ok(())
    }

    /// `sum` and the term `x · y`.
    fn add_term(&mut self, ty: ElementType, sum: Value, x: Value, y: Value) -> Result<Value> {
        if ty.is_float() {
            return Ok(self.builder.ins().fma(x, y, sum));
        }
        let term = self.binary(Binary::Mul, ty, x, y, None)?;
        self.binary(Binary::Add, ty, sum, term, None)
    }

    pub(super) fn unary(&mut self, op: Unary, ty: ElementType, x: Value) -> Result<Value> {
        match ty {
            ElementType::F32 | ElementType::F64 => self.float_unary(op, ty, x),
            _ => self.integer_unary(op, ty, x),
        }
    }

    /// `y_bits` are the bits of `y` if it is a constant.
    pub(super) fn binary(
        &mut self,
        op: Binary,
        ty: ElementType,
        x: Value,
        y: Value,
        y_bits: Option<u64>,
    ) -> Result<Value> {
        match ty {
            ElementType::F32 | ElementType::F64 => self.float_binary(op, ty, x, y),
            _ => self.integer_binary(op, ty, x, y, y_bits),
        }
    }
}
