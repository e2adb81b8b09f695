//! `vinelift ops`: the operators that are supported.

use crate::failure::Failure;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;

/// List the operators that are supported, with their versions
#[derive(clap::Args)]
#[command(after_help = "Example:
  vinelift ops --json")]
pub(crate) struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Table {
    operators: Vec<Row>,
    /// Operator types.
    types: usize,
    /// Pairs of a type and a version.
    pairs: usize,
}

#[derive(Serialize)]
struct Row {
    #[serde(rename = "type")]
    name: &'static str,
    versions: Vec<&'static str>,
    family: &'static str,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let table = table();
    if args.json {
        serde_json::to_writer(&mut *out, &table).map_err(std::io::Error::from)?;
        return Ok(writeln!(out)?);
    }
    let width = table
        .operators
        .iter()
        .map(|row| row.name.len())
        .max()
        .unwrap_or(0);
    for Row {
        name,
        versions,
        family,
    } in &table.operators
    {
        writeln!(out, "{name:width$}  {family:11}  {}", versions.join(", "))?;
    }
    writeln!(
        out,
        "{} types, {} pairs of type and version",
        table.types, table.pairs
    )?;
    Ok(())
}

/// One row a type, by name.
fn table() -> Table {
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    for def in vinelift::operators() {
        let row = Row {
            name: def.name,
            versions: Vec::new(),
            family: def.family.name(),
        };
        rows.entry(def.name)
            .or_insert(row)
            .versions
            .extend(def.versions);
    }
    let mut operators: Vec<Row> = rows.into_values().collect();
    for row in &mut operators {
        row.versions
            .sort_by_key(|version| (version.len(), *version));
    }
    let pairs = operators.iter().map(|row| row.versions.len()).sum();
    Table {
        types: operators.len(),
        pairs,
        operators,
    }
}
