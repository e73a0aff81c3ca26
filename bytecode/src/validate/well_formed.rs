//! Decoding without validation, which distinguishes malformed modules from invalid ones.

use wasmparser::{ElementItems, FromReader, FunctionBody, Operator, Parser, Payload, Result, SectionLimited, WasmFeatures};

/// Decodes every section and every instruction; `false` if one is malformed.
pub(super) fn check(bytes: &[u8], features: WasmFeatures) -> bool {
    decode(bytes, features).is_ok_and(|complete| complete)
}

/// Returns `false` for malformed bytes that wasmparser refuses only in its validator.
#[expect(clippy::wildcard_enum_match_arm, reason = "these are the parser's payloads, and it has decoded the others")]
fn decode(bytes: &[u8], features: WasmFeatures) -> Result<bool> {
    let mut parser = Parser::new(0);
    parser.set_features(features);
    let (mut complete, mut data_count) = (true, false);
    for payload in parser.parse_all(bytes) {
        match payload? {
            Payload::TypeSection(reader) => all(reader)?,
            Payload::ImportSection(reader) => all(reader)?,
            Payload::FunctionSection(reader) => all(reader)?,
            Payload::TableSection(reader) => all(reader)?,
            Payload::MemorySection(reader) => all(reader)?,
            Payload::TagSection(reader) => all(reader)?,
            Payload::GlobalSection(reader) => all(reader)?,
            Payload::ExportSection(reader) => all(reader)?,
            Payload::ElementSection(reader) => {
                for element in reader {
                    match element?.items {
                        ElementItems::Functions(items) => all(items)?,
                        ElementItems::Expressions(_, items) => all(items)?,
                    }
                }
            }
            Payload::DataSection(reader) => all(reader)?,
            Payload::DataCountSection { .. } => data_count = true,
            Payload::CodeSectionEntry(body) => {
                let names_data = code(&body)?;
                complete &= data_count || !names_data;
            }
            Payload::UnknownSection { .. } => complete = false,
            // The parser has decoded the others, and the contents of custom sections are not part of the format.
            _ => {}
        }
    }
    Ok(complete)
}

/// Decodes every item of a section.
fn all<'a, T: FromReader<'a>>(items: SectionLimited<'a, T>) -> Result<()> {
    items.into_iter().try_for_each(|item| item.map(drop))
}

/// Decodes a function body, and says whether it names a data segment, for which the number of segments must be known.
fn code(body: &FunctionBody<'_>) -> Result<bool> {
    let mut locals = body.get_locals_reader()?;
    for _ in 0..locals.get_count() {
        locals.read()?;
    }
    let mut names_data = false;
    let mut reader = body.get_operators_reader()?;
    while !reader.eof() {
        names_data |= matches!(reader.read()?, Operator::MemoryInit { .. } | Operator::DataDrop { .. });
    }
    reader.finish()?;
    Ok(names_data)
}
