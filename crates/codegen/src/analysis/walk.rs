//! Walks over scalars without recursion.

use vinelift_nest::{Kind, Scalar, Seen};

/// Where a walk goes on after a scalar.
#[derive(Clone, Copy)]
pub(crate) enum Visit {
    Children,
    Past,
    End,
}

/// Visits the scalars that `root` is made of, each once, itself first.
pub(crate) fn visit<'n>(root: &'n Scalar, mut f: impl FnMut(&'n Scalar) -> Visit) {
    let mut seen = Seen::default();
    let mut open = vec![root];
    while let Some(x) = open.pop() {
        if !seen.insert(x.address()) {
            continue;
        }
        match f(x) {
            Visit::Children => open.extend(x.children()),
            Visit::Past => {}
            Visit::End => return,
        }
    }
}

/// Whether `is` holds for `x` or something that it is made of.
pub(crate) fn any_under(x: &Scalar, is: impl Fn(&Scalar) -> bool) -> bool {
    let mut found = false;
    visit(x, |x| {
        found = is(x);
        if found { Visit::End } else { Visit::Children }
    });
    found
}

/// The scalars under `root` that are evaluated by lanes and not known yet, operands first. Indices are
/// scalars, and the body of a fold has a scope of its own: neither is among them. A scalar may have `other` operands than
/// those that it is made of.
pub(crate) fn operands_first<'n>(
    root: &'n Scalar,
    is_known: impl Fn(&'n Scalar) -> bool,
    other: impl Fn(&'n Scalar) -> Option<Vec<&'n Scalar>>,
) -> Vec<&'n Scalar> {
    let mut order = Vec::new();
    let mut seen = Seen::default();
    let mut open = vec![(root, false)];
    while let Some((x, operands_done)) = open.pop() {
        if operands_done {
            order.push(x);
            continue;
        }
        if is_known(x) || !seen.insert(x.address()) {
            continue;
        }
        open.push((x, true));
        if let Some(operands) = other(x) {
            open.extend(operands.into_iter().rev().map(|x| (x, false)));
            continue;
        }
        match x.kind() {
            Kind::Load { .. } => {}
            Kind::Reduce { init, .. } => open.push((init, false)),
            // The condition last: masks are few.
            Kind::Select(c, yes, no) => open.extend([c, no, yes].map(|x| (x, false))),
            _ => {
                let below = open.len();
                match x.as_sum() {
                    Some(operands) => open.extend(operands.map(|x| (x, false))),
                    None => open.extend(x.children().map(|child| (child, false))),
                }
                open[below..].reverse();
            }
        }
    }
    order
}
