//! Modules of a crate use each other in one direction: no circles, by the paths in the source text.
//!
//! The siblings in a folder (files and folders) are compared. A parent and its children are one thing, as the
//! parent's file declares and re-exports them. Tests may use anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Of the crate's root down: `["emit", "vector"]`.
type ModulePath = Vec<String>;

#[test]
fn no_modules_use_each_other_in_circles() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(crates).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        for (folder, circles) in Modules::read(&entry.path().join("src")).circles() {
            let folder = [std::slice::from_ref(&name), &folder].concat().join("/");
            found.insert(folder, circles);
        }
    }
    assert!(found.is_empty(), "modules that need each other: {found:#?}");
}

#[test]
fn a_circle_is_found_through_groups_and_re_exports() {
    let mut modules = Modules::default();
    modules.add(
        vec![],
        "mod a;\nmod b;\nmod c;\npub use b::{B, More as Other};",
    );
    modules.add(vec!["a".into()], "use crate::{Other, c::C};");
    modules.add(vec!["b".into()], "// use crate::c::C;\nuse std::fmt;");
    modules.add(vec!["c".into()], "fn f(x: super::a::A) {}");
    assert_eq!(
        modules.circles(),
        [(vec![], vec![vec!["a".to_owned(), "c".to_owned()]])]
    );
    modules.add(
        vec!["b".into()],
        "#[cfg(test)]\nmod tests { use crate::a::A; }",
    );
    assert_eq!(modules.circles()[0].1[0].len(), 2);
    modules.add(vec!["b".into()], "use crate::a::A;");
    assert_eq!(modules.circles()[0].1[0].len(), 3);
}

/// The modules of a crate, and the paths in their text.
#[derive(Default)]
struct Modules {
    paths: BTreeMap<ModulePath, Vec<ModulePath>>,
    /// The path behind a name that a module re-exports.
    exports: BTreeMap<ModulePath, ModulePath>,
}

impl Modules {
    fn read(src: &Path) -> Modules {
        let mut modules = Modules::default();
        modules.read_folder(src, &[]);
        modules
    }

    fn read_folder(&mut self, folder: &Path, at: &[String]) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let mut inner = at.to_vec();
            if path.is_dir() {
                inner.push(name);
                self.read_folder(&path, &inner);
            } else if path.extension().is_some_and(|e| e == "rs") && name != "tests" {
                if !["lib", "main", "mod"].contains(&name.as_str()) {
                    inner.push(name);
                }
                self.add(inner, &fs::read_to_string(&path).unwrap());
            }
        }
    }

    /// Takes in the text of a module, without its tests.
    fn add(&mut self, module: ModulePath, text: &str) {
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        let without_comment = |line: &str| line.split("//").next().unwrap_or_default().to_owned();
        let code: Vec<String> = code.lines().map(without_comment).collect();
        let code = code.join("\n");
        let mut found = Vec::new();
        for statement in code.split(';') {
            let Some((before, tree)) = statement.rsplit_once("use ") else {
                continue;
            };
            let exports = before.trim_end().ends_with("pub") || before.trim_end().ends_with(')');
            for path in expand(tree) {
                let (path, name) = match path.split_once(" as ") {
                    Some((path, name)) => (path.to_owned(), Some(name.trim().to_owned())),
                    None => (path, None),
                };
                let Some(path) = absolute(&module, &path) else {
                    continue;
                };
                if let (true, Some(name)) = (exports, name.or_else(|| path.last().cloned())) {
                    let exported = [module.as_slice(), &[name]].concat();
                    self.exports.insert(exported, path.clone());
                }
                found.push(path);
            }
        }
        for start in ["crate::", "super::"] {
            for (at, _) in code.match_indices(start) {
                let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
                let rest = &code[at..];
                let end = rest.find(|c| !is_path(c)).unwrap_or(rest.len());
                let whole = code[..at].chars().next_back().is_none_or(|c| !is_path(c));
                found.extend(absolute(&module, &rest[..end]).filter(|_| whole));
            }
        }
        self.paths.entry(module).or_default().extend(found);
    }

    /// For each folder that has any, the groups of siblings that need each other.
    fn circles(&self) -> Vec<(ModulePath, Vec<Vec<String>>)> {
        let mut uses: BTreeMap<ModulePath, BTreeSet<(String, String)>> = BTreeMap::new();
        for (module, paths) in &self.paths {
            for target in paths.iter().filter_map(|path| self.resolve(path)) {
                let common = module
                    .iter()
                    .zip(&target)
                    .take_while(|(a, b)| a == b)
                    .count();
                if let (Some(from), Some(to)) = (module.get(common), target.get(common)) {
                    let siblings = uses.entry(module[..common].to_vec()).or_default();
                    siblings.insert((from.clone(), to.clone()));
                }
            }
        }
        let circles = uses
            .into_iter()
            .map(|(folder, edges)| (folder, groups(&edges)));
        circles.filter(|(_, groups)| !groups.is_empty()).collect()
    }

    /// The module that a path leads to, through re-exports.
    fn resolve(&self, path: &[String]) -> Option<ModulePath> {
        let mut path = path.to_vec();
        // A chain of re-exports ends; text that is no code might not.
        for _ in 0..10 {
            let is_name = |n: &usize| !self.paths.contains_key(&path[..*n]);
            let mut names = (1..=path.len()).filter(is_name);
            let Some((n, to)) = names.find_map(|n| Some((n, self.exports.get(&path[..n])?))) else {
                break;
            };
            path = [to, &path[n..]].concat();
        }
        let known = (1..=path.len())
            .rev()
            .find(|n| self.paths.contains_key(&path[..*n]));
        Some(path[..known?].to_vec())
    }
}

/// The paths of a tree of imports: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn expand(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((prefix, rest)) = tree.split_once('{') else {
        return vec![tree.trim_end_matches("::self").to_owned()];
    };
    let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let (mut depth, mut start, mut paths) = (0, 0, Vec::new());
    for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = inner[start..at].trim();
                if !part.is_empty() {
                    paths.extend(expand(&format!("{prefix}{part}")));
                }
                start = at + 1;
            }
            _ => {}
        }
    }
    paths
}

/// A path from the crate's root; one that does not say where it starts may be that of a child.
fn absolute(module: &[String], path: &str) -> Option<ModulePath> {
    let mut at = module.to_vec();
    let mut parts = path.split("::").map(str::trim).peekable();
    match *parts.peek()? {
        "crate" => {
            at.clear();
            parts.next();
        }
        "self" => {
            parts.next();
        }
        _ => {}
    }
    while parts.next_if_eq(&"super").is_some() {
        at.pop()?;
    }
    at.extend(parts.filter(|part| !part.is_empty()).map(str::to_owned));
    Some(at)
}

/// The groups of nodes that reach each other.
fn groups(edges: &BTreeSet<(String, String)>) -> Vec<Vec<String>> {
    let reach = |start: &str| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![start.to_owned()]);
        while let Some(node) = open.pop() {
            for (_, to) in edges.iter().filter(|(from, _)| *from == node) {
                if seen.insert(to.clone()) {
                    open.push(to.clone());
                }
            }
        }
        seen
    };
    let nodes: BTreeSet<&String> = edges.iter().map(|(from, _)| from).collect();
    let reached: BTreeMap<&String, BTreeSet<String>> =
        nodes.into_iter().map(|node| (node, reach(node))).collect();
    let mut groups: BTreeSet<Vec<String>> = BTreeSet::new();
    for (node, to) in reached.iter().filter(|(node, to)| to.contains(**node)) {
        let back = |other: &&String| reached.get(other).is_some_and(|r| r.contains(*node));
        groups.insert(to.iter().filter(back).cloned().collect::<Vec<_>>());
    }
    groups.into_iter().collect()
}
