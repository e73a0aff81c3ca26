//! Bytes as a module in the text format: parsed, validated, and executed by three tiers with the limits of `bytes`.

use super::bytes::{all_accept, verify};
use super::target::{Target, files};
use crate::damaged::attempt_text;

/// The target.
pub const TARGET: Target = Target { name: "text", run, seeds };

fn run(data: &[u8]) {
    // Other bytes are no text, and are left to `bytes`; so are modules in the binary format, which may be valid UTF-8.
    let Ok(text) = std::str::from_utf8(data) else { return };
    if data.starts_with(b"\0asm") {
        return;
    }
    if all_accept(|engine| attempt_text(engine, text)) {
        verify(&wat::parse_str(text).expect("it was parsed before"));
    }
}

/// The modules of the repository in the text format that are short, whether or not they are valid.
fn seeds() -> Vec<Vec<u8>> {
    let folders = ["found", "filetests", "../programs/euclid", "../programs/exceptions", "../programs/tailcalls"];
    let mut seeds: Vec<Vec<u8>> = folders.into_iter().flat_map(|folder| files(folder, &["wat"])).collect();
    seeds.retain(|text| text.len() <= 4096);
    seeds
}
