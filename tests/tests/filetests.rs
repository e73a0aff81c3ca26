//! Runs every file in `filetests/`: see [`weir_tests::filetest`] for their form.

use std::path::{Path, PathBuf};

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

#[test]
fn filetests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
    let bless = std::env::var_os("WEIR_BLESS").is_some_and(|value| value == "1");
    let mut all = Vec::new();
    files(&root, &mut all);
    assert!(all.len() >= 30, "only {} filetests found", all.len());
    let failures: Vec<String> = all
        .iter()
        .filter_map(|path| {
            let error = weir_tests::filetest::check(path, bless).err()?;
            Some(format!("{}: {error}", path.strip_prefix(&root).unwrap().display()))
        })
        .collect();
    assert!(failures.is_empty(), "{} of {} failed\n\n{}", failures.len(), all.len(), failures.join("\n"));
}
