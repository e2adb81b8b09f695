//! The clients, and how they are built and run.

use libtest_mimic::{Arguments, Trial};
use std::path::{Path, PathBuf};
use std::process::Command;
use vinelift_tests::{c_library, cargo, repository, succeed};

/// Set to a checkout of <https://github.com/intel/openvino-rs> to run the integration tests that are in it.
const CHECKOUT: &str = "VINELIFT_OPENVINO_RS";

const OPENVINO: &str = "openvino = { version = \"=0.11.1\", features = [\"runtime-linking\"] }";
const WASI_NN: &str = "wasmtime-wasi-nn = { version = \"=48.0.8\", default-features = false, features = [\"openvino\"] }";

/// Runs all clients for which there is all that they need.
pub(crate) fn main() {
    let arguments = Arguments::from_args();
    let mut skipped = Vec::new();
    let mut trials = Vec::new();
    let mut trial = |name: &str, place: Result<PathBuf, String>, test: fn(&Path)| {
        if let Err(why) = &place {
            skipped.push(format!("skipped {name}: {why}"));
        }
        let run = move || {
            // Where there is no place, the last lines say so.
            place.iter().for_each(|place| test(place));
            Ok(())
        };
        trials.push(Trial::test(name, run).with_ignored_flag(true));
    };
    let asks_for_all = arguments.ignored || arguments.include_ignored;
    // A program that only says that it was left out needs nothing downloaded.
    let project = |name, dependency| match asks_for_all {
        true => project(name, dependency),
        false => Err("it is built for minutes, `-- --ignored` runs it".to_owned()),
    };
    if !arguments.list {
        let openvino = project("openvino_client", OPENVINO);
        trial("the_crate_openvino", openvino, the_crate_openvino);
        let wasi_nn = project("wasi_nn_client", WASI_NN);
        trial("wasi_nn_of_wasmtime", wasi_nn, wasi_nn_of_wasmtime);
        let checkout = std::env::var_os(CHECKOUT).map(PathBuf::from);
        let checkout = checkout.ok_or_else(|| format!("{CHECKOUT} is not set"));
        let name = "integration_tests_of_the_crate_openvino";
        trial(name, checkout, integration_tests_of_the_crate_openvino);
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    skipped.iter().for_each(|line| eprintln!("{line}"));
    conclusion.exit();
}

/// The folder of the client `name`: the project of the program `tests/clients/<name>.rs`, with everything
/// downloaded that it needs.
///
/// # Errors
/// If that is out of reach.
fn project(name: &str, dependency: &str) -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let source = repository().join("tests/clients").join(name);
    let source = source.with_extension("rs").canonicalize().unwrap();
    std::fs::create_dir_all(&folder).unwrap();
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [[bin]]\nname = \"{name}\"\npath = {source:?}\n\n\
         [dependencies]\n{dependency}\n\n[profile.dev]\ndebug = false\n\n[workspace]\nexclude = [\"package\"]\n"
    );
    std::fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    let fetch = in_project(&folder).arg("fetch").output().unwrap();
    if fetch.status.success() {
        return Ok(folder);
    }
    let why = String::from_utf8_lossy(&fetch.stderr);
    let out_of_reach = ["download", "network", "resolve host", "connect", "offline"];
    assert!(
        out_of_reach.iter().any(|text| why.contains(text)),
        "{name}: {why}"
    );
    Err(format!("the registry of packages is out of reach: {why}"))
}

/// `cargo` for the project in `folder`, with nothing of what runs this test.
fn in_project(folder: &Path) -> Command {
    let mut cargo = cargo();
    cargo.current_dir(folder);
    for (key, _) in std::env::vars_os() {
        let of_cargo = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_TARGET_"];
        if key
            .to_str()
            .is_some_and(|key| of_cargo.iter().any(|start| key.starts_with(start)))
        {
            cargo.env_remove(key);
        }
    }
    cargo.env("CARGO_TARGET_DIR", folder.join("target"));
    cargo
}

/// The folder in which clients look for the library.
fn library_folder() -> &'static Path {
    c_library().parent().unwrap()
}

/// A folder as OpenVINO is installed in, with the library where clients look for it.
fn installed() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let libraries = folder.path().join("runtime/lib/intel64");
    std::fs::create_dir_all(&libraries).unwrap();
    for name in ["libopenvino_c.so", "libopenvino.so"] {
        std::os::unix::fs::symlink(c_library(), libraries.join(name)).unwrap();
    }
    folder
}

/// Builds and runs the client `name`, which finds the library in `variable`.
fn run(name: &str, folder: &Path, variable: &str, value: &Path) {
    succeed(in_project(folder).arg("build"));
    let mut program = Command::new(folder.join("target/debug").join(name));
    program.arg(repository().join("ir-samples"));
    for other in [
        "OPENVINO_BUILD_DIR",
        "OPENVINO_INSTALL_DIR",
        "INTEL_OPENVINO_DIR",
    ] {
        program.env_remove(other);
    }
    let printed = succeed(program.env(variable, value));
    assert!(printed.contains("all is well"), "{printed}");
}

fn the_crate_openvino(folder: &Path) {
    run(
        "openvino_client",
        folder,
        "LD_LIBRARY_PATH",
        library_folder(),
    );
    let installed = installed();
    run(
        "openvino_client",
        folder,
        "OPENVINO_INSTALL_DIR",
        installed.path(),
    );
    own_tests(folder);
}

/// The tests in the package of the crate itself, of functions and of documentation. One is left out: it
/// reads a model that is not IR.
fn own_tests(folder: &Path) {
    let metadata = succeed(in_project(folder).args(["metadata", "--format-version", "1"]));
    let manifest = metadata
        .split('"')
        .find(|text| text.ends_with("openvino-0.11.1/Cargo.toml"));
    let package = Path::new(manifest.unwrap()).parent().unwrap();
    // A copy: the package is in a folder that is not to be written.
    let copy = folder.join("package");
    succeed(Command::new("rm").arg("-rf").arg(&copy));
    succeed(Command::new("cp").arg("-r").arg(package).arg(&copy));
    // Below the target folder it would be taken for a part of this workspace.
    let manifest = copy.join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(manifest, text + "\n[workspace]\n").unwrap();
    let fixtures = copy.join("tests/fixtures");
    stand_in(&fixtures, "inception", &[1, 3, 299, 299]);
    let image = fixtures.join("inception/tensor-1x3x299x299-f32.bgr");
    std::fs::write(image, vec![0; 299 * 299 * 3 * 4]).unwrap();
    let mut tests = in_project(folder);
    tests
        .current_dir(&copy)
        .env("LD_LIBRARY_PATH", library_folder());
    tests.args(["test", "--features", "runtime-linking", "--"]);
    let printed = succeed(tests.args(["--skip", "test_load_onnx_from_buffer"]));
    let passed = printed
        .lines()
        .filter(|line| line.ends_with("... ok"))
        .count();
    assert!(passed >= 27, "{passed} tests passed:\n{printed}");
}

fn integration_tests_of_the_crate_openvino(checkout: &Path) {
    let fixtures = checkout.join("crates/openvino/tests/fixtures");
    stand_in(&fixtures, "alexnet", &[1, 3, 227, 227]);
    stand_in(&fixtures, "mobilenet", &[1, 3, 224, 224]);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("openvino_rs");
    let mut tests = in_project(checkout);
    tests.env("CARGO_TARGET_DIR", target);
    tests.env("LD_LIBRARY_PATH", library_folder());
    tests.args([
        "test",
        "-p",
        "openvino",
        "--features",
        "openvino/runtime-linking",
    ]);
    tests.args([
        "--test",
        "setup",
        "--test",
        "reshape",
        "--test",
        "memory-safety",
    ]);
    let printed = succeed(&mut tests);
    let passed = printed
        .lines()
        .filter(|line| line.ends_with("... ok"))
        .count();
    assert!(passed >= 8, "{passed} tests passed:\n{printed}");
}

/// A model in place of one that a test would download, unless it is there. The tests that use it look
/// only at the names and shapes of its input and output.
fn stand_in(fixtures: &Path, name: &str, shape: &[usize]) {
    let path = fixtures.join(name).join(name).with_extension("xml");
    if path.exists() {
        return;
    }
    let dims: String = shape.iter().map(|d| format!("<dim>{d}</dim>")).collect();
    let shape: Vec<String> = shape.iter().map(usize::to_string).collect();
    let shape = shape.join(",");
    let text = format!(
        r#"<net name="{name}" version="11"><layers>
<layer id="0" name="input" type="Parameter" version="opset1"><data shape="{shape}" element_type="f32"/>
<output><port id="0" precision="FP32" names="input">{dims}</port></output></layer>
<layer id="1" name="prob" type="ReLU" version="opset1"><input><port id="0">{dims}</port></input>
<output><port id="1" precision="FP32" names="prob">{dims}</port></output></layer>
<layer id="2" name="result" type="Result" version="opset1"><input><port id="0">{dims}</port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
<edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>"#
    );
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    std::fs::write(path.with_extension("bin"), [0; 4]).unwrap();
}

fn wasi_nn_of_wasmtime(folder: &Path) {
    run(
        "wasi_nn_client",
        folder,
        "LD_LIBRARY_PATH",
        library_folder(),
    );
}
