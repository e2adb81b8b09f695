//! Graphs as lists of their nodes, for messages.

use super::case::{Case, Kind, Node, Port};

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let needed = self.needed(&self.results);
        list(f, &self.nodes, Some(&needed), "")?;
        for result in &self.results {
            writeln!(f, "result %{}.{}", result.node, result.output)?;
        }
        match self.batch {
            Some(batch) => writeln!(f, "{batch:?}, inputs' seed {}", self.seed),
            None => writeln!(f, "inputs' seed {}", self.seed),
        }
    }
}

fn list(
    f: &mut std::fmt::Formatter<'_>,
    nodes: &[Node],
    needed: Option<&[bool]>,
    indent: &str,
) -> std::fmt::Result {
    for (k, node) in nodes.iter().enumerate() {
        if needed.is_some_and(|needed| !needed[k]) {
            continue;
        }
        let ports = names(&node.inputs);
        let types: Vec<String> = node
            .outputs
            .iter()
            .map(|(ty, shape)| format!("{ty}{shape:?}"))
            .collect();
        let types = types.join(", ");
        match &node.kind {
            Kind::Parameter(fill) => writeln!(f, "{indent}%{k} = parameter {types} of {fill:?}")?,
            Kind::Constant(fill, seed) => {
                writeln!(
                    f,
                    "{indent}%{k} = constant {types} of {fill:?}, seed {seed}"
                )?;
            }
            Kind::Operator {
                ty,
                version,
                attributes,
                bodies,
            } => {
                writeln!(
                    f,
                    "{indent}%{k} = {ty} ({version}) {attributes} ({ports}) -> {types}"
                )?;
                for body in bodies {
                    writeln!(f, "{indent}  {} {}", body.tag, body.map)?;
                    list(f, &body.nodes, None, &format!("{indent}    "))?;
                    let results = names(&body.results);
                    writeln!(f, "{indent}    results {}", results)?;
                }
            }
        }
    }
    Ok(())
}

fn names(ports: &[Port]) -> String {
    let names: Vec<String> = ports
        .iter()
        .map(|p| format!("%{}.{}", p.node, p.output))
        .collect();
    names.join(", ")
}
