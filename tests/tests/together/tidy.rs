//! Conventions of the tree that no compiler checks.

use std::collections::BTreeSet;
use vinelift_tests::{files, repository};

#[test]
fn every_operator_has_one_declaration_a_version() {
    let mut seen = BTreeSet::new();
    for def in vinelift::operators() {
        for version in def.versions {
            assert!(
                seen.insert((def.name.to_ascii_lowercase(), *version)),
                "{def:?} is declared twice"
            );
        }
    }
}

/// Except for the parts of the graph itself, which every sample has.
#[test]
fn every_operator_has_a_sample() {
    let mut used = BTreeSet::new();
    for sample in files(&repository().join("ir-samples"), "xml") {
        let text = std::fs::read_to_string(&sample).unwrap();
        for layer in text.split("<layer ").skip(1) {
            let attribute = |name: &str| {
                let start = layer.find(&format!("{name}=\""))? + name.len() + 2;
                Some(layer[start..].split('"').next()?.to_ascii_lowercase())
            };
            used.extend(attribute("type").zip(attribute("version")));
        }
    }
    let pairs = vinelift::operators().flat_map(|d| {
        d.versions
            .iter()
            .map(|v| (d.name.to_ascii_lowercase(), v.to_string()))
    });
    let missing: Vec<_> = pairs.filter(|pair| !used.contains(pair)).collect();
    assert!(missing.is_empty(), "no sample for {missing:?}");
}

#[test]
fn every_sample_has_a_run() {
    let samples = repository().join("ir-samples");
    for sample in files(&samples, "xml") {
        let case = sample.strip_prefix(&samples).unwrap().with_extension("run");
        let is_model = case.starts_with("models");
        assert!(
            is_model || repository().join("tests/golden").join(&case).exists(),
            "{} has no run",
            sample.display()
        );
    }
}

/// A file that its parent does not declare is never compiled, and its tests never run.
#[test]
fn every_file_is_a_module() {
    let mut roots = vec![repository().join("tests/tests/together")];
    for entry in std::fs::read_dir(repository().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        roots.extend(["src", "tests/together"].map(|name| folder.join(name)));
    }
    for root in roots.iter().filter(|root| root.is_dir()) {
        for file in files(root, "rs") {
            // The place of the module, with a name in its parent's folder: that of a `mod.rs` is its folder.
            let place = match file.ends_with("mod.rs") {
                true => file.parent().unwrap().to_owned(),
                false => file.with_extension(""),
            };
            let (name, folder) = (place.file_name().unwrap(), place.parent().unwrap());
            let name = name.to_str().unwrap();
            if folder == root && matches!(name, "lib" | "main") {
                continue;
            }
            let parents = ["mod.rs", "lib.rs", "main.rs"].map(|file| folder.join(file));
            let parents = parents.into_iter().chain([folder.with_extension("rs")]);
            let texts = parents.filter_map(|parent| std::fs::read_to_string(parent).ok());
            let declares = |text: String| text.contains(&format!("mod {name};"));
            assert!(
                texts.into_iter().any(declares),
                "{} is in no module",
                file.display()
            );
        }
    }
}
