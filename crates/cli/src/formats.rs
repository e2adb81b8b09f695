//! Files that are no IR, or of a version that is not read: their formats, and the command that makes an IR of each.

use crate::failure::Failure;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// The failure of a file that is not read as a model: what it is instead, if that is recognised.
pub(crate) fn unread(path: &Path, error: vinelift::Error) -> Failure {
    let lacks_weights = matches!(&error, vinelift::Error::Io { path, .. } if path.extension().is_some_and(|e| e == "bin"));
    if lacks_weights {
        return Failure::Message(format!("{error}; `--weights FILE.bin` names another"));
    }
    let Some(format) = Format::of(path) else {
        return Failure::Vinelift(error);
    };
    let (is, makes) = (format.is(path), format.makes(path));
    Failure::Message(format!("{}: {is}. {makes}", path.display()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Onnx,
    TfLite,
    TensorFlow,
    Paddle,
    PyTorch,
    Keras,
    SafeTensors,
    /// The constants of an IR.
    Weights,
    /// An IR of a version that is not read.
    Ir(u32),
}

impl Format {
    /// Recognises the format by the name and the first bytes of a file; `None` if it may be an IR or is of none of these.
    fn of(path: &Path) -> Option<Format> {
        if path.is_dir() {
            let saved_model = path.join("saved_model.pb").exists();
            return saved_model.then_some(Format::TensorFlow);
        }
        let mut start = Vec::new();
        let file = File::open(path).ok()?;
        file.take(4096).read_to_end(&mut start).ok()?;
        Format::of_bytes(&start).or_else(|| {
            let extension = path.extension()?.to_str()?.to_ascii_lowercase();
            Format::of_extension(&extension)
        })
    }

    fn of_extension(extension: &str) -> Option<Format> {
        Some(match extension {
            "onnx" => Format::Onnx,
            "tflite" => Format::TfLite,
            "pb" => Format::TensorFlow,
            "pdmodel" => Format::Paddle,
            "pt" | "pth" | "pt2" | "ts" => Format::PyTorch,
            "keras" | "h5" => Format::Keras,
            "safetensors" => Format::SafeTensors,
            "bin" => Format::Weights,
            _ => return None,
        })
    }

    fn of_bytes(start: &[u8]) -> Option<Format> {
        let text = String::from_utf8_lossy(start);
        if let Some((_, net)) = text.split_once("<net") {
            let (_, version) = net.split('>').next()?.split_once("version=\"")?;
            let version = version.split('"').next()?.parse().ok()?;
            return (!(10..=11).contains(&version)).then_some(Format::Ir(version));
        }
        match start {
            [_, _, _, _, b'T', b'F', b'L', b'3', ..] => Some(Format::TfLite),
            // Of `ModelProto`: the version of the format, then the name of what made it.
            [0x08, _, 0x12, ..] => Some(Format::Onnx),
            [0x89, b'H', b'D', b'F', ..] => Some(Format::Keras),
            // An archive, or Python's pickle.
            [b'P', b'K', 3, 4, ..] if text.contains("config.json") => Some(Format::Keras),
            [b'P', b'K', 3, 4, ..] | [0x80, 2, ..] => Some(Format::PyTorch),
            _ => None,
        }
    }

    fn is(self, path: &Path) -> String {
        let name = match self {
            Format::Onnx => "ONNX",
            Format::TfLite => "TensorFlow Lite",
            Format::TensorFlow => "TensorFlow",
            Format::Paddle => "PaddlePaddle",
            Format::PyTorch => "PyTorch",
            Format::Keras => "Keras",
            Format::SafeTensors => {
                return "these are weights without a graph, in the format of safetensors"
                    .to_owned();
            }
            Format::Weights => {
                let xml = path.with_extension("xml");
                let also = match xml.exists() {
                    true => format!("; `{}` beside it is the model", xml.display()),
                    false => String::new(),
                };
                return format!("these are the constants of a model, which is an .xml file{also}");
            }
            Format::Ir(version) => {
                return format!("IR version {version} is unsupported, expected 10 or 11");
            }
        };
        format!("this is a model of {name}, not OpenVINO IR")
    }

    /// The command that makes an IR of it.
    fn makes(self, path: &Path) -> String {
        const TOOL: &str = "pip install openvino && ovc";
        let file = fs::canonicalize(path).ok();
        let stem = file.as_deref().unwrap_or(path).file_stem();
        let stem = stem.map_or("model".into(), |s| s.to_string_lossy());
        let path = path.display();
        match self {
            Format::Onnx | Format::TfLite | Format::TensorFlow | Format::Paddle => {
                format!("This makes an IR of it: {TOOL} {path} --output_model {stem}.xml")
            }
            Format::PyTorch => format!(
                "In Python, with an `example` of its input, this makes an IR of it: \
                 import openvino, torch; \
                 model = openvino.convert_model(torch.jit.load(\"{path}\"), example_input=example); \
                 openvino.save_model(model, \"{stem}.xml\")"
            ),
            Format::Keras => format!(
                "This makes an IR of it: pip install openvino keras tensorflow && \
                 python -c 'import keras; keras.models.load_model(\"{path}\").export(\"{stem}\")' && \
                 ovc {stem} --output_model {stem}.xml"
            ),
            Format::SafeTensors => "Of the folder that it came with, this makes an IR: \
                 pip install \"optimum-intel[openvino]\" && \
                 optimum-cli export openvino --model FOLDER OUT"
                .to_owned(),
            Format::Weights => "Give the .xml file".to_owned(),
            Format::Ir(_) => format!(
                "Convert the model that it was made from again: {TOOL} ORIGINAL --output_model {stem}.xml"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_have_their_first_bytes() {
        let of = Format::of_bytes;
        assert_eq!(of(b"\x08\x07\x12\x07pytorch"), Some(Format::Onnx));
        assert_eq!(of(b"\x1c\0\0\0TFL3\x14\0"), Some(Format::TfLite));
        assert_eq!(of(b"PK\x03\x04\0\0resnet/data.pkl"), Some(Format::PyTorch));
        assert_eq!(of(b"PK\x03\x04\0\0config.json"), Some(Format::Keras));
        let net =
            |version| format!("<?xml version=\"1.0\"?><net name=\"a\" version=\"{version}\">");
        assert_eq!(of(net(7).as_bytes()), Some(Format::Ir(7)));
        assert_eq!(of(net(11).as_bytes()), None);
        assert_eq!(of(b"<html>"), None);
        assert_eq!(Format::of_extension("onnx"), Some(Format::Onnx));
        assert_eq!(Format::of_extension("xml"), None);
    }
}
