//! Where values that a run computes decide about shapes, a plan serves many of them.

use std::fmt::Write;
use vinelift::ElementType::{F32, I64};
use vinelift::{CompiledModel, Core, Dim, PartialShape, Tensor};
use vinelift_tests::{Graph, Value, repository, same};

/// A chain of `count` times `x = convert(squeeze(non_zero(x))) + 1`, from `x` of shape `[?]`.
fn chain(core: &Core, count: usize) -> CompiledModel {
    let mut layers = "<layer id=\"0\" name=\"x\" type=\"Parameter\" version=\"opset1\"><data shape=\"?\" \
        element_type=\"f32\"/><output><port id=\"0\"/></output></layer>\
        <layer id=\"1\" name=\"axis\" type=\"Const\" version=\"opset1\"><data element_type=\"i64\" shape=\"1\" \
        offset=\"0\" size=\"8\"/><output><port id=\"0\"/></output></layer>\
        <layer id=\"2\" name=\"one\" type=\"Const\" version=\"opset1\"><data element_type=\"f32\" shape=\"1\" \
        offset=\"8\" size=\"4\"/><output><port id=\"0\"/></output></layer>"
        .to_owned();
    let mut edges = String::new();
    let mut add = |id: usize, ty: &str, data: &str, inputs: &[usize]| {
        let mut text = String::new();
        for (port, from) in inputs.iter().enumerate() {
            let out = if *from < 3 { 0 } else { 9 };
            let _ = write!(text, "<port id=\"{port}\"/>");
            let _ = write!(
                edges,
                "<edge from-layer=\"{from}\" from-port=\"{out}\" to-layer=\"{id}\" to-port=\"{port}\"/>"
            );
        }
        let output = match ty {
            "Result" => "",
            _ => "<output><port id=\"9\"/></output>",
        };
        let version = if ty == "NonZero" { "opset3" } else { "opset1" };
        let _ = write!(
            layers,
            "<layer id=\"{id}\" name=\"n{id}\" type=\"{ty}\" version=\"{version}\"><data {data}/><input>{text}\
             </input>{output}</layer>"
        );
    };
    let mut x = 0;
    for id in (3..).step_by(4).take(count) {
        add(id, "NonZero", "output_type=\"i64\"", &[x]);
        add(id + 1, "Squeeze", "", &[id, 1]);
        add(id + 2, "Convert", "destination_type=\"f32\"", &[id + 1]);
        x = id + 3;
        add(x, "Add", "auto_broadcast=\"numpy\"", &[id + 2, 2]);
    }
    add(x + 1, "Result", "", &[x]);
    let text = format!(
        "<net name=\"g\" version=\"11\"><layers>{layers}</layers><edges>{edges}</edges></net>"
    );
    let weights = [0u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128, 63].to_vec();
    let model = core.read_model_from_memory(text.as_bytes(), weights);
    core.compile_model(&model.unwrap()).unwrap()
}

#[test]
fn counts_that_data_decides_are_symbols() {
    let core = Core::new().unwrap();
    // More segments than there are places for plans.
    let segments = 300;
    let compiled = chain(&core, segments);
    let mut request = compiled.create_request();
    for (len, zeros) in [(9, 2), (9, 2), (12, 3), (7, 0), (9, 2)] {
        let x: Vec<f32> = (0..len)
            .map(|k| if k < zeros { 0.0 } else { 1.0 })
            .collect();
        let x = Tensor::from_slice(&[len], &x).unwrap();
        request.set_input("x", x).unwrap();
        request.infer().unwrap();
        let want: Vec<f32> = (0..len - zeros).map(|k| k as f32 + 1.0).collect();
        assert_eq!(*request.output(0).unwrap().as_slice::<f32>().unwrap(), want);
    }
    let found = compiled.statistics();
    // One for each segment and the end. Shapes that took long, as the first one did, have another.
    let of_classes = found.plans - found.specialized;
    assert!(of_classes <= segments + 1, "{found:?}");
}

/// `table[start..stop]` of the numbers from 0 on.
const SLICED: &str = r#"<net name="g" version="11"><layers>
<layer id="0" name="start" type="Parameter" version="opset1"><data shape="1" element_type="i64"/>
<output><port id="0"/></output></layer>
<layer id="1" name="stop" type="Parameter" version="opset1"><data shape="1" element_type="i64"/>
<output><port id="0"/></output></layer>
<layer id="2" name="table" type="Const" version="opset1"><data element_type="i64" shape="300" offset="0" size="2400"/>
<output><port id="0"/></output></layer>
<layer id="3" name="one" type="Const" version="opset1"><data element_type="i64" shape="1" offset="8" size="8"/>
<output><port id="0"/></output></layer>
<layer id="4" name="slice" type="Slice" version="opset8"><input><port id="0"/><port id="1"/><port id="2"/><port id="3"/>
</input><output><port id="4"/></output></layer>
<layer id="5" name="result" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges>
<edge from-layer="2" from-port="0" to-layer="4" to-port="0"/><edge from-layer="0" from-port="0" to-layer="4" to-port="1"/>
<edge from-layer="1" from-port="0" to-layer="4" to-port="2"/><edge from-layer="3" from-port="0" to-layer="4" to-port="3"/>
<edge from-layer="4" from-port="4" to-layer="5" to-port="0"/>
</edges></net>"#;

/// A position in a constant that is too long to be looked at while shapes are found.
#[test]
fn positions_in_long_constants_are_symbols() {
    let core = Core::new().unwrap();
    let table: Vec<u8> = (0..300i64).flat_map(i64::to_le_bytes).collect();
    let model = core.read_model_from_memory(SLICED.as_bytes(), table);
    let compiled = core.compile_model(&model.unwrap()).unwrap();
    let mut request = compiled.create_request();
    for start in 2..60i64 {
        for (name, value) in [("start", start), ("stop", start + 1)] {
            let value = Tensor::from_slice(&[1], &[value]).unwrap();
            request.set_input(name, value).unwrap();
        }
        request.infer().unwrap();
        let want = Tensor::from_slice(&[1], &[start]).unwrap();
        assert!(same(request.output(0).unwrap(), &want));
    }
    let found = compiled.statistics();
    assert!(found.plans <= 3, "{found:?}");
}

/// The two largest numbers of [`SLICED`].
fn largest_of_slice() -> String {
    let largest = r#"<layer id="6" name="two" type="Const" version="opset1">
<data element_type="i64" shape="" offset="16" size="8"/><output><port id="0"/></output></layer>
<layer id="7" name="largest" type="TopK" version="opset11"><data axis="0" mode="max" sort="value"/><input><port id="0"/>
<port id="1"/></input><output><port id="2"/><port id="3"/></output></layer>
<layer id="5""#;
    let edges = r#"<edge from-layer="4" from-port="4" to-layer="7" to-port="0"/>
<edge from-layer="6" from-port="0" to-layer="7" to-port="1"/><edge from-layer="7" from-port="2" to-layer="5" to-port="0"/>"#;
    let to_result = r#"<edge from-layer="4" from-port="4" to-layer="5" to-port="0"/>"#;
    let text = SLICED.replace(r#"<layer id="5""#, largest);
    text.replace(to_result, edges)
}

/// Bounds that nobody reads after the slice: a plan of a class that still knew them would not agree with those of its shapes.
#[test]
fn values_that_were_symbols_are_forgotten_as_numbers_are() {
    let core = Core::new().unwrap();
    let table: Vec<u8> = (0..300i64).flat_map(i64::to_le_bytes).collect();
    let model = core.read_model_from_memory(largest_of_slice().as_bytes(), table);
    let compiled = core.compile_model(&model.unwrap()).unwrap();
    let mut request = compiled.create_request();
    for start in 2..60i64 {
        let stop = start + 5;
        for (name, value) in [("start", start), ("stop", stop)] {
            let value = Tensor::from_slice(&[1], &[value]).unwrap();
            request.set_input(name, value).unwrap();
        }
        request.infer().unwrap();
        let want = Tensor::from_slice(&[2], &[stop - 1, stop - 2]).unwrap();
        assert!(same(request.output(0).unwrap(), &want));
    }
}

/// The two parts of `x`, of lengths that come with a run. Not even how many lengths there are is said.
const SPLIT: &str = r#"<net name="g" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="?" element_type="i64"/>
<output><port id="0"/></output></layer>
<layer id="1" name="axis" type="Const" version="opset1"><data element_type="i64" shape="" offset="0" size="8"/>
<output><port id="0"/></output></layer>
<layer id="2" name="lengths" type="Parameter" version="opset1"><data shape="?" element_type="i64"/>
<output><port id="0"/></output></layer>
<layer id="3" name="split" type="VariadicSplit" version="opset1"><input><port id="0"/><port id="1"/><port id="2"/></input>
<output><port id="3"/><port id="4"/></output></layer>
<layer id="4" name="first" type="Result" version="opset1"><input><port id="0"/></input></layer>
<layer id="5" name="rest" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="3" to-port="0"/><edge from-layer="1" from-port="0" to-layer="3" to-port="1"/>
<edge from-layer="2" from-port="0" to-layer="3" to-port="2"/><edge from-layer="3" from-port="3" to-layer="4" to-port="0"/>
<edge from-layer="3" from-port="4" to-layer="5" to-port="0"/>
</edges></net>"#;

#[test]
fn a_layer_tells_how_many_lengths_there_are() {
    let core = Core::new().unwrap();
    let model = core.read_model_from_memory(SPLIT.as_bytes(), vec![0; 8]);
    let compiled = core.compile_model(&model.unwrap()).unwrap();
    let mut request = compiled.create_request();
    let mut run = |lengths: &[i64]| {
        let x = Tensor::from_slice(&[5], &[10i64, 11, 12, 13, 14]).unwrap();
        let lengths = Tensor::from_slice(&[lengths.len()], lengths).unwrap();
        request.set_input("x", x).unwrap();
        request.set_input("lengths", lengths).unwrap();
        request.infer().map_err(|e| e.to_string())?;
        let part = |k| {
            request
                .output(k)
                .unwrap()
                .as_slice::<i64>()
                .unwrap()
                .to_vec()
        };
        Ok::<_, String>([part(0), part(1)])
    };
    assert_eq!(run(&[2, 3]), Ok([vec![10, 11], vec![12, 13, 14]]));
    assert_eq!(run(&[-1, 1]), Ok([vec![10, 11, 12, 13], vec![14]]));
    let error = run(&[1, 2, 2]).unwrap_err();
    let message = "layer 'split' (VariadicSplit, opset1): 2 output ports, expected 3";
    assert!(error.ends_with(message), "{error}");
    let error = run(&[]).unwrap_err();
    let message = "`split_lengths` must hold 1 to 65536 numbers, found 0";
    assert!(error.ends_with(message), "{error}");
    assert_eq!(run(&[5, 0]), Ok([vec![10, 11, 12, 13, 14], vec![]]));
}

/// A sample with all dims dynamic, and these bytes at the start of its weights.
fn dynamic(core: &Core, name: &str, first: &[u8]) -> CompiledModel {
    let path = repository().join("ir-samples").join(name);
    let text = std::fs::read(path.with_extension("xml")).unwrap();
    let mut weights = std::fs::read(path.with_extension("bin")).unwrap();
    weights[..first.len()].copy_from_slice(first);
    let model = core.read_model_from_memory(&text, weights).unwrap();
    let shapes = model.inputs().into_iter().enumerate();
    let any = shapes.map(|(k, port)| {
        let rank = port.shape.rank().unwrap();
        (k, PartialShape::ranked(vec![Dim::ANY; rank]))
    });
    let model = model.reshape(&any.collect::<Vec<_>>()).unwrap();
    core.compile_model(&model).unwrap()
}

#[test]
fn bodies_are_not_compiled_for_each_iteration() {
    let core = Core::new().unwrap();
    let steps = 40usize;
    let compiled = dynamic(&core, "loop/a_state_that_grows", &steps.to_le_bytes());
    let mut request = compiled.create_request();
    for width in [2, 2, 3, 4] {
        let x: Vec<f32> = (0..steps * width).map(|k| k as f32).collect();
        let init = vec![-1.0f32; width];
        let x = Tensor::from_slice(&[steps, width], &x).unwrap();
        let init = Tensor::from_slice(&[1, width], &init).unwrap();
        request.set_input("x", x.clone()).unwrap();
        request.set_input("init", init.clone()).unwrap();
        request.infer().unwrap();
        let want = [init.bytes(), x.bytes()].concat();
        assert_eq!(request.output(0).unwrap().bytes(), want);
    }
    let found = compiled.statistics();
    // Of 160 iterations at three widths.
    assert!(found.plans <= 10 && found.bound > 100, "{found:?}");
}

#[test]
fn bounds_that_a_run_gives_are_symbols() {
    let core = Core::new().unwrap();
    let compiled = dynamic(&core, "slice/run_time_bounds", &[]);
    let mut request = compiled.create_request();
    let data: Vec<i32> = (0..100).collect();
    request
        .set_input("data", Tensor::from_slice(&[100], &data).unwrap())
        .unwrap();
    for start in 2..60 {
        let stop = start + 5 + start % 7;
        for (name, value) in [("start", start), ("stop", stop), ("step", 1)] {
            let value = Tensor::from_slice(&[1], &[value as i64]).unwrap();
            request.set_input(name, value).unwrap();
        }
        request.infer().unwrap();
        let want = Tensor::from_slice(&[stop - start], &data[start..stop]).unwrap();
        assert!(same(request.output(0).unwrap(), &want));
    }
    let found = compiled.statistics();
    assert!(found.plans <= 4, "{found:?}");
}

/// The sum over `x` and the tokens that each of `experts` gets: expert `e` gets those of `x` where row `e` of `gets` is not zero.
fn mixture(core: &Core, experts: usize) -> CompiledModel {
    let mut graph = Graph::default();
    let x = graph.parameter("x", F32, &[6]);
    let gets = graph.parameter("gets", I64, &[4, 6]);
    let zero = graph.number(0);
    let sum = |graph: &mut Graph, x: &Value| {
        graph.open(
            "ReduceSum",
            "opset1",
            "keep_dims=\"false\"",
            &[x, &zero],
            F32,
        )
    };
    let total = sum(&mut graph, &x);
    let mut sums = Vec::new();
    for e in 0..experts {
        let row = graph.number(e as i64);
        let row = graph.open("Gather", "opset1", "", &[&gets, &row, &zero], I64);
        let all = graph.open("NonZero", "opset3", "output_type=\"i64\"", &[&row], I64);
        let places = graph.open("Squeeze", "opset1", "", &[&all, &zero], I64);
        let tokens = graph.open("Gather", "opset1", "", &[&x, &places, &zero], F32);
        let sum = sum(&mut graph, &tokens);
        sums.push(graph.open("Add", "opset1", "", &[&sum, &total], F32));
    }
    core.compile_model(&graph.model(core, &sums).unwrap())
        .unwrap()
}

/// Of four experts each gets no token, one, or several: 81 combinations, but three cases for each of them.
#[test]
fn each_of_several_counts_has_plans_of_its_own() {
    let core = Core::new().unwrap();
    let compiled = mixture(&core, 4);
    let mut request = compiled.create_request();
    let x = [1.0f32, 2.0, 4.0, 8.0, 16.0, 32.0];
    request
        .set_input("x", Tensor::from_slice(&[6], &x).unwrap())
        .unwrap();
    for case in 0..81 {
        let tokens = [1, 3, 9, 27].map(|by| [0, 1, 4][case / by % 3]);
        let gets: Vec<i64> = tokens
            .iter()
            .flat_map(|n| (0..6).map(move |k| (k < *n).into()))
            .collect();
        request
            .set_input("gets", Tensor::from_slice(&[4, 6], &gets).unwrap())
            .unwrap();
        request.infer().unwrap();
        for (e, n) in tokens.iter().enumerate() {
            let sum = request.output(e).unwrap().as_slice::<f32>().unwrap()[0];
            let want = 63.0 + x[..*n as usize].iter().sum::<f32>();
            assert_eq!(sum, want, "{tokens:?}");
        }
    }
    let found = compiled.statistics();
    assert!(found.plans - found.specialized <= 4 * 3 + 2, "{found:?}");
}

/// 2^50 numbers of 8 bytes take 2^53, which no process can address.
#[test]
fn an_output_that_fits_no_memory_is_named() {
    let core = Core::new().unwrap();
    let path = repository().join("ir-samples/range/opset1_empty.xml");
    let model = core.read_model(&path).unwrap();
    let compiled = core.compile_model(&model).unwrap();
    let inputs = [("start", 0), ("stop", 1i64 << 50), ("step", 1)];
    let inputs = inputs.map(|(name, n)| (name, Tensor::from_slice(&[], &[n]).unwrap()));
    let message =
        "layer 'out' (Range, opset1): out of memory: cannot allocate 9007199254740992 bytes";
    let error = compiled.run(inputs).unwrap_err().to_string();
    assert_eq!(error, format!("{}: {message}", path.display()));
}
