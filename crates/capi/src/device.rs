//! The devices: all are this engine.

use crate::status::{Failure, Result, Status};
use std::thread;

/// The name of the device in lists of devices.
pub(crate) const DEVICE: &str = "CPU";
/// The other names of it.
const NAMES: [&str; 2] = [DEVICE, "VINELIFT"];
const AUTO: &str = "AUTO";

/// By which kind of name the engine is asked for; they have different properties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Device {
    /// As the processor.
    Processor,
    /// As a choice among devices.
    Auto,
}

/// The device of this name, if there is one; none, or an empty one, leaves the choice to us.
pub(crate) fn check(name: Option<&str>) -> Result<Device> {
    let name = name.unwrap_or_default();
    let (device, choice) = name.split_once(':').unwrap_or((name, ""));
    let is_auto = device == AUTO || name.is_empty();
    if is_auto {
        check_list(choice)?;
        return Ok(Device::Auto);
    }
    if NAMES.contains(&name) {
        Ok(Device::Processor)
    } else {
        Err(unknown(name))
    }
}

/// Checks a list of devices to choose from, such as `CPU,-GPU`: one of them must be there.
pub(crate) fn check_list(list: &str) -> Result<()> {
    let mut wanted = list.split(',').map(str::trim);
    let is_ours = |name: &str| NAMES.contains(&name);
    let excludes = |name: &str| name.strip_prefix('-').is_some_and(|name| !is_ours(name));
    match wanted.find(|name| !name.is_empty() && !is_ours(name) && !excludes(name)) {
        Some(name) => Err(unknown(name)),
        None => Ok(()),
    }
}

fn unknown(name: &str) -> Failure {
    let text = format!("there is no device '{name}', expected CPU, AUTO or VINELIFT");
    Failure::new(Status::NotFound, text)
}

/// The name of the processor, as the system has it.
pub(crate) fn full_name() -> String {
    let known = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut lines = known.lines().filter_map(|line| line.split_once(':'));
    let model = lines.find(|(key, _)| key.trim() == "model name");
    let model = model.map_or(std::env::consts::ARCH, |(_, name)| name.trim());
    format!("{model} (Vinelift)")
}

/// How many threads run at a time.
pub(crate) fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_devices() {
        for name in [None, Some(""), Some("CPU"), Some("AUTO"), Some("VINELIFT")] {
            check(name).unwrap();
        }
        check(Some("AUTO:CPU,-GPU")).unwrap();
        for (name, bad) in [
            ("GPU", "GPU"),
            ("AUTO:GPU,CPU", "GPU"),
            ("CPU:GPU", "CPU:GPU"),
            ("cpu", "cpu"),
            ("AUTO:-CPU", "-CPU"),
        ] {
            assert_eq!(
                check(Some(name)).unwrap_err().message,
                format!("there is no device '{bad}', expected CPU, AUTO or VINELIFT")
            );
        }
    }
}
