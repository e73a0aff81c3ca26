//! This repository keeps its rules.

use std::path::Path;

use weir_tidy::house::House;
use weir_tidy::workspace::Workspace;

#[test]
fn no_rule_is_broken() {
    let workspace = Workspace::open(Path::new(env!("CARGO_MANIFEST_DIR"))).expect("the workspace is read");
    let house = House::open(workspace).expect("every file is read");
    let problems = house.problems().expect("every list of exceptions is read");
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
}
