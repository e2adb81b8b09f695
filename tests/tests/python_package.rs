//! The tests of the Python package, with the wheel that is made of it, in a virtual environment. They are run only when asked
//! for, as they build the release and need PyPI: `cargo test -p vinelift-tests --test python_package -- --ignored`. Where PyPI
//! cannot be reached they say so.

#[cfg(target_os = "linux")]
#[test]
#[ignore = "it builds the release, and installs from PyPI"]
fn python_package() {
    let script = vinelift_tests::repository().join("crates/python/tests/run.sh");
    let status = std::process::Command::new(script).status();
    assert!(status.unwrap().success());
}
