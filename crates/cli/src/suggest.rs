//! Suggests known names for one that is not known.

/// The least similarity of two names, from 0 to 1: typing errors stay above it.
const ALIKE: f64 = 0.75;
/// How many characters of a name are compared: the time grows with the square of them.
const COMPARED: usize = 256;

/// The name in quotes, followed by the known ones that are much like it, if there are any.
pub(crate) fn unknown<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    match alike(name, known).as_slice() {
        [] => format!("'{name}'"),
        found => {
            let found: Vec<String> = found.iter().map(|n| format!("'{n}'")).collect();
            format!("'{name}' (did you mean {}?)", found.join(" or "))
        }
    }
}

/// At most three of the known names, the most alike first.
fn alike<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    const MOST: usize = 3;
    let start = |name: &str| {
        let lower = name.chars().flat_map(char::to_lowercase);
        lower.take(COMPARED).collect::<String>()
    };
    let lower = start(name);
    let score = |known: &'a str| (strsim::jaro_winkler(&lower, &start(known)), known);
    let mut scores: Vec<(f64, &str)> = known.into_iter().map(score).collect();
    scores.retain(|(score, _)| *score >= ALIKE);
    scores.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scores.dedup_by_key(|(_, name)| *name);
    // Names that are much less similar than the best are left out.
    let best = scores.first().map_or(0.0, |s| s.0);
    scores.retain(|(score, _)| *score > best - 0.05);
    scores
        .into_iter()
        .map(|(_, name)| name)
        .take(MOST)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised() {
        let known = ["conv_1", "conv_2", "softmax", "Relu_7"];
        let found = unknown("sofmax", known);
        assert_eq!(found, "'sofmax' (did you mean 'softmax'?)");
        let found = unknown("relu_7", known);
        assert_eq!(found, "'relu_7' (did you mean 'Relu_7'?)");
        let two = "'conv_' (did you mean 'conv_1' or 'conv_2'?)";
        assert_eq!(unknown("conv_", known), two);
        assert_eq!(unknown("x", known), "'x'");
    }

    /// In the order of a microsecond for each character, not for each pair of them.
    #[test]
    fn long_names_are_compared_in_time_that_grows_with_their_length() {
        let [name, known] = ["a", "b"].map(|end| "x".repeat(1_000_000) + end);
        let found = unknown(&name, [known.as_str()]);
        assert_eq!(found, format!("'{name}' (did you mean '{known}'?)"));
    }
}
