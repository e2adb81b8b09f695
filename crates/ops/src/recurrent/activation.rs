//! The activation functions of a network: the attributes `activations`, `activations_alpha`,
//! `activations_beta` and `clip`.

use crate::OpError;
use crate::elementwise::sigmoid;
use crate::error::ensure;
use serde::Deserialize;
use vinelift_nest::Scalar;
use vinelift_nest::build::{clamp, number, zero};

/// An activation function by its name.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Function {
    Sigmoid,
    Tanh,
    Relu,
    /// `max(0, min(1, alpha · x + beta))`, which the specifications do not list and OpenVINO has.
    HardSigmoid,
}

/// The functions of a network, called `f`, `g` and `h` in this order, and the bound before them.
#[derive(Debug)]
pub(super) struct Activations {
    functions: Vec<Function>,
    alpha: Vec<f64>,
    beta: Vec<f64>,
    /// Infinite if there is none.
    clip: f64,
}

impl Activations {
    /// `defaults` say how many there are. A `clip` of 0 is none, and so is an empty list of functions, as in
    /// the files that OpenVINO writes. `alpha` and `beta` belong to the functions in the same places, and mean something to
    /// the hard sigmoid alone.
    ///
    /// Networks of two `directions` that come from ONNX list the functions, and what belongs to them, once for each
    /// direction. The specifications know one list for both, so both must be the same.
    pub(super) fn new(
        functions: Option<Vec<Function>>,
        defaults: &[Function],
        directions: usize,
        alpha: Vec<f64>,
        beta: Vec<f64>,
        clip: Option<f64>,
    ) -> Result<Activations, OpError> {
        let functions = functions.filter(|functions| !functions.is_empty());
        let mut functions = functions.unwrap_or_else(|| defaults.to_vec());
        let n = defaults.len();
        if directions == 2 && functions.len() == 2 * n {
            let (first, second) = functions.split_at(n);
            ensure!(
                first == second,
                "`activations` of both directions must be the same, found {} and {}",
                names(first),
                names(second)
            );
            for (name, list) in [("alpha", &alpha), ("beta", &beta)] {
                ensure!(
                    list.len() <= n || list.len() == 2 * n && list[..n] == list[n..],
                    "`activations_{name}` of both directions must be the same, found {list:?}"
                );
            }
            functions.truncate(n);
        }
        ensure!(
            functions.len() == defaults.len(),
            "`activations` must have {} elements, found {}",
            defaults.len(),
            functions.len()
        );
        let clip = clip.unwrap_or(f64::INFINITY);
        let is_bound = clip >= 0.0;
        ensure!(is_bound, "`clip` must be at least 0, found {clip}");
        let clip = if clip == 0.0 { f64::INFINITY } else { clip };
        Ok(Activations {
            functions,
            alpha,
            beta,
            clip,
        })
    }

    /// Function `k` of `x` cut to `-clip..=clip`.
    pub(super) fn clipped(&self, k: usize, x: Scalar) -> Scalar {
        let x = if self.clip.is_finite() {
            clamp(x, -self.clip, self.clip)
        } else {
            x
        };
        self.plain(k, x)
    }

    /// Function `k` of `x`.
    pub(super) fn plain(&self, k: usize, x: Scalar) -> Scalar {
        match self.functions[k] {
            Function::Sigmoid => sigmoid(&x),
            Function::Tanh => x.tanh(),
            Function::Relu => zero(x.ty()).max(x),
            Function::HardSigmoid => {
                let parameter = |list: &[f64], default: f64| {
                    number(list.get(k).copied().unwrap_or(default), x.ty())
                };
                let (alpha, beta) = (parameter(&self.alpha, 0.2), parameter(&self.beta, 0.5));
                clamp(&x * alpha + beta, 0.0, 1.0)
            }
        }
    }
}

fn names(functions: &[Function]) -> String {
    let names = functions.iter().map(|f| format!("{f:?}").to_lowercase());
    names.collect::<Vec<_>>().join(", ")
}
