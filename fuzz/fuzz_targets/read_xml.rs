//! Any bytes are read or refused, and what is read is the same after it has been written.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    if let Ok(document) = vinelift_xml::read(text) {
        let written = vinelift_xml::write(&document);
        match vinelift_xml::read(written.as_bytes()) {
            Ok(again) => assert_eq!(again, document, "{written}"),
            Err(error) => panic!("{error}\n{written}"),
        }
    }
});
