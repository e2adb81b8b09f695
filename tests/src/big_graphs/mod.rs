//! Random graphs whose tensors are large enough for every optimisation to switch on: blocks of contractions, packed
//! weights, kernels that follow others, tasks of several threads, updates in place.
//!
//! [`grow`] makes a graph of choices, [`check`] runs it in ways that must give the same bits (see `run` and `shapes`). What
//! differs is made as small as it can be (`minimise`) and described in the message.

mod case;
mod choices;
mod fill;
mod grow;
mod listing;
mod minimise;
mod pick;
mod run;
mod shapes;
mod source;
mod steps;

pub use case::Case;
pub use choices::Choices;
pub use grow::grow;
pub use minimise::check;

/// How many families of graphs there are. The first choice says which it is: as many seeds in a row have one of each.
pub const FAMILIES: usize = steps::FAMILIES.len();

#[cfg(test)]
mod tests {
    use super::{Choices, FAMILIES, grow};
    use crate::big_graphs::case::Kind;
    use std::collections::BTreeSet;
    use vinelift::ElementType;

    /// So a test of a minute has them, too.
    #[test]
    fn a_few_hundred_graphs_have_all_kinds_of_nodes() {
        let (mut operators, mut types, mut families) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let (mut large, mut unknown) = (0, 0);
        for seed in 0..300 {
            let case = grow(&mut Choices::of_seed(seed));
            families.insert(case.family());
            unknown += usize::from(case.batch.is_some());
            for node in &case.nodes {
                let (ty, shape) = &node.outputs[0];
                types.insert(ty.to_string());
                large += usize::from(shape.iter().product::<usize>() * ty.bits() / 8 >= 50 << 10);
                if let Kind::Operator { ty, bodies, .. } = &node.kind {
                    let inner = bodies.iter().flat_map(|body| &body.nodes);
                    operators.insert(*ty);
                    operators.extend(inner.filter_map(|node| match node.kind {
                        Kind::Operator { ty, .. } => Some(ty),
                        _ => None,
                    }));
                }
            }
        }
        assert_eq!(families.len(), FAMILIES);
        assert!(
            large > 3000 && unknown > 20,
            "{large} large tensors, {unknown} unknown batches"
        );
        for ty in [
            "f32", "f16", "bf16", "f64", "i8", "i16", "i32", "i64", "u8", "boolean", "u4", "i4",
        ] {
            assert!(types.contains(ty), "{ty} in {types:?}");
            assert!(ty.parse::<ElementType>().is_ok());
        }
        for operator in [
            "If",
            "Loop",
            "TensorIterator",
            "ReadValue",
            "Assign",
            "GatherND",
            "ScatterUpdate",
        ] {
            assert!(operators.contains(operator), "{operator} in {operators:?}");
        }
        assert!(operators.len() > 70, "{operators:?}");
    }
}
