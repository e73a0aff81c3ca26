//! The stages of a function, as the page has them: each line once, and for each stage its lines and what became of them.

use crate::diff::Edit;
use crate::page::Pane;
use serde_json::{Value, json};
use std::collections::HashMap;
use weir::Section;

/// What becomes of a line, in the page: added to three times its index.
const KEPT: usize = 0;
const ADDED: usize = 1;
const REMOVED: usize = 2;

/// Returns the stages as data, and their approximate size in bytes.
pub(super) fn stages(sections: &[Section], keep: impl Fn(&str) -> bool) -> (Value, usize) {
    let mut lines: Vec<String> = Vec::new();
    let mut indices: HashMap<&str, usize> = HashMap::new();
    let (mut stages, mut size) = (Vec::new(), 0);
    for (i, section) in sections.iter().enumerate().filter(|(_, section)| keep(section.stage)) {
        let pane = Pane::new(sections, i);
        let mut edits = Vec::with_capacity(pane.edits.len());
        for edit in &pane.edits {
            let (line, kind) = match edit {
                Edit::Kept(line) => (line, KEPT),
                Edit::Added(line) => (line, ADDED),
                Edit::Removed(line) => (line, REMOVED),
            };
            let index = *indices.entry(line).or_insert_with(|| {
                lines.push(unaligned(line));
                size += lines[lines.len() - 1].len() + 4;
                lines.len() - 1
            });
            edits.push(3 * index + kind);
        }
        size += 6 * edits.len();
        stages.push(json!({ "name": pane.name, "leads": crate::page::leads(section.stage), "lines": edits }));
    }
    (json!({ "lines": lines, "stages": stages }), size)
}

/// Returns a line without the spaces before its offsets, which the page aligns.
fn unaligned(line: &str) -> String {
    match line.find(" @0x") {
        Some(at) => format!("{}{}", line[..at].trim_end(), &line[at..]),
        None => line.into(),
    }
}
