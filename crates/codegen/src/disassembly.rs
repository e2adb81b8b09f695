//! Machine code as text.

#[cfg(feature = "disassembly")]
use iced_x86::{Decoder, DecoderOptions, Formatter, Instruction, NasmFormatter};

/// Each instruction with its offset; the bytes of machines other than x86.
#[cfg(feature = "disassembly")]
pub(crate) fn instructions(bytes: &[u8], isa: &str) -> Vec<(usize, String)> {
    if isa != "x64" {
        let words = bytes.chunks(4).enumerate();
        let hex = |word: &[u8]| word.iter().rev().map(|b| format!("{b:02x}")).collect();
        return words.map(|(k, word)| (4 * k, hex(word))).collect();
    }
    let mut formatter = NasmFormatter::new();
    let options = formatter.options_mut();
    options.set_space_after_operand_separator(true);
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    let mut all = Vec::new();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let mut line = String::new();
        formatter.format(&instruction, &mut line);
        all.push((instruction.ip() as usize, line));
    }
    all
}

/// There is no disassembler to ask.
#[cfg(not(feature = "disassembly"))]
pub(crate) fn instructions(_: &[u8], _: &str) -> Vec<(usize, String)> {
    vec![(0, "built without the feature `disassembly`".to_owned())]
}
