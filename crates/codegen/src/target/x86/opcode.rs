//! The part of an instruction's encoding that does not depend on its operands.

/// The opcode of an instruction on vectors or masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opcode {
    /// Prefix: none, `66`, `F3`, `F2`.
    pub(super) prefix: u8,
    /// Map: `0F`, `0F38`, `0F3A`.
    pub(super) map: u8,
    /// The W bit, as AVX-512 needs it.
    pub(super) wide: bool,
    pub(super) code: u8,
}

pub(super) const fn opcode(prefix: u8, map: u8, wide: bool, code: u8) -> Opcode {
    Opcode {
        prefix,
        map,
        wide,
        code,
    }
}

impl Opcode {
    /// The W bit by the encoding of AVX: clear where Intel's manual has `WIG` for it. Processors ignore it there, but
    /// emulators may take a set one for an instruction that they do not know.
    pub(super) fn wide_in_avx(self) -> bool {
        self.wide && !self.avx_ignores_wide()
    }

    /// The ranges without W0 or W1 in the manual; instructions on general registers keep the bit.
    fn avx_ignores_wide(self) -> bool {
        match (self.map, self.code) {
            (1, 0x2a | 0x2c | 0x2d | 0x50 | 0xc4 | 0xc5 | 0xd7) => false,
            // To and from general registers but for the one prefix.
            (1, 0x6e | 0x7e) => self.prefix == 2,
            // Masks.
            (1, 0x41..=0x4b | 0x90..=0x99) => false,
            (1, _) => true,
            (2, 0x00..=0x0b | 0x17 | 0x1c..=0x1e | 0x20..=0x25 | 0x28..=0x2b) => true,
            (2, 0x30..=0x35 | 0x37..=0x41 | 0xdb..=0xdf) => true,
            (3, 0x08..=0x0f | 0x21 | 0x40..=0x42 | 0x44 | 0x62 | 0x63 | 0xdf) => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Code, Decoder, DecoderOptions};

    /// The disassembler's name for an instruction with these bits and bytes behind the prefix.
    fn decoded(op: Opcode, bits: u8, operands: u8) -> Option<Code> {
        let bytes = [0xc4, 0xe0 | op.map, bits | op.prefix, op.code, operands];
        let bytes = [&bytes[..], &[0; 5]].concat();
        let code = Decoder::new(64, &bytes, DecoderOptions::NONE).decode();
        (!code.is_invalid()).then(|| code.code())
    }

    /// Whether the W bit tells instructions apart; `None` if there is none with the bit set.
    fn wide_matters(op: Opcode) -> Option<bool> {
        let mut matters = None;
        // Some take only memory or registers, 128 or 256 bits, two operands, or have a number in a field.
        for bits in [0x78, 0x7c, 0x68, 0x6c] {
            for operands in (0..8).flat_map(|field| [0xc1 | field << 3, 1 | field << 3]) {
                if let Some(wide) = decoded(op, 0x80 | bits, operands) {
                    let differs = decoded(op, bits, operands) != Some(wide);
                    matters = Some(matters.unwrap_or(false) | differs);
                }
            }
        }
        matters
    }

    #[test]
    fn avx_ignores_what_the_disassembler_ignores() {
        let (mut ignored, mut wrong) = (0, Vec::new());
        for (prefix, map) in (0..4).flat_map(|prefix| (1..4).map(move |map| (prefix, map))) {
            for code in 0..=255 {
                let op = opcode(prefix, map, true, code);
                if let Some(matters) = wide_matters(op) {
                    ignored += usize::from(!matters);
                    if op.wide_in_avx() != matters {
                        wrong.push(op);
                    }
                }
                assert!(!opcode(prefix, map, false, code).wide_in_avx());
            }
        }
        assert!(ignored > 200, "{ignored}");
        assert!(wrong.is_empty(), "{wrong:x?}");
    }
}
