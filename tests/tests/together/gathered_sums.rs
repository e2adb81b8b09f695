//! Cumulative sums of what was gathered, along axes of one element, too: their points have none before them to go on from.
//!
//! The values wanted are those of the operators' definitions, summed here one by one.

use vinelift::{Config, Core, ElementType, IndexPolicy, Level, Model, Tensor, Vectors};
use vinelift_tests::Graph;

/// Elements that are gathered from, along the axis.
const SOURCE: usize = 4;
/// Rows, or columns, each with sums of its own: enough for vectors, and some left over.
const LANES: usize = 37;

#[derive(Clone, Copy, Debug)]
struct Case {
    /// Elements along the axis.
    length: usize,
    axis: usize,
    exclusive: bool,
    reverse: bool,
    /// Whether the sums are not results, but updates of the data where they came from.
    scattered: bool,
    /// Whether one of the indices is out of range.
    bad: bool,
}

impl Case {
    fn shape(self, length: usize) -> [usize; 2] {
        [[length, LANES], [LANES, length]][self.axis]
    }

    fn model(self, core: &Core) -> Model {
        let mut graph = Graph::default();
        let data = graph.parameter("data", ElementType::I64, &self.shape(SOURCE));
        let indices = graph.parameter("indices", ElementType::I64, &self.shape(self.length));
        let axis = graph.number(self.axis as i64);
        let mut node = |ty, version, attributes: &str, inputs: &[_]| {
            let added = graph.node(core, ty, version, attributes, inputs, 1);
            added.unwrap().remove(0)
        };
        let along = format!("axis=\"{}\"", self.axis);
        let gathered = node("GatherElements", "opset6", &along, &[&data, &indices]);
        let Case {
            exclusive, reverse, ..
        } = self;
        let way = format!("exclusive=\"{exclusive}\" reverse=\"{reverse}\"");
        let sums = node("CumSum", "opset3", &way, &[&gathered, &axis]);
        let added = "reduction=\"sum\" use_init_val=\"true\"";
        let inputs = [&data, &indices, &sums, &axis];
        let result = match self.scattered {
            true => node("ScatterElementsUpdate", "opset12", added, &inputs),
            false => sums,
        };
        graph.model(core, &[result]).unwrap()
    }

    /// Where in a tensor that has `length` elements along the axis the `k`-th one of a lane is.
    fn place(self, length: usize, lane: usize, k: usize) -> usize {
        [k * LANES + lane, lane * length + k][self.axis]
    }

    fn data(self) -> Vec<i64> {
        (0..SOURCE * LANES).map(|k| (k * 31 % 101) as i64).collect()
    }

    fn indices(self) -> Vec<i64> {
        let count = self.length * LANES;
        let mut indices: Vec<i64> = (0..count).map(|k| (k * 7 % 8) as i64 - 4).collect();
        if self.bad {
            indices[count / 2] = SOURCE as i64;
        }
        indices
    }

    /// The result, if an index out of range reads zero and writes nothing.
    fn wanted(self) -> Vec<i64> {
        let (data, indices) = (self.data(), self.indices());
        let mut sums = vec![0; self.length * LANES];
        let mut updated = data.clone();
        for lane in 0..LANES {
            let mut order: Vec<usize> = (0..self.length).collect();
            if self.reverse {
                order.reverse();
            }
            let mut sum = 0;
            for k in order {
                let here = self.place(self.length, lane, k);
                let index = indices[here];
                let from_end = if index < 0 { SOURCE as i64 } else { 0 };
                let index = (index + from_end) as usize;
                let from = (index < SOURCE).then(|| self.place(SOURCE, lane, index));
                let read = from.map_or(0, |from| data[from]);
                sums[here] = if self.exclusive { sum } else { sum + read };
                sum += read;
                if let Some(from) = from {
                    updated[from] += sums[here];
                }
            }
        }
        if self.scattered { updated } else { sums }
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for bits in 0..96 {
        let flag = |place: usize| bits >> place & 1 == 1;
        cases.push(Case {
            length: [1, 2, 5][bits / 32],
            axis: bits & 1,
            exclusive: flag(1),
            reverse: flag(2),
            scattered: flag(3),
            bad: flag(4),
        });
    }
    cases
}

#[test]
fn in_every_way() {
    let core = Core::new().unwrap();
    for case in cases() {
        let model = case.model(&core);
        let inputs = [(SOURCE, case.data()), (case.length, case.indices())]
            .map(|(length, values)| Tensor::from_slice(&case.shape(length), &values).unwrap());
        let run = |config: Config| {
            let compiled = core.compile_model_with(&model, config).unwrap();
            assert_eq!(compiled.statistics().unproven, 0, "{case:?}");
            let mut request = compiled.create_request();
            for (k, tensor) in inputs.iter().enumerate() {
                request.set_input_at(k, tensor.clone()).unwrap();
            }
            let outputs = request.infer().map(|()| request.outputs()[0].clone());
            outputs.map(|tensor| tensor.to_i64_vec().unwrap())
        };
        for policy in [IndexPolicy::Spec, IndexPolicy::Error, IndexPolicy::Zero] {
            let mut ways: Vec<Config> = Level::ALL
                .iter()
                .map(|level| Config::new().level(*level))
                .collect();
            ways.push(Config::new().vectors(Vectors::Bits128));
            ways.push(Config::new().vectors(Vectors::Bits256));
            for config in ways {
                let found = run(config.index_policy(policy));
                match case.bad && policy != IndexPolicy::Zero {
                    true => {
                        let message = found.unwrap_err().to_string();
                        assert!(message.contains("`indices`"), "{case:?}: {message}");
                    }
                    false => assert_eq!(found.unwrap(), case.wanted(), "{case:?}, {policy:?}"),
                }
            }
        }
    }
}
