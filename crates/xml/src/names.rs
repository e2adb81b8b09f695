//! Lists of tensor names: separated by commas; a comma in a name is `\,`, a backslash is itself.

/// The names in a list. Empty ones are dropped, as OpenVINO does.
pub(crate) fn split(list: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut name = String::new();
    let mut chars = list.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.next_if_eq(&',').is_some() => name.push(','),
            ',' => names.push(std::mem::take(&mut name)),
            _ => name.push(c),
        }
    }
    names.push(name);
    names.retain(|name| !name.is_empty());
    names
}

/// The list of these names.
pub(crate) fn join(names: &[String]) -> String {
    let escaped: Vec<String> = names.iter().map(|name| name.replace(',', "\\,")).collect();
    escaped.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first five are what OpenVINO 2026.4.1 makes of these lists.
    #[test]
    fn lists() {
        for (list, names) in [
            (r"a\,b", &["a,b"][..]),
            (r"a\\,b", &[r"a\,b"]),
            ("a,,b", &["a", "b"]),
            (r"a\b,c", &[r"a\b", "c"]),
            (" a , b ", &[" a ", " b "]),
            (r"a\", &[r"a\"]),
            ("", &[]),
        ] {
            assert_eq!(split(list), names);
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            assert_eq!(split(&join(&names)), names);
        }
    }
}
