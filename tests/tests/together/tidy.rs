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

#[test]
fn operator_files_are_modules() {
    for file in files(&repository().join("crates/ops/src"), "rs") {
        let (Some(stem), Some(folder)) = (file.file_stem().and_then(|s| s.to_str()), file.parent())
        else {
            continue;
        };
        if matches!(stem, "mod" | "lib") {
            continue;
        }
        let parent = if folder.join("mod.rs").exists() {
            folder.join("mod.rs")
        } else {
            folder.join("lib.rs")
        };
        let text = std::fs::read_to_string(&parent).unwrap();
        assert!(
            text.contains(&format!("mod {stem};")),
            "{} is in no module",
            file.display()
        );
    }
}
