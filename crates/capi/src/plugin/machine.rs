//! Properties of the processor and of this library, for OpenVINO.

use super::ffi::Text;
use crate::device;
use std::sync::LazyLock;

/// The version of this library.
pub(crate) extern "C" fn version() -> Text {
    Text::of_text(env!("CARGO_PKG_VERSION"))
}

/// How many threads there are for a run.
pub(crate) extern "C" fn threads() -> usize {
    device::threads()
}

/// The target of the generated code: the architecture, and the extensions that this processor has.
pub(crate) extern "C" fn target() -> Text {
    static TARGET: LazyLock<String> = LazyLock::new(|| {
        let mut parts = vec![std::env::consts::ARCH];
        parts.extend(extensions());
        parts.join(" ")
    });
    Text::of_text(&TARGET)
}

/// The name of the processor, as the system has it.
pub(crate) extern "C" fn full_name() -> Text {
    static NAME: LazyLock<String> = LazyLock::new(device::full_name);
    Text::of_text(&NAME)
}

#[cfg(target_arch = "x86_64")]
fn extensions() -> Vec<&'static str> {
    let all = [
        ("avx2", is_x86_feature_detected!("avx2")),
        ("fma", is_x86_feature_detected!("fma")),
        ("f16c", is_x86_feature_detected!("f16c")),
        ("avxvnni", is_x86_feature_detected!("avxvnni")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("avx512bw", is_x86_feature_detected!("avx512bw")),
        ("avx512vl", is_x86_feature_detected!("avx512vl")),
        ("avx512vnni", is_x86_feature_detected!("avx512vnni")),
    ];
    let there = all.into_iter().filter(|(_, is_there)| *is_there);
    there.map(|(name, _)| name).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn extensions() -> Vec<&'static str> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_a_name() {
        // SAFETY: the texts are static.
        let texts = unsafe { [version(), target(), full_name()].map(|text| text.to_text()) };
        assert!(texts[0].starts_with(char::is_numeric));
        assert!(texts[1].starts_with(std::env::consts::ARCH));
        assert!(texts[2].ends_with("(Vinelift)"));
        assert!(threads() > 0);
    }
}
