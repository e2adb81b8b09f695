//! The page: one file with all that it needs.

/// The libraries, as their authors publish them; `vendor/LICENSES.txt` says on what terms.
const LIBRARIES: [&str; 4] = [
    include_str!("page/vendor/cytoscape.min.js"),
    include_str!("page/vendor/cytoscape-dagre.min.js"),
    include_str!("page/vendor/d3.min.js"),
    include_str!("page/vendor/plot.min.js"),
];
const LICENSES: &str = include_str!("page/vendor/LICENSES.txt");
const FRAME: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
/// The scripts of the page, each after those that it calls.
const SCRIPTS: [&str; 4] = [
    include_str!("page/data.js"),
    include_str!("page/graph.js"),
    include_str!("page/charts.js"),
    include_str!("page/main.js"),
];

/// The page of a model.
pub(super) fn page(name: &str, json: &str) -> String {
    let mut scripts = String::new();
    for script in LIBRARIES.iter().chain(&SCRIPTS) {
        scripts += &format!("<script>\n{script}\n</script>\n");
    }
    // The text of a script ends at the first `</script`, which then never stands in the data.
    let json = json.replace('<', "\\u003c");
    // Each part is put in its place once: what it says itself is left alone.
    let mut parts = FRAME.split("{{").map(|part| match part.split_once("}}") {
        None => part.to_owned(),
        Some((name_of_part, rest)) => {
            let part = match name_of_part {
                "title" => escape(name),
                "style" => STYLE.to_owned(),
                "licenses" => escape(LICENSES),
                "data" => json.clone(),
                _ => scripts.clone(),
            };
            part + rest
        }
    });
    parts.by_ref().collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_data_stay_what_they_are() {
        let page = page("<b>{{data}}", r#"{"a": "</script>"}"#);
        assert!(page.contains("<title>&lt;b&gt;{{data}} "));
        assert!(page.contains(r#"{"a": "\u003c/script>"}"#));
        // Nothing is fetched from elsewhere.
        for word in ["src=\"", "<link", "@import", "sourceMappingURL"] {
            assert!(!page.contains(word), "{word}");
        }
    }
}
