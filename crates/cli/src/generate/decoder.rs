//! A model that says of every token how likely it is to be next.

use crate::failure::Failure;
use vinelift::{CompiledModel, ElementType, InferRequest, Port, Tensor};

/// The purpose of a decoder's input.
#[derive(Clone, Copy)]
enum Role {
    /// The tokens that it has not been given yet.
    Tokens,
    /// One for every token so far.
    Mask,
    /// The places of the tokens in the text.
    Positions,
    /// Which text of the run before each text goes on with: there is one.
    Beams,
}

impl Role {
    const TOKENS: &str = "input_ids";
    const OTHERS: [(&str, Role); 3] = [
        ("attention_mask", Role::Mask),
        ("position_ids", Role::Positions),
        ("beam_idx", Role::Beams),
    ];

    fn of(port: &Port) -> Option<Role> {
        let is = |name: &str| port.names.iter().any(|n| n == name);
        let others = Role::OTHERS.iter();
        let other = || others.copied().find(|(name, _)| is(name));
        match is(Role::TOKENS) {
            true => Some(Role::Tokens),
            false => other().map(|(_, role)| role),
        }
    }
}

const OUTPUT: &str = "logits";

/// A model with the text that it has been given.
pub(super) struct Decoder {
    request: InferRequest,
    /// In the model's order.
    inputs: Vec<(Role, ElementType)>,
    output: usize,
    /// Tokens of runs before that must be given again: all, if the model has no variables to keep them in.
    again: Vec<usize>,
    /// How many tokens its variables are about.
    seen: usize,
    has_variables: bool,
}

impl Decoder {
    /// # Errors
    /// If the model takes or gives something else than what a decoder does.
    pub(super) fn new(model: &CompiledModel) -> Result<Decoder, Failure> {
        let roles: Option<Vec<Role>> = model.inputs().iter().map(Role::of).collect();
        let roles = roles.filter(|roles| roles.iter().any(|role| matches!(role, Role::Tokens)));
        let is_logits = |port: &Port| port.names.iter().any(|name| name == OUTPUT);
        let output = model.outputs().iter().position(is_logits);
        let (Some(roles), Some(output)) = (roles, output) else {
            return Err(Failure::Message(no_decoder(model)));
        };
        for port in model.inputs() {
            if !matches!(port.element_type, ElementType::I32 | ElementType::I64) {
                return Err(Failure::Message(format!(
                    "input '{}' is of type {}, expected i32 or i64",
                    port.name(),
                    port.element_type
                )));
            }
        }
        let types = model.inputs().iter().map(|port| port.element_type);
        Ok(Decoder {
            inputs: roles.into_iter().zip(types).collect(),
            output,
            again: Vec::new(),
            seen: 0,
            has_variables: !model.model().summary().variables.is_empty(),
            request: model.create_request(),
        })
    }

    /// The logits of the token that comes after `tokens`, which come after those of the calls before.
    ///
    /// # Errors
    /// If the model does not accept a text of this length, or its output has not one row for each token.
    pub(super) fn next(&mut self, tokens: &[usize]) -> Result<Vec<f64>, Failure> {
        let given = [self.again.as_slice(), tokens].concat();
        let (seen, new) = (self.seen, given.len());
        let end = seen.checked_add(new);
        let end = end.ok_or_else(|| Failure::Message("the text is too long".to_owned()))?;
        for (position, (role, ty)) in self.inputs.iter().enumerate() {
            let tensor = match role {
                Role::Tokens => tensor(*ty, &[1, new], &given)?,
                Role::Mask => tensor(*ty, &[1, end], &vec![1; end])?,
                Role::Positions => tensor(*ty, &[1, new], &(seen..end).collect::<Vec<_>>())?,
                Role::Beams => tensor(*ty, &[1], &[0])?,
            };
            self.request.set_input_at(position, tensor)?;
        }
        self.request.infer()?;
        if self.has_variables {
            self.seen = end;
        } else {
            self.again = given;
        }
        self.last_row()
    }

    /// The logits after the last token.
    fn last_row(&self) -> Result<Vec<f64>, Failure> {
        let logits = self.request.output(self.output)?;
        let row = match logits.shape() {
            [1, rows, row] if *rows > 0 => *row,
            shape => {
                return Err(Failure::Message(format!(
                    "output '{OUTPUT}' has shape {shape:?}, expected [1, tokens of the text, tokens of the vocabulary]"
                )));
            }
        };
        // A long text has many rows, of which one is needed.
        let last = |count: usize| count.saturating_sub(row)..;
        if logits.element_type() == ElementType::F32 {
            let all = logits.as_slice::<f32>().map_err(vinelift::Error::from)?;
            return Ok(all[last(all.len())].iter().map(|x| f64::from(*x)).collect());
        }
        let all = logits.to_f64_vec().map_err(vinelift::Error::from)?;
        Ok(all[last(all.len())].to_vec())
    }
}

/// A tensor of type `i32` or `i64`.
fn tensor(ty: ElementType, shape: &[usize], values: &[usize]) -> Result<Tensor, Failure> {
    let tensor = match ty {
        ElementType::I32 => Tensor::from_slice::<i32>(shape, &numbers(values)?),
        _ => Tensor::from_slice::<i64>(shape, &numbers(values)?),
    };
    Ok(tensor.map_err(vinelift::Error::from)?)
}

fn numbers<T: TryFrom<usize>>(values: &[usize]) -> Result<Vec<T>, Failure> {
    let number = |value: &usize| {
        let too_large = || Failure::Message(format!("{value} is too large for an input"));
        T::try_from(*value).map_err(|_| too_large())
    };
    values.iter().map(number).collect()
}

/// The message that a model has other inputs and outputs, with both.
fn no_decoder(model: &CompiledModel) -> String {
    let list = |ports: &[Port]| match ports {
        [] => "none".to_owned(),
        ports => {
            let names = ports.iter().map(|port| format!("'{}'", port.name()));
            names.collect::<Vec<_>>().join(", ")
        }
    };
    let others = Role::OTHERS.map(|(name, _)| format!("'{name}'"));
    format!(
        "the model '{}' does not go on with a text: its inputs are {} and its outputs {}; expected are the input '{}', with {} or without, and the output '{OUTPUT}'",
        model.model().name(),
        list(model.inputs()),
        list(model.outputs()),
        Role::TOKENS,
        others.join(", ")
    )
}
