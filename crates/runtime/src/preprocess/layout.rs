//! Layouts: the meaning of each dimension of a tensor.

use crate::Error;
use std::fmt;
use std::str::FromStr;

type Result<T> = std::result::Result<T, Error>;

/// The names of the dimensions of a tensor, such as `NCHW` or `[N,C,H,W]`; `?` for one without a name, `...` for any
/// number of them.
///
/// ```
/// let layout: vinelift::Layout = "NHWC".parse()?;
/// assert_eq!(layout.to_string(), "[N,H,W,C]");
/// # Ok::<(), vinelift::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The names before the `...`, or all of them.
    front: Vec<Option<String>>,
    /// The names after the `...`, if there is one.
    back: Option<Vec<Option<String>>>,
    is_scalar: bool,
}

/// How a layout of no dimensions is written.
const SCALAR: &str = "**SCALAR**";

impl Layout {
    fn names(&self) -> impl Iterator<Item = &Option<String>> {
        self.front.iter().chain(self.back.iter().flatten())
    }

    /// Batch, height, width, channels: how images lie in memory.
    pub(crate) fn of_images() -> Layout {
        let names = ["N", "H", "W", "C"].map(|n| Some(n.to_owned()));
        Layout {
            front: names.to_vec(),
            back: None,
            is_scalar: false,
        }
    }

    /// The names of `rank` dimensions, where they have one.
    fn of_rank(&self, rank: usize) -> Result<Vec<Option<&str>>> {
        let named = self.names().count();
        let fits = if self.back.is_some() {
            named <= rank
        } else {
            named == rank
        };
        if !fits {
            let text = format!("layout {} is not one of {rank} dimensions", self);
            return Err(Error::Input(text));
        }
        let middle = std::iter::repeat_n(&None, rank - named);
        let names = self.front.iter().chain(middle);
        let names = names.chain(self.back.iter().flatten());
        Ok(names.map(Option::as_deref).collect())
    }

    /// Which of `rank` dimensions has this name.
    pub(crate) fn index(&self, name: &str, rank: usize) -> Result<usize> {
        let found = self.of_rank(rank)?.iter().position(|n| *n == Some(name));
        found.ok_or_else(|| {
            let text = format!("layout {} has no dimension {name}", self);
            Error::Input(text)
        })
    }

    /// How many dimensions there are, if all have names.
    fn named_rank(&self) -> Option<usize> {
        let all_named = self.back.is_none() && self.names().all(Option::is_some);
        all_named.then_some(self.front.len())
    }

    /// This with the dimensions in front that only `other` has, and how many those are: none, unless every
    /// dimension of both has a name.
    pub(crate) fn extended_to(&self, other: &Layout) -> (Layout, usize) {
        let mut front = Vec::new();
        if let (Some(_), Some(_)) = (self.named_rank(), other.named_rank()) {
            let added = other.front.iter().filter(|name| !self.front.contains(name));
            front.extend(added.cloned());
        }
        let count = front.len();
        front.extend_from_slice(&self.front);
        let extended = Layout {
            front,
            ..self.clone()
        };
        (extended, count)
    }

    /// For each dimension of `other`, which of `rank` it is here; `other` may have fewer.
    pub(crate) fn places_of(&self, other: &Layout, rank: usize) -> Result<Vec<usize>> {
        let fewer = other.named_rank().filter(|named| *named < rank);
        if let (Some(fewer), true) = (fewer, self.named_rank() == Some(rank)) {
            let (extended, added) = other.extended_to(self);
            if fewer + added == rank {
                return Ok(self.order_to(&extended, rank)?.split_off(added));
            }
        }
        self.order_to(other, rank)
    }

    /// For each of `rank` dimensions in `other`, which it is here: that of the same name; the others are in the same order. All names
    /// of the layout that has fewer must be in the other.
    pub(crate) fn order_to(&self, other: &Layout, rank: usize) -> Result<Vec<usize>> {
        let (own, others) = (self.of_rank(rank)?, other.of_rank(rank)?);
        let place = |name: &Option<&str>| own.iter().position(|n| name.is_some() && n == name);
        let places: Vec<Option<usize>> = others.iter().map(place).collect();
        let named = |names: &[Option<&str>]| names.iter().flatten().count();
        if places.iter().flatten().count() < named(&own).min(named(&others)) {
            let text = format!("layout {} cannot become {}", self, other);
            return Err(Error::Input(text));
        }
        let mut rest = (0..rank).filter(|k| !places.contains(&Some(*k)));
        let order = places
            .iter()
            .filter_map(|place| place.or_else(|| rest.next()));
        Ok(order.collect())
    }
}

impl FromStr for Layout {
    type Err = Error;

    /// Reads `NCHW`, `N...C` or `[N,C,height,width]`. Case does not matter.
    fn from_str(text: &str) -> Result<Layout> {
        let fail = |why: &str| Error::Input(format!("layout `{text}`: {why}"));
        let trimmed = text.trim();
        if trimmed == SCALAR {
            return Ok(Layout {
                front: Vec::new(),
                back: None,
                is_scalar: true,
            });
        }
        let list = trimmed.strip_prefix('[').map(|rest| rest.strip_suffix(']'));
        let names: Vec<String> = match list {
            None => short_names(trimmed).ok_or_else(|| fail("expected letters, `?` and `...`"))?,
            Some(None) => return Err(fail("`[` is not closed")),
            Some(Some(list)) => list.split(',').map(|n| n.trim().to_owned()).collect(),
        };
        let mut layout = Layout {
            front: Vec::new(),
            back: trimmed.is_empty().then(Vec::new),
            is_scalar: false,
        };
        for name in names {
            let name = match name.as_str() {
                "..." if layout.back.is_some() => return Err(fail("`...` occurs twice")),
                "..." => {
                    layout.back = Some(Vec::new());
                    continue;
                }
                "?" => None,
                _ => Some(canonical(&name).ok_or_else(|| fail("a name that is none"))?),
            };
            if name.is_some() && layout.names().any(|n| *n == name) {
                return Err(fail("a name occurs twice"));
            }
            layout.back.as_mut().unwrap_or(&mut layout.front).push(name);
        }
        Ok(layout)
    }
}

/// As a list of names, from which it can be read again.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_scalar {
            return f.write_str(SCALAR);
        }
        let name = |n: &Option<String>| n.clone().unwrap_or_else(|| "?".to_owned());
        let mut names: Vec<String> = self.front.iter().map(name).collect();
        if let Some(back) = &self.back {
            names.push("...".to_owned());
            names.extend(back.iter().map(name));
        }
        write!(f, "[{}]", names.join(","))
    }
}

fn short_names(text: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let len = if rest.starts_with("...") {
            3
        } else {
            c.len_utf8()
        };
        if len < 3 && c != '?' && !c.is_ascii_alphabetic() {
            return None;
        }
        names.push(rest.get(..len)?.to_owned());
        rest = &rest[len..];
    }
    Some(names)
}

/// The name by which a dimension is known: `BATCH` is `N`, and so on.
fn canonical(name: &str) -> Option<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(is_name) {
        return None;
    }
    let name = name.to_ascii_uppercase();
    Some(match name.as_str() {
        "B" | "BATCH" => "N".to_owned(),
        "CHANNELS" | "CHANNEL" => "C".to_owned(),
        "HEIGHT" => "H".to_owned(),
        "WIDTH" => "W".to_owned(),
        "DEPTH" => "D".to_owned(),
        _ => name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts are OpenVINO 2026.4.1's.
    #[test]
    fn layouts_are_read_as_openvino_reads_them() {
        for (text, expected) in [
            ("NCHW", "[N,C,H,W]"),
            ("N...C", "[N,...,C]"),
            ("?CHW", "[?,C,H,W]"),
            ("[N,C,H,W]", "[N,C,H,W]"),
            ("", "[...]"),
            ("abc", "[A,N,C]"),
            ("[channels,W]", "[C,W]"),
            ("...", "[...]"),
            ("**SCALAR**", "**SCALAR**"),
            ("[ n , c ]", "[N,C]"),
        ] {
            assert_eq!(
                Layout::from_str(text).unwrap().to_string(),
                expected,
                "{text}"
            );
        }
        let order = |from: &str, to: &str, rank| {
            let to = Layout::from_str(to).unwrap();
            Layout::from_str(from).unwrap().order_to(&to, rank)
        };
        assert_eq!(order("NHWC", "NCHW", 4).unwrap(), [0, 3, 1, 2]);
        assert_eq!(order("N...C", "NC...", 5).unwrap(), [0, 4, 1, 2, 3]);
        assert_eq!(order("NHWC", "?C??", 4).unwrap(), [0, 3, 1, 2]);
        assert_eq!(order("?C??", "NHWC", 4).unwrap(), [0, 2, 3, 1]);
        assert_eq!(order("NCHW", "H...", 4).unwrap(), [2, 0, 1, 3]);
        assert_eq!(order("N?HW", "?WHN", 4).unwrap(), [1, 3, 2, 0]);
        let places = |own: &str, other: &str| {
            let other = Layout::from_str(other).unwrap();
            Layout::from_str(own).unwrap().places_of(&other, 4)
        };
        assert_eq!(places("NCHW", "HWC").unwrap(), [2, 3, 1]);
        assert_eq!(places("NCHW", "W").unwrap(), [3]);
        assert_eq!(places("NCHW", "NHWC").unwrap(), [0, 2, 3, 1]);
        for (own, other) in [("NCHW", "HWD"), ("N...", "HWC"), ("NCHW", "?HW")] {
            assert!(places(own, other).is_err(), "{other} of {own}");
        }
        assert_eq!(
            order("NHWC", "NCHW", 3).unwrap_err().to_string(),
            "layout [N,H,W,C] is not one of 3 dimensions"
        );
        assert_eq!(
            order("NHWC", "NCDW", 4).unwrap_err().to_string(),
            "layout [N,H,W,C] cannot become [N,C,D,W]"
        );
        assert_eq!(
            order("N?HW", "NC??", 4).unwrap_err().to_string(),
            "layout [N,?,H,W] cannot become [N,C,?,?]"
        );
        for text in ["[N,,C]", "NN", "N...C...", "nc hw", "[N", "N-C"] {
            assert!(Layout::from_str(text).is_err(), "{text}");
        }
    }
}
