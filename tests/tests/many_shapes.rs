//! Shapes that change all the time cost time, not memory.

use vinelift::{Config, Core, Tensor};

/// `relu(x · w)` with `x` of shape `[?, 24]`.
const MODEL: &str = r#"<net name="g" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="?,24" element_type="f32"/>
<output><port id="0"/></output></layer>
<layer id="1" name="w" type="Const" version="opset1"><data element_type="f32" shape="24,16" offset="0" size="1536"/>
<output><port id="0"/></output></layer>
<layer id="2" name="product" type="MatMul" version="opset1"><data transpose_a="false" transpose_b="false"/>
<input><port id="0"/><port id="1"/></input><output><port id="2"/></output></layer>
<layer id="3" name="relu" type="Relu" version="opset1"><input><port id="0"/></input><output><port id="1"/></output></layer>
<layer id="4" name="result" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/><edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/><edge from-layer="3" from-port="1" to-layer="4" to-port="0"/>
</edges></net>"#;

const SHAPES: usize = 500;
const INFERENCES: usize = 10_000;

#[test]
fn memory_stays_bounded() {
    let core = Core::new().unwrap();
    let weights: Vec<u8> = (0..384).flat_map(|k| (k as f32).to_le_bytes()).collect();
    let model = core
        .read_model_from_memory(MODEL.as_bytes(), weights)
        .unwrap();
    let config = Config::default();
    let most = config.cache_size.get();
    let compiled = core.compile_model_with(&model, config).unwrap();
    let mut request = compiled.create_request();
    let mut settled = None;
    for run in 0..INFERENCES {
        // All shapes in turn, so that none is in the cache when it comes again.
        let rows = 1 + run * 7919 % SHAPES;
        let x = vec![1.0f32; rows * 24];
        request
            .set_input("x", Tensor::from_slice(&[rows, 24], &x).unwrap())
            .unwrap();
        request.infer().unwrap();
        let output = request.output(0).unwrap();
        assert_eq!(output.shape(), [rows, 16]);
        assert_eq!(output.as_slice::<f32>().unwrap()[rows * 16 - 1], 4776.0);
        assert!(compiled.cached_plans() <= most);
        if run == INFERENCES / 4 {
            settled = resident_bytes();
        }
    }
    // Where the system does not tell, the number of plans is all that is known.
    if let (Some(before), Some(after)) = (settled, resident_bytes()) {
        let more = after.saturating_sub(before);
        assert!(
            more < 32 << 20,
            "{more} bytes more than after the first quarter"
        );
    }
}

/// The memory that this process has now.
fn resident_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
