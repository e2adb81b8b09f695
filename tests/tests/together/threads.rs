//! However many threads share a run, it ends in the same way.

use std::num::NonZeroUsize;
use vinelift::{Config, Core, Tensor};

fn on(threads: usize) -> Config {
    Config {
        threads: NonZeroUsize::new(threads),
        ..Config::default()
    }
}

#[test]
fn results_and_faults_do_not_depend_on_the_number_of_threads() {
    const ROWS: usize = 300_000;
    let core = Core::new().unwrap();
    let model = core
        .read_model_from_memory(vinelift::doc::GATHER.as_bytes(), Vec::new())
        .unwrap();
    let data = [1.0f32, 2.0, 3.0, 4.0];
    let good: Vec<i32> = (0..2 * ROWS as i32).map(|k| k * 7 % 4 - 2).collect();
    let gathered = |(k, index): (usize, &i32)| data[index.rem_euclid(2) as usize * 2 + k % 2];
    let want: Vec<f32> = good.iter().enumerate().map(gathered).collect();
    for threads in [1, 2, 3, 7] {
        let compiled = core.compile_model_with(&model, on(threads)).unwrap();
        let mut request = compiled.create_request();
        let tensor = Tensor::from_slice(&[2, 2], &data).unwrap();
        request.set_input("data", tensor).unwrap();
        let mut infer = |indices: &[i32]| {
            let tensor = Tensor::from_slice(&[ROWS, 2], indices).unwrap();
            request.set_input("indices", tensor).unwrap();
            request.infer()?;
            Ok::<Vec<f32>, vinelift::Error>(request.output(0)?.as_slice::<f32>()?.to_vec())
        };
        assert!(infer(&good).unwrap() == want, "{threads} threads");
        for first in [0, 77, ROWS / 2, 2 * ROWS - 1] {
            let mut indices = good.clone();
            for wrong in [first, (first + ROWS).min(2 * ROWS - 1), 2 * ROWS - 1] {
                indices[wrong] = 2 + (wrong % 5) as i32;
            }
            let message = format!(
                "model: layer 'gathered' (GatherElements, opset6): `indices`[{}, {}] is {}, expected -2..=1",
                first / 2,
                first % 2,
                2 + first % 5
            );
            let found = infer(&indices).unwrap_err().to_string();
            assert_eq!(found, message, "{threads} threads");
        }
        assert!(infer(&good).unwrap() == want, "{threads} threads");
    }
}

/// The rows of the updates go to any rows of the data: threads share the columns.
fn scatter(reduction: &str) -> String {
    let port = |id: usize, [rows, columns]: [usize; 2]| {
        format!(r#"<port id="{id}"><dim>{rows}</dim><dim>{columns}</dim></port>"#)
    };
    let parameter = |id: usize, name: &str, ty: &str, shape: [usize; 2]| {
        format!(
            r#"<layer id="{id}" name="{name}" type="Parameter" version="opset1">
                <data shape="{},{}" element_type="{ty}"/><output>{}</output></layer>"#,
            shape[0],
            shape[1],
            port(0, shape)
        )
    };
    let (data, updates) = ([DATA_ROWS, COLUMNS], [ROWS, COLUMNS]);
    let edge = |from: usize, to: usize, port: usize| {
        format!(r#"<edge from-layer="{from}" from-port="0" to-layer="{to}" to-port="{port}"/>"#)
    };
    [
        r#"<net name="scatter" version="11"><layers>"#.to_owned(),
        parameter(0, "data", "f32", data),
        parameter(1, "indices", "i32", updates),
        parameter(2, "updates", "f32", updates),
        r#"<layer id="3" name="axis" type="Const" version="opset1">
            <data element_type="i64" shape="" offset="0" size="8"/>
            <output><port id="0"/></output></layer>"#
            .to_owned(),
        format!(
            r#"<layer id="4" name="scattered" type="ScatterElementsUpdate" version="opset12">
                <data reduction="{reduction}" use_init_val="true"/>
                <input>{}{}{}<port id="3"/></input><output>{}</output></layer>"#,
            port(0, data),
            port(1, updates),
            port(2, updates),
            port(4, data)
        ),
        format!(
            r#"<layer id="5" name="result" type="Result" version="opset1">
                <input>{}</input></layer></layers><edges>"#,
            port(0, data)
        ),
        (0..4).map(|k| edge(k, 4, k)).collect(),
        r#"<edge from-layer="4" from-port="4" to-layer="5" to-port="0"/></edges></net>"#.to_owned(),
    ]
    .concat()
}

const DATA_ROWS: usize = 700;
const ROWS: usize = 500;
const COLUMNS: usize = 197;

#[test]
fn updates_that_share_rows() {
    let core = Core::new().unwrap();
    let data: Vec<f32> = (0..DATA_ROWS * COLUMNS).map(|k| k as f32).collect();
    let updates: Vec<f32> = (0..ROWS * COLUMNS).map(|k| 0.1 * k as f32).collect();
    // Many times the same row, and some from the end.
    let row = |k: usize| (k * 7919 % 90) as i32 * 7 - 20;
    let good: Vec<i32> = (0..ROWS * COLUMNS).map(row).collect();
    for reduction in ["none", "sum", "max"] {
        let mut want = data.clone();
        for (k, (index, update)) in good.iter().zip(&updates).enumerate() {
            let row = index.rem_euclid(DATA_ROWS as i32) as usize;
            let element = &mut want[row * COLUMNS + k % COLUMNS];
            *element = match reduction {
                "none" => *update,
                "sum" => *element + *update,
                _ => element.max(*update),
            };
        }
        let model = core
            .read_model_from_memory(scatter(reduction).as_bytes(), vec![0; 8])
            .unwrap();
        for threads in [1, 2, 3, 7] {
            let compiled = core.compile_model_with(&model, on(threads)).unwrap();
            let mut request = compiled.create_request();
            let mut infer = |indices: &[i32]| {
                let tensor =
                    |rows: usize, values: &[f32]| Tensor::from_slice(&[rows, COLUMNS], values);
                request.set_input("data", tensor(DATA_ROWS, &data)?)?;
                request.set_input("updates", tensor(ROWS, &updates)?)?;
                let indices = Tensor::from_slice(&[ROWS, COLUMNS], indices)?;
                request.set_input("indices", indices)?;
                request.infer()?;
                Ok::<Vec<f32>, vinelift::Error>(request.output(0)?.as_slice::<f32>()?.to_vec())
            };
            assert!(
                infer(&good).unwrap() == want,
                "{reduction}, {threads} threads"
            );
            // The first in the order of the indices, not of the columns.
            let mut indices = good.clone();
            for (row, column) in [(3, COLUMNS - 1), (4, 0), (ROWS - 1, 1)] {
                indices[row * COLUMNS + column] = DATA_ROWS as i32;
            }
            let found = infer(&indices).unwrap_err().to_string();
            let message = format!(
                "model: layer 'scattered' (ScatterElementsUpdate, opset12): `indices`[3, {}] is {DATA_ROWS}, expected -{DATA_ROWS}..={}",
                COLUMNS - 1,
                DATA_ROWS - 1
            );
            assert_eq!(found, message, "{reduction}, {threads} threads");
        }
    }
}
