//! The inputs of an operator.

/// The names of an operator's inputs.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    names: &'static [&'static str],
    optional: usize,
    variadic: bool,
}

impl Signature {
    /// All of these.
    pub const fn new(names: &'static [&'static str]) -> Signature {
        Signature {
            names,
            optional: 0,
            variadic: false,
        }
    }

    /// The last `count` names may be missing.
    pub const fn optional(self, count: usize) -> Signature {
        Signature {
            optional: count,
            ..self
        }
    }

    /// The last name may stand for any number of inputs, at least one.
    pub const fn variadic(self) -> Signature {
        Signature {
            variadic: true,
            ..self
        }
    }

    /// Position of the input called `name`.
    ///
    /// # Panics
    /// If the signature has no such name, which is a slip in the operator's own file.
    pub fn position(&self, name: &str) -> usize {
        match self.names.iter().position(|n| *n == name) {
            Some(i) => i,
            None => panic!("the signature {:?} has no input `{name}`", self.names),
        }
    }

    /// Name of input `i`.
    pub fn name(&self, i: usize) -> &'static str {
        self.names
            .get(i)
            .or(self.names.last())
            .copied()
            .unwrap_or("input")
    }

    /// Whether `count` inputs fit.
    pub fn accepts(&self, count: usize) -> bool {
        let most = if self.variadic {
            usize::MAX
        } else {
            self.names.len()
        };
        (self.names.len() - self.optional..=most).contains(&count)
    }

    /// `data, indices, [axis]`
    pub fn describe(&self) -> String {
        let required = self.names.len() - self.optional;
        let name = |(i, n): (usize, &&str)| {
            if i < required {
                n.to_string()
            } else {
                format!("[{n}]")
            }
        };
        let list: Vec<String> = self.names.iter().enumerate().map(name).collect();
        list.join(", ") + if self.variadic { ", …" } else { "" }
    }
}
