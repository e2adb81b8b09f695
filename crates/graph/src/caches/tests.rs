//! Finds caches in models, and stores them.

use super::*;
use crate::infer;
use vinelift_ops::VariableAttributes;
use vinelift_xml as xml;

/// `held = concat(held, new)`, with words to replace.
const MODEL: &str = r#"<net name="g" version="11"><layers>
<layer id="0" name="new" type="Parameter" version="opset1"><data shape="1,?,4" element_type="TYPE"/>
<output><port id="0"/></output></layer>
<layer id="1" name="read" type="ReadValue" version="opset6"><data variable_id="held" variable_type="TYPE"
variable_shape="1,?,?"/><output><port id="0"/></output></layer>
<layer id="2" name="grown" type="Concat" version="opset1"><data axis="AXIS"/><input><port id="0"/><port id="1"/></input>
<output><port id="2"/></output></layer>
<layer id="3" name="assign" type="Assign" version="opset6"><data variable_id="held"/><input><port id="0"/></input></layer>
<layer id="4" name="absolute" type="Abs" version="opset1"><input><port id="0"/></input>
<output><port id="1"/></output></layer>
<layer id="5" name="result" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges>
<edge from-layer="FIRST" from-port="0" to-layer="2" to-port="0"/><edge from-layer="0" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="SET" from-port="OUTPUT" to-layer="3" to-port="0"/>
<edge from-layer="2" from-port="2" to-layer="4" to-port="0"/><edge from-layer="4" from-port="1" to-layer="5" to-port="0"/>
</edges></net>"#;

/// A word, and what it is replaced by.
type Word<'a> = (&'a str, &'a str);

/// The caches that are stored with other words than usual in the model, and the types of the variables in it then.
fn stored(words: &[Word<'_>], storage: Storage) -> (Vec<StoredCache>, Vec<String>) {
    let usual = [
        ("TYPE", "f32"),
        ("AXIS", "1"),
        ("FIRST", "1"),
        ("SET", "2"),
        ("OUTPUT", "2"),
    ];
    let text = words
        .iter()
        .chain(&usual)
        .fold(MODEL.to_owned(), |text, (word, to)| text.replace(word, to));
    let document = xml::read(text.as_bytes()).unwrap();
    let mut model = Model::import(document, &xml::Weights::default()).unwrap();
    let caches = model.store_caches(storage).unwrap();
    model.finish().unwrap();
    infer(&model).unwrap();
    let mut types: Vec<String> = Vec::new();
    for node in model.graph.node_weights() {
        if let NodeKind::ReadValue(VariableAttributes {
            declared: Some(ty), ..
        }) = &node.kind
        {
            types.push(ty.to_string());
        }
    }
    (caches, types)
}

#[test]
fn a_cache_becomes_numbers_or_codes() {
    let (caches, types) = stored(&[], Storage::Rounded(ElementType::F16));
    assert_eq!(caches[0].id, "held");
    assert_eq!(
        (caches[0].rows.as_ref(), types),
        (None, vec!["f16[1, ?, ?]".to_owned()])
    );
    let (caches, types) = stored(&[], Storage::Codes);
    assert!(caches[0].rows.is_some());
    assert_eq!(types, ["u8[1, ?, ?]", "f32[1, ?, 1]", "f32[1, ?, 1]"]);
}

#[test]
fn other_variables_stay_as_they_are() {
    let half = Storage::Rounded(ElementType::F16);
    let other: [(&[Word<'_>], Storage, &str); 4] = [
        // Along the last dim a run would add elements to rows that have their scale already.
        (&[("AXIS", "-1")], Storage::Codes, "f32[1, ?, ?]"),
        (&[("TYPE", "f64")], half, "f64[1, ?, ?]"),
        // Nothing that was held is in it.
        (&[("FIRST", "0")], half, "f32[1, ?, ?]"),
        (&[("SET", "4"), ("OUTPUT", "1")], half, "f32[1, ?, ?]"),
    ];
    for (words, storage, ty) in other {
        let (caches, types) = stored(words, storage);
        assert_eq!((caches, types), (vec![], vec![ty.to_owned()]));
    }
    assert_eq!(stored(&[("AXIS", "-1")], half).1, ["f16[1, ?, ?]"]);
}
