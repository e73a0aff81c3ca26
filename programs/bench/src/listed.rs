//! Programs that a file lists, as `programs/twins/build.py` writes it: each with its module, its native twin, its arguments
//! and the file with its output. Paths are relative to the folder of the list.

use crate::programs::{Input, Program, Work};
use serde::Deserialize;
use std::fs;
use std::path::Path;

/// A row of the list.
#[derive(Deserialize)]
struct Row {
    name: String,
    kind: String,
    args: Vec<String>,
    wasm: String,
    native: String,
    expected: String,
}

/// The programs of the list whose name contains `filter` or whose kind is `filter`, in its order. Each has one amount of work, which
/// is its small and its large one.
///
/// # Errors
/// A file is missing or cannot be parsed, or no program is left.
pub fn read(list: &Path, filter: Option<&str>) -> Result<Vec<Program>, String> {
    let folder = list.parent().unwrap_or(Path::new("."));
    let bytes = |path: &Path| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let rows: Vec<Row> = serde_json::from_slice(&bytes(list)?).map_err(|error| format!("{}: {error}", list.display()))?;
    let selected = |row: &Row| filter.is_none_or(|filter| row.name.contains(filter) || row.kind == filter);
    let program = |row: Row| {
        let work = Work { args: row.args, expected: Some(bytes(&folder.join(row.expected))?) };
        let line = work.args.join(" ");
        Ok(Program {
            input: Input { program: row.name.clone(), small: line.clone(), half: None, large: line },
            name: row.name,
            wasm: folder.join(row.wasm),
            source: None,
            native: Some(folder.join(row.native)),
            small: work.clone(),
            large: work,
            half: None,
            linear: None,
        })
    };
    let programs: Vec<Program> = rows.into_iter().filter(selected).map(program).collect::<Result<_, String>>()?;
    if programs.is_empty() { Err(format!("{}: no program matches", list.display())) } else { Ok(programs) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Refusal;
    use crate::peers::tests::peer;
    use std::time::Duration;

    /// The native twin is executed itself, and its output is compared.
    #[test]
    fn a_list_names_twins_and_outputs() {
        let folder = std::env::temp_dir().join(format!("weir-bench-list-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("one.out"), "right\n").unwrap();
        fs::write(folder.join("two.out"), "wrong\n").unwrap();
        let row = |name: &str, kind: &str| {
            format!(
                r#"{{"name": "{name}", "kind": "{kind}", "args": ["right"], "wasm": "{name}.wasm", "native": "/bin/echo", "expected": "{name}.out"}}"#
            )
        };
        let list = folder.join("list.json");
        fs::write(&list, format!("[{}, {}]", row("one", "real"), row("two", "float"))).unwrap();
        let names = |filter| read(&list, filter).unwrap().into_iter().map(|program| program.name).collect::<Vec<_>>();
        assert_eq!(names(None), ["one", "two"]);
        assert_eq!((names(Some("ne")), names(Some("float"))), (vec!["one".into()], vec!["two".to_string()]));
        assert!(read(&list, Some("none")).is_err() && read(&folder.join("absent.json"), None).is_err());

        let mut runner = crate::run::Runner::new().unwrap();
        let mut run = |program: &Program| runner.run(program, &program.large, &peer("native"), Duration::from_secs(60));
        let programs = read(&list, None).unwrap();
        assert!(run(&programs[0]).is_ok());
        assert!(matches!(run(&programs[1]), Err(Refusal::Wrong(_))));
        fs::remove_dir_all(folder).unwrap();
    }
}
