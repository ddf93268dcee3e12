//! Gives the committed inputs of fuzz targets to them, on stable: each crate with targets includes it.

use std::fs;
use std::path::Path;

/// Fails where a target panics, and where it has no inputs; the last name that was printed is the culprit's.
#[test]
fn the_committed_inputs_keep_what_the_fuzz_targets_ask() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, target) in super::TARGETS {
        let files = fs::read_dir(corpus.join(name)).unwrap();
        let mut paths: Vec<_> = files.map(|it| it.unwrap().path()).collect();
        paths.sort();
        assert!(!paths.is_empty(), "{name} has no inputs");
        for path in paths {
            println!("{}", path.display());
            target(&fs::read(&path).unwrap());
        }
    }
}
