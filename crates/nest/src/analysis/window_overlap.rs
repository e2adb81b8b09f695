//! Windows overlap: neighbouring turns of a loop read the same elements.

use crate::analysis::Linear;
use crate::ir::{Axis, AxisId, Kind, Stage, visit_accesses, visit_folds};

/// The number of later turns of `axis` that read an element which one turn reads, as the windows that folds go through overlap;
/// the most of all accesses.
///
/// > `y[i] = Σ_{k<5} x[2·i + k]`: turn `i` shares elements with the 2 turns after it.
pub(crate) fn window_overlap(stage: &Stage, axis: AxisId) -> usize {
    let mut taps: Vec<Axis> = Vec::new();
    visit_folds(stage, &mut |x| {
        if let Kind::Reduce { axes, .. } = x.kind() {
            taps.extend(axes);
        }
    });
    let mut most = 0;
    visit_accesses(stage, &mut |_, at| {
        for index in at {
            most = most.max(overlap(&Linear::of(index), axis, &taps));
        }
    });
    most
}

fn overlap(index: &Linear, axis: AxisId, taps: &[Axis]) -> usize {
    let step = |axis: AxisId| {
        let term = index.terms.iter().find(|(atom, _)| atom.is_axis(axis));
        term.map_or(0, |(_, step)| step.unsigned_abs())
    };
    let turn = step(axis);
    // A tap that steps farther than a turn goes through rows of its own.
    let reach = taps.iter().filter(|tap| step(tap.id) <= turn).map(|tap| {
        let last = tap.extent.example().saturating_sub(1);
        step(tap.id).saturating_mul(last as u64)
    });
    let reach = reach.fold(0, u64::saturating_add);
    let turns = reach.checked_div(turn).unwrap_or(0);
    usize::try_from(turns).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlap_of(stage: &str) -> usize {
        let text = format!("input x: f32[4000]\noutput y: f32[10, 10]\n{stage}\n");
        let nest = crate::ir::parse(&text).unwrap();
        let stage = &nest.stages[0];
        window_overlap(stage, stage.domain[0].id)
    }

    #[test]
    fn windows_reach_beyond_their_turn() {
        let window =
            "for i<10, j<10: y[i, j] = add[k<5, l<3; 0.0](x[(((i * 40) + (k * 40)) + (j + l))])";
        assert_eq!(overlap_of(window), 4);
        assert_eq!(overlap_of(&window.replace("i * 40", "i * 80")), 2);
        assert_eq!(overlap_of(&window.replace("k * 40", "k * 80")), 0);
    }

    #[test]
    fn rows_and_columns_do_not_overlap() {
        let row = "for i<10, j<10: y[i, j] = add[k<40; 0.0](x[((i * 40) + k)])";
        assert_eq!(overlap_of(row), 0);
        assert_eq!(overlap_of(&row.replace("(i * 40) + k", "(k * 40) + i")), 0);
        assert_eq!(overlap_of("for i<10, j<10: y[i, j] = x[i]"), 0);
    }
}
