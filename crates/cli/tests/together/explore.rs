//! The page of `vinelift explore`, also in a browser where there is one.

use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const DIGITS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../ir-samples/models/digits/digits.xml"
);

fn explore(model: &str, out: &Path, more: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vinelift"));
    command
        .args(["explore", model, "-t", "0.05", "-o"])
        .arg(out);
    let done = command.args(more).output().unwrap();
    let error = String::from_utf8(done.stderr).unwrap();
    assert_eq!((done.status.code(), error.as_str()), (Some(0), ""));
    let stdout = String::from_utf8(done.stdout).unwrap();
    assert_eq!(stdout, format!("{}\n", out.display()));
    fs::read_to_string(out).unwrap()
}

fn strings(value: &Value) -> Vec<&str> {
    let all = value.as_array().unwrap().iter();
    all.map(|v| v.as_str().unwrap()).collect()
}

#[test]
fn the_data_say_where_code_comes_from() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("digits.json");
    let json = explore(DIGITS, &out, &["--json", "--shape", "pixels=1,64"]);
    let data: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(data["format"], 1);
    assert_eq!(data["layers"].as_array().unwrap().len(), 34);
    let kernels = data["kernels"].as_array().unwrap();
    let plan = &data["plans"][0];
    assert_eq!(plan["kernels"].as_array().unwrap().len(), kernels.len());
    let first = plan["passes"][0]["stages"].as_array().unwrap();
    assert_eq!(
        first[0]["text"],
        "for i<1, j<64: tokens[i, j] = (pixels[0, j] + Constant_3[j])"
    );
    let logits = kernels.iter().find(|k| k["name"] == "logits").unwrap();
    assert_eq!(
        strings(&logits["layers"]),
        ["logits", "ReduceSum_23", "products"]
    );
    // Of 10 sums of 24 products, and one more addition each.
    assert_eq!(logits["flops"], 10 * (24 * 2 + 1));
    assert_eq!(logits["calls"], 1);
    assert!(logits["median_us"].as_f64().unwrap() >= 0.0);
    for kernel in kernels {
        let code = &kernel["code"];
        let clif = code["clif"].as_array().unwrap();
        let asm = code["asm"].as_array().unwrap();
        let numbers: Vec<&Value> = clif.iter().map(|line| &line[1]).collect();
        let stages = kernel["stages"].as_array().unwrap().len() as u64;
        let mut linked = 0;
        let mut bytes = 0;
        for line in asm {
            linked += usize::from(!line[5].is_null());
            bytes += line[2].as_str().unwrap().len() / 2;
            assert!(line[5].is_null() || numbers.contains(&&line[5]), "{line}");
            assert!(
                line[4].as_u64().is_none_or(|stage| stage < stages),
                "{line}"
            );
        }
        // Constants follow the instructions.
        assert!(bytes as u64 <= code["bytes"].as_u64().unwrap());
        let not_x86 = cfg!(not(target_arch = "x86_64"));
        assert!(not_x86 || linked > 3, "{kernel}");
    }
    let arena = plan["arena"].as_u64().unwrap();
    for buffer in plan["buffers"].as_array().unwrap() {
        let of = |name: &str| buffer[name].as_u64().unwrap();
        assert!(of("offset") + of("bytes") <= arena && of("first") <= of("last"));
    }
}

#[test]
fn each_run_of_a_model_with_state_starts_anew() {
    let model = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../ir-samples/models/storyteller/storyteller_u4.xml"
    );
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("storyteller.json");
    let texts = ["input_ids", "attention_mask", "position_ids"].map(|name| format!("{name}=1,8"));
    let mut options = vec!["--json", "--shape", "beam_idx=1"];
    for text in &texts {
        options.extend(["--shape", text]);
    }
    let data: Value = serde_json::from_str(&explore(model, &out, &options)).unwrap();
    let kernels = data["kernels"].as_array().unwrap();
    assert!(kernels.iter().any(|k| !k["median_us"].is_null()));
}

/// Loads the page in a browser and runs `script`, which puts its finding as text into an element: this text.
fn in_browser(page: &str, script: &str) -> Option<Value> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let path = std::env::var_os("PATH")?;
    let browser = std::env::split_paths(&path)
        .flat_map(|dir| names.map(|name| dir.join(name)))
        .find(|file: &PathBuf| file.exists());
    let Some(browser) = browser else {
        eprintln!("skipped: there is no Chromium to show the page in");
        return None;
    };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("page.html");
    let script = format!(
        "<script>setTimeout(() => {{ const found = (() => {{ {script} }})(); \
         const e = document.createElement('pre'); e.id = 'result'; \
         e.textContent = encodeURIComponent(JSON.stringify(found)); document.body.append(e); }}, 300)</script>"
    );
    fs::write(&file, page.replace("</body>", &format!("{script}</body>"))).unwrap();
    let shown = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--virtual-time-budget=20000",
            "--dump-dom",
        ])
        .arg("--window-size=1600,1000")
        .arg(format!("--user-data-dir={}", dir.path().display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    if !shown.status.success() {
        eprintln!(
            "skipped: Chromium does not run here: {}",
            String::from_utf8_lossy(&shown.stderr)
        );
        return None;
    }
    let dom = String::from_utf8_lossy(&shown.stdout).into_owned();
    let (_, rest) = dom.rsplit_once("<pre id=\"result\">").unwrap_or_else(|| {
        panic!(
            "the script found nothing: {}",
            String::from_utf8_lossy(&shown.stderr)
        )
    });
    let text = rest.split('<').next().unwrap();
    let mut bytes = Vec::new();
    let mut chars = text.bytes();
    while let Some(byte) = chars.next() {
        match byte {
            b'%' => {
                let hex: String = chars.by_ref().take(2).map(char::from).collect();
                bytes.push(u8::from_str_radix(&hex, 16).unwrap());
            }
            other => bytes.push(other),
        }
    }
    Some(serde_json::from_slice(&bytes).unwrap())
}

#[test]
fn the_page_links_nests_and_code() {
    let dir = tempfile::tempdir().unwrap();
    let page = explore(
        DIGITS,
        &dir.path().join("a.html"),
        &["--shape", "pixels=1,64"],
    );
    let script = r#"
        const texts = (selector) => [...document.querySelectorAll(selector)].map((e) => e.textContent);
        const count = (selector) => document.querySelectorAll(selector).length;
        const found = { frames: cy.nodes('.kernel').length, layers: cy.nodes('[layer]').length };
        const spread = cy.elements().boundingBox();
        found.spread = [spread.w, spread.h];
        const box = document.getElementById('search');
        box.value = 'exponent';
        box.dispatchEvent(new Event('input'));
        found.search = document.getElementById('found').textContent;
        found.named = cy.nodes('.found').map((n) => data.layers[n.data('layer')].name);
        cy.nodes('[layer]').filter((n) => n.data('kernel') === 2)[0].emit('tap');
        found.kernel = texts('#right h2')[0];
        document.querySelector('#nest [data-stage]').dispatchEvent(new MouseEvent('mouseover', { bubbles: true }));
        found.fromNest = [count('#clif .in-stage') > 0, count('#asm .in-stage') > 0];
        const line = [...document.querySelectorAll('#nest [data-stage]')].find((e) => e.textContent.includes('Constant_21['));
        line.dispatchEvent(new MouseEvent('mouseover', { bubbles: true }));
        found.fromTensors = count('#asm .same') > 0;
        const asm = [...document.querySelectorAll('#asm [data-clif]')].filter((e) => e.dataset.stage === '0')[3];
        asm.dispatchEvent(new MouseEvent('mouseover', { bubbles: true }));
        found.fromAsm = [count('#clif .same'), count('#nest .in-stage') > 0];
        document.querySelector('#clif .same').click();
        found.fromClif = [count('#asm .same') > 0, count('.kept')];
        document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }));
        document.dispatchEvent(new KeyboardEvent('keydown', { key: 'j' }));
        found.next = texts('#right h2')[0];
        const marks = (view, selector) => { show(view); return count('#' + view + ' ' + selector); };
        found.bars = marks('time', 'svg rect') >= 11;
        found.dots = marks('roofline', 'svg circle');
        found.areas = marks('memory', 'svg rect') >= data.plans[0].buffers.length;
        return found;"#;
    let Some(found) = in_browser(&page, script) else {
        return;
    };
    assert_eq!(
        (&found["frames"], &found["layers"]),
        (&10.into(), &23.into())
    );
    assert!(found["spread"][1].as_f64().unwrap() > 600.0, "{found}");
    assert_eq!(found["search"], "1 found");
    assert_eq!(strings(&found["named"]), ["exponentials"]);
    assert_eq!(found["kernel"], "Kernel 2 – logits");
    assert_eq!(found["fromNest"], serde_json::json!([true, true]));
    assert_eq!(found["fromTensors"], true);
    assert_eq!(found["fromAsm"], serde_json::json!([1, true]));
    assert_eq!(found["fromClif"], serde_json::json!([true, 1]));
    assert_eq!(found["next"], "Kernel 3 – largest");
    assert_eq!(
        (&found["bars"], &found["areas"]),
        (&true.into(), &true.into())
    );
    assert!(found["dots"].as_u64().unwrap() >= 5, "{found}");
}

/// `layers` layers one after the other, each of which also reads the one ten before it.
fn chain(layers: usize) -> String {
    let port = |id: usize| format!(r#"<port id="{id}" precision="FP32"><dim>64</dim></port>"#);
    let mut xml = String::from(r#"<net name="chain" version="11"><layers>"#);
    let _ = write!(
        xml,
        r#"<layer id="0" name="x" type="Parameter" version="opset1"><data shape="64" element_type="f32"/><output>{}</output></layer>"#,
        port(0)
    );
    let mut edges = String::new();
    for k in 1..=layers {
        let (ty, version, data) = match k % 3 {
            0 => ("Softmax", "opset8", r#"<data axis="0"/>"#),
            1 => ("Add", "opset1", r#"<data auto_broadcast="numpy"/>"#),
            _ => ("Multiply", "opset1", r#"<data auto_broadcast="numpy"/>"#),
        };
        let is_unary = ty == "Softmax";
        let inputs = if is_unary {
            port(0)
        } else {
            port(0) + &port(1)
        };
        let _ = write!(
            xml,
            r#"<layer id="{k}" name="layer_{k}" type="{ty}" version="{version}">{data}<input>{inputs}</input><output>{}</output></layer>"#,
            port(2)
        );
        let from = |layer: usize| if layer == 0 { 0 } else { 2 };
        let mut edge = |layer: usize, to: usize| {
            let port = from(layer);
            let _ = write!(
                edges,
                r#"<edge from-layer="{layer}" from-port="{port}" to-layer="{k}" to-port="{to}"/>"#
            );
        };
        edge(k - 1, 0);
        if !is_unary {
            edge(k.saturating_sub(10), 1);
        }
    }
    let last = layers + 1;
    let _ = write!(
        xml,
        r#"<layer id="{last}" name="r" type="Result" version="opset1"><input>{}</input></layer></layers><edges>{edges}<edge from-layer="{layers}" from-port="2" to-layer="{last}" to-port="0"/></edges></net>"#,
        port(0)
    );
    xml
}

#[test]
fn a_network_of_300_layers_is_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("chain.xml");
    fs::write(&model, chain(300)).unwrap();
    let page = explore(
        &model.display().to_string(),
        &dir.path().join("a.html"),
        &[],
    );
    assert!(page.len() < 5_000_000, "{} bytes", page.len());
    let script = "document.dispatchEvent(new KeyboardEvent('keydown', { key: 'j' })); \
         return [cy.nodes('[layer]').length, cy.edges().length, cy.nodes('.chosen').length];";
    if let Some(found) = in_browser(&page, script) {
        // With the parameter and the result. Of the inputs, 100 layers have one, 199 have two, and the first has one
        // twice, which is drawn once, as is that of the result.
        assert_eq!(found, serde_json::json!([302, 100 + 2 * 199 + 1 + 1, 1]));
    }
}
