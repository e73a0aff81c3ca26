//! This repository keeps its rules.

use std::path::Path;

use weir_tidy::repository::Repository;
use weir_tidy::workspace::Workspace;

#[test]
fn no_rule_is_broken() {
    let workspace = Workspace::open(Path::new(env!("CARGO_MANIFEST_DIR"))).expect("the workspace is read");
    let repository = Repository::open(workspace).expect("every file is read");
    let problems = repository.problems().expect("every list of exceptions is read");
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
}
