//! Errors, with their place; limits.

use super::*;
use crate::tree::{MAX_ATTRIBUTES, MAX_DEPTH};
use crate::write;

/// Texts that are no XML, and the messages.
const NO_XML: &[(&str, &str)] = &[
    ("", "1:1: expected `<net>`, found the end of the text"),
    (
        "<net",
        "1:1: syntax error: tag not closed: `>` not found before end of input",
    ),
    (
        "<net version='11'>\n<layers>",
        "2:1: `<layers>` is not closed",
    ),
    (
        "<net></nit>",
        "1:6: ill-formed document: expected `</net>`, but `</nit>` was found",
    ),
    (
        "</net>",
        "1:1: ill-formed document: close tag `</net>` does not match any open tag",
    ),
    (
        "<net a='1' b='2' a='3'/>",
        "1:18: attribute `a` is given twice",
    ),
    (
        "<net a/>",
        "1:7: expected `=` after the name of an attribute",
    ),
    ("<net a= />", "1:9: expected a quoted value after `=`"),
    ("<net a=1/>", "1:8: expected a quoted value after `=`"),
    ("<net a&='1'/>", "1:6: `a&` is no name of an attribute"),
    ("<n&t/>", "1:1: `n&t` is no name of an element"),
    ("<net a='&x;'/>", "1:6: attribute `a`: unknown entity `&x;`"),
    (
        "<net a='&#0;'/>",
        "1:6: attribute `a`: invalid character reference: 0x0 character is not permitted in XML",
    ),
    (
        "<net version='11'><layers/><rt_info>&x;</rt_info></net>",
        "1:37: unknown entity `&x;`",
    ),
    (
        "<net version='11'><layers/></net>\nx",
        "2:1: text outside of the root element",
    ),
    (
        "<net version='11'><layers/></net><net/>",
        "1:34: a second root, `<net>`",
    ),
    ("<net>\0</net>", "1:6: a NUL character"),
    (
        " <?xml version='1.0'?><net/>",
        "1:2: the XML declaration is not at the start",
    ),
    (
        "<?xml version='1.0' encoding='latin1'?><net/>",
        "1:1: expected encoding UTF-8, found `latin1`",
    ),
    ("<!DOCTYPE net><net/>", "1:1: a DOCTYPE is not allowed"),
    (
        "<!DOCTYPE n [<!ENTITY a \"aa\"><!ENTITY b \"&a;&a;\">]><net/>",
        "1:1: a DOCTYPE is not allowed",
    ),
];

/// XML that is no model.
const NO_MODEL: &[(&str, &str)] = &[
    ("<html/>", "1:1: expected `<net>`, found `<html>`"),
    ("<net/>", "1:1: `<net>`: attribute `version` is missing"),
    (
        "<net version='x'/>",
        "1:6: attribute `version`: expected a 64-bit whole number of no sign, found `x`",
    ),
    ("<net version='11'/>", "1:1: `<net>`: `<layers>` is missing"),
    (
        "<net version='11'><layers/><layers/></net>",
        "1:28: a second `<layers>`",
    ),
];

/// Contents of `<layers>` that are wrong.
const WRONG_LAYERS: &[(&str, &str)] = &[
    (
        "<layer name='a'/>",
        "3:4: `<layer>`: attribute `id` is missing",
    ),
    (
        "<layer id='-1'/>",
        "3:11: attribute `id`: expected a 64-bit whole number of no sign, found `-1`",
    ),
    (
        "<layer id='99999999999999999999'/>",
        "3:11: attribute `id`: expected a 64-bit whole number of no sign, found `99999999999999999999`",
    ),
    (
        "<layer id='+1'/>",
        "3:11: attribute `id`: expected a 64-bit whole number of no sign, found `+1`",
    ),
];

/// Contents of a `<layer>` that are wrong.
const WRONG_CONTENTS: &[(&str, &str)] = &[
    ("<blobs/>", "3:45: `<blobs>` is of a version before 10"),
    ("<data/><data/>", "3:52: a second `<data>`"),
    (
        "<body><layers/></body><body><layers/></body>",
        "3:67: a second `<body>`",
    ),
    ("<body/>", "3:45: `<body>`: `<layers>` is missing"),
    (
        "<input><port/></input>",
        "3:52: `<port>`: attribute `id` is missing",
    ),
    (
        "<input><port id='0'><dim>-2</dim></port></input>",
        "3:65: `<dim>`: expected -1 or more, found -2",
    ),
    (
        "<input><port id='0'><dim/></port></input>",
        "3:65: `<dim>`: expected a 64-bit whole number, found ``",
    ),
    (
        "<port_map><input external_port_id='0' internal_layer_id='0' axis='x'/></port_map>",
        "3:105: attribute `axis`: expected a 64-bit whole number, found `x`",
    ),
];

#[test]
fn errors_say_what_and_where() {
    for (text, message) in NO_XML.iter().chain(NO_MODEL) {
        assert_eq!(error(text), *message, "{text}");
    }
    let layer = |inner: &str| format!("<net version='11'>\n<layers>\n  é{inner}</layers></net>");
    for (inner, message) in WRONG_LAYERS {
        assert_eq!(error(layer(inner)), *message, "{inner}");
    }
    for (inner, message) in WRONG_CONTENTS {
        let whole = format!("<layer id='0' name='' type='' version=''>{inner}</layer>");
        assert_eq!(error(layer(&whole)), *message, "{inner}");
    }
}

#[test]
fn errors_of_other_encodings_and_of_long_texts() {
    assert_eq!(
        error(b"<net>\n\xff"),
        "2:1: expected encoding UTF-8, found another"
    );
    assert_eq!(
        error(b"\xff\xfe<\0"),
        "1:1: expected encoding UTF-8, found UTF-16"
    );
    let name = "x".repeat(1000);
    assert_eq!(
        error(format!("<net></{name}\u{1}>")).chars().count(),
        "1:6: ".len() + 200 + 1
    );
    let long = format!("<net version='{}\n'/>", "é".repeat(50));
    let cut = "é".repeat(40);
    assert_eq!(
        error(long),
        format!(
            "1:6: attribute `version`: expected a 64-bit whole number of no sign, found `{cut}…`"
        )
    );
}

#[test]
fn depth_and_attributes_are_limited() {
    let nested = |depth: usize| {
        let inside = "<a>".repeat(depth - 2) + &"</a>".repeat(depth - 2);
        format!("<net version='11'><layers/><rt_info>{inside}</rt_info></net>")
    };
    let deepest = read(nested(MAX_DEPTH).as_bytes()).unwrap();
    assert_eq!(read(write(&deepest).as_bytes()).unwrap(), deepest);
    let offset = 36 + 3 * (MAX_DEPTH - 2) + 1;
    assert_eq!(
        error(nested(MAX_DEPTH + 1)),
        format!("1:{offset}: elements nest deeper than 256")
    );
    assert!(error("<a>".repeat(1_000_000)).ends_with("elements nest deeper than 256"));

    let bodies = |count: usize| {
        let open = "<layers><layer id='0' name='' type='' version=''><body>".repeat(count);
        let close = "</body></layer></layers>".repeat(count);
        format!("<net version='11'>{open}<layers/>{close}</net>")
    };
    let deepest = read(bodies(84).as_bytes()).unwrap();
    assert_eq!(read(write(&deepest).as_bytes()).unwrap(), deepest);
    assert!(error(bodies(86)).ends_with("elements nest deeper than 256"));

    let attributes = |count: usize| {
        let all: String = (0..count).map(|i| format!(" a{i}=''")).collect();
        format!("<net version='11'{all}><layers/></net>")
    };
    assert!(read(attributes(MAX_ATTRIBUTES - 1).as_bytes()).is_ok());
    assert!(error(attributes(MAX_ATTRIBUTES)).ends_with("more than 1000 attributes"));
}

#[test]
fn truncation_is_an_error_at_every_byte() {
    let end = FULL.trim_end().len();
    for end in 0..end {
        assert!(read(&FULL.as_bytes()[..end]).is_err(), "{end}");
    }
}
