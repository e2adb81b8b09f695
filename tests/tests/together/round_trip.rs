//! Every sample model, written as IR and read again, is the same model.

use vinelift::Core;
use vinelift_tests::{files, repository};

#[test]
fn a_saved_model_reads_as_equal() {
    let core = Core::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let samples = files(&repository().join("ir-samples"), "xml");
    assert!(!samples.is_empty());
    for sample in samples {
        let model = core.read_model(&sample).unwrap();
        let copy = folder.path().join("copy.xml");
        model.save(&copy).unwrap();
        let again = core.read_model(&copy).unwrap();
        assert!(model == again, "{}", sample.display());
        let types = |m: &vinelift::Model| m.graph().to_text(&m.infer().unwrap());
        assert_eq!(types(&model), types(&again), "{}", sample.display());
    }
}
