//! Folds, scans, windows and conversions give the same bits at every level, for any number of threads.

use proptest::prelude::*;
use std::num::NonZeroUsize;
use vinelift::{Config, Core, ElementType, Level, Model, Tensor};
use vinelift_tests::{outputs, same};

/// `abs(operator(data, constant))` in `ty`, from data in `from`.
#[derive(Clone, Debug)]
struct Case {
    operator: &'static str,
    version: &'static str,
    attributes: String,
    from: ElementType,
    ty: ElementType,
    data: Vec<usize>,
    /// Axes.
    constant: Option<Vec<i64>>,
}

impl Case {
    fn model(&self, core: &Core) -> Model {
        let axes = self.constant.clone().unwrap_or_default();
        let bytes: Vec<u8> = axes.iter().flat_map(|axis| axis.to_le_bytes()).collect();
        let dims: Vec<String> = self.data.iter().map(ToString::to_string).collect();
        let has_axes = self.constant.is_some();
        let (constant, port) = match has_axes {
            true => (
                format!(
                    "<layer id=\"5\" name=\"axes\" type=\"Const\" version=\"opset1\"><data element_type=\"i64\" \
                     shape=\"{}\" offset=\"0\" size=\"{}\"/><output><port id=\"0\"/></output></layer>",
                    axes.len(),
                    bytes.len()
                ),
                "<port id=\"1\"/>",
            ),
            false => (String::new(), ""),
        };
        let one = "<input><port id=\"0\"/></input><output><port id=\"2\"/></output>";
        let text = format!(
            "<net name=\"g\" version=\"11\"><layers>\
             <layer id=\"0\" name=\"data\" type=\"Parameter\" version=\"opset1\"><data element_type=\"{}\" \
             shape=\"{}\"/><output><port id=\"0\"/></output></layer>{constant}\
             <layer id=\"1\" name=\"convert\" type=\"Convert\" version=\"opset1\"><data destination_type=\"{}\"/>{one}</layer>\
             <layer id=\"2\" name=\"loop\" type=\"{}\" version=\"{}\"><data {}/>\
             <input><port id=\"0\"/>{port}</input><output><port id=\"2\"/></output></layer>\
             <layer id=\"3\" name=\"abs\" type=\"Abs\" version=\"opset1\">{one}</layer>\
             <layer id=\"4\" name=\"result\" type=\"Result\" version=\"opset1\"><input><port id=\"0\"/></input></layer>\
             </layers><edges>\
             <edge from-layer=\"0\" from-port=\"0\" to-layer=\"1\" to-port=\"0\"/>\
             <edge from-layer=\"1\" from-port=\"2\" to-layer=\"2\" to-port=\"0\"/>{}\
             <edge from-layer=\"2\" from-port=\"2\" to-layer=\"3\" to-port=\"0\"/>\
             <edge from-layer=\"3\" from-port=\"2\" to-layer=\"4\" to-port=\"0\"/></edges></net>",
            self.from,
            dims.join(","),
            self.ty,
            self.operator,
            self.version,
            self.attributes,
            match has_axes {
                true => "<edge from-layer=\"5\" from-port=\"0\" to-layer=\"2\" to-port=\"1\"/>",
                false => "",
            }
        );
        core.read_model_from_memory(text.as_bytes(), bytes).unwrap()
    }

    /// Numbers of many magnitudes, so that an order of summation shows, with a few that are special.
    fn input(&self) -> Tensor {
        let count: usize = self.data.iter().product();
        let value = |i: usize| {
            let x = (i * 7919 % 2003) as f32 / 1001.5 - 1.0;
            match i % 89 {
                7 if self.from.is_float() => f32::NAN,
                11 => -0.0,
                31 if i.is_multiple_of(4) => f32::INFINITY,
                _ => x * [1.0, 0.01, 30.0, 0.5][i % 4],
            }
        };
        let values = (0..count).map(value);
        match self.from {
            ElementType::F16 => {
                let values = values.map(half::f16::from_f32);
                let bytes: Vec<u8> = values.flat_map(half::f16::to_le_bytes).collect();
                Tensor::from_bytes(self.from, &self.data, bytes).unwrap()
            }
            ElementType::I32 => {
                let values: Vec<i32> = values.map(|x| (x * 100.0) as i32).collect();
                Tensor::from_slice(&self.data, &values).unwrap()
            }
            _ => Tensor::from_slice(&self.data, &values.collect::<Vec<f32>>()).unwrap(),
        }
    }
}

fn element() -> impl Strategy<Value = ElementType> {
    prop_oneof![
        3 => Just(ElementType::F32),
        2 => Just(ElementType::F16),
        1 => Just(ElementType::I32),
    ]
}

fn float() -> impl Strategy<Value = ElementType> {
    prop_oneof![
        Just(ElementType::F32),
        Just(ElementType::F16),
        Just(ElementType::F64)
    ]
}

/// Short dims, and now and then a long one.
fn dims(rank: std::ops::Range<usize>) -> impl Strategy<Value = Vec<usize>> {
    let dim = prop_oneof![3 => 1usize..9, 1 => 14usize..72, 1 => 250usize..330];
    let few = |dims: &Vec<usize>| dims.iter().product::<usize>() < 40_000;
    prop::collection::vec(dim, rank).prop_filter("too many elements", few)
}

prop_compose! {
    fn fold()(
        from in element(),
        ty in float(),
        operator in prop::sample::select(vec![
            "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "SoftMax", "MVN",
        ]),
        data in dims(1..5),
        which in prop::collection::vec(any::<bool>(), 5),
        flag in any::<bool>(),
    ) -> Case {
        let axes = (0..data.len()).filter(|d| which[*d] || *d + 1 == data.len());
        let axes: Vec<i64> = axes.map(|d| d as i64).collect();
        let (version, attributes, constant) = match operator {
            "SoftMax" => ("opset8", format!("axis=\"{}\"", axes[0]), None),
            "MVN" => {
                let attributes = format!("normalize_variance=\"{flag}\" eps=\"1e-5\" eps_mode=\"inside_sqrt\"");
                ("opset6", attributes, Some(axes))
            }
            "ReduceL1" | "ReduceL2" => ("opset4", format!("keep_dims=\"{flag}\""), Some(axes)),
            _ => ("opset1", format!("keep_dims=\"{flag}\""), Some(axes)),
        };
        Case { operator, version, attributes, from, ty, data, constant }
    }
}

prop_compose! {
    fn scan()(
        from in element(),
        ty in prop_oneof![float(), Just(ElementType::I32)],
        data in dims(1..4),
        axis in 0usize..3,
        (exclusive, reverse) in any::<(bool, bool)>(),
    ) -> Case {
        let axis = (axis % data.len()) as i64;
        Case {
            operator: "CumSum",
            version: "opset3",
            attributes: format!("exclusive=\"{exclusive}\" reverse=\"{reverse}\""),
            from,
            ty,
            data,
            constant: Some(vec![axis]),
        }
    }
}

/// A dim of a window: its extent, that of the window, the step, and the padding before and after.
type Space = (usize, usize, usize, usize, usize);

prop_compose! {
    fn window()(
        from in element(),
        ty in float(),
        is_max in any::<bool>(),
        (n, channels) in (1usize..3, 1usize..5),
        space in prop::collection::vec((1usize..40, 1usize..6, 1usize..4, 0usize..3, 0usize..3), 1..3),
        exclude in any::<bool>(),
    ) -> Case {
        let of = |f: fn(&Space) -> usize| -> Vec<usize> { space.iter().map(f).collect() };
        let list = |values: Vec<usize>| -> String {
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            values.join(",")
        };
        let attributes = format!(
            "strides=\"{}\" pads_begin=\"{}\" pads_end=\"{}\" kernel=\"{}\" rounding_type=\"floor\" auto_pad=\"explicit\"",
            list(of(|s| s.2)),
            list(of(|s| s.3.min(s.1 - 1))),
            list(of(|s| s.4.min(s.1 - 1))),
            list(of(|s| s.1))
        );
        let size = of(|s| s.0 + s.1);
        Case {
            operator: if is_max { "MaxPool" } else { "AvgPool" },
            version: "opset1",
            attributes: match is_max {
                true => attributes,
                false => format!("{attributes} exclude-pad=\"{exclude}\""),
            },
            from,
            ty,
            data: [vec![n, channels], size].concat(),
            constant: None,
        }
    }
}

fn check(case: &Case) {
    let core = Core::new().unwrap();
    let model = case.model(&core);
    let inputs = [case.input()];
    let want = outputs(&core, &model, Level::Interpreted, &inputs).unwrap();
    for level in Level::ALL {
        let found = outputs(&core, &model, level, &inputs).unwrap();
        assert!(same(&found[0], &want[0]), "{level:?}: {case:?}");
    }
    let config = Config {
        threads: NonZeroUsize::new(3),
        ..Config::default()
    };
    let compiled = core.compile_model_with(&model, config).unwrap();
    let mut request = compiled.create_request();
    request.set_input_at(0, inputs[0].clone()).unwrap();
    request.infer().unwrap();
    assert!(same(&request.outputs()[0], &want[0]), "3 threads: {case:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, ..ProptestConfig::default() })]

    #[test]
    fn folds(case in fold()) {
        check(&case);
    }

    #[test]
    fn scans(case in scan()) {
        check(&case);
    }

    #[test]
    fn windows(case in window()) {
        check(&case);
    }
}
