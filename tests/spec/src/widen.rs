//! Gives every function of a module a vector: then the interpreter's slots have two words.

/// Returns a module with one more local in every function, a vector, after the others. A module that is not well formed stays as it
/// is.
pub fn widen(module: Vec<u8>) -> Vec<u8> {
    widened(&module).unwrap_or(module)
}

/// The id of the code section.
const CODE: u8 = 10;
/// The declaration of one local that is a vector.
const VECTOR: [u8; 2] = [1, 0x7B];

fn widened(module: &[u8]) -> Option<Vec<u8>> {
    let (header, mut rest) = module.split_at_checked(8)?;
    let mut widened = header.to_vec();
    while let Some((&id, after)) = rest.split_first() {
        let (contents, after) = sized(after)?;
        let new = if id == CODE { bodies(contents)? } else { contents.to_vec() };
        widened.push(id);
        append_sized(&mut widened, &new);
        rest = after;
    }
    Some(widened)
}

/// The contents of a code section, with a local more in every body.
fn bodies(contents: &[u8]) -> Option<Vec<u8>> {
    let (count, mut rest) = number(contents)?;
    let mut widened = leb(count);
    for _ in 0..count {
        let (body, after) = sized(rest)?;
        append_sized(&mut widened, &with_vector(body)?);
        rest = after;
    }
    rest.is_empty().then_some(widened)
}

/// A body with the declaration of the vector after its declarations of locals.
fn with_vector(body: &[u8]) -> Option<Vec<u8>> {
    let (groups, declarations) = number(body)?;
    let mut code = declarations;
    for _ in 0..groups {
        (_, code) = number(code)?;
        let (&ty, after) = code.split_first()?;
        // The heap type follows the byte of a reference type that has one.
        code = if matches!(ty, 0x63 | 0x64) { number(after)?.1 } else { after };
    }
    let declared = &declarations[..declarations.len() - code.len()];
    Some([&leb(groups + 1), declared, &VECTOR, code].concat())
}

/// Splits bytes after their number in front, and after that many.
fn sized(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = number(bytes)?;
    rest.split_at_checked(length as usize)
}

fn append_sized(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend(leb(bytes.len() as u64));
    to.extend(bytes);
}

/// Reads a LEB128. Returns also the bytes after it.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let length = bytes.iter().position(|byte| byte & 0x80 == 0)? + 1;
    let (digits, rest) = bytes.split_at(length);
    let value = digits.iter().rev().try_fold(0u64, |value, digit| Some(value.checked_mul(128)? | u64::from(digit & 0x7F)));
    Some((value?, rest))
}

fn leb(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let more = value >= 0x80;
        bytes.push(value as u8 & 0x7F | u8::from(more) << 7);
        value >>= 7;
        if !more {
            return bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_get_a_vector() {
        let module = |body: &[u8]| {
            let code = [&[1, body.len() as u8], body].concat();
            let types = b"\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00";
            [b"\0asm\x01\0\0\0", &types[..], &[CODE, code.len() as u8], &code].concat()
        };
        // Two groups, of which the second is of a reference with a heap type, and code.
        let before = module(&[2, 0x81, 0, 0x7F, 3, 0x63, 0x70, 0x01, 0x0B]);
        let after = module(&[3, 0x81, 0, 0x7F, 3, 0x63, 0x70, 1, 0x7B, 0x01, 0x0B]);
        assert_eq!(widen(before.clone()), after);
        assert_eq!(widen(before[..before.len() - 1].to_vec()), before[..before.len() - 1]);
        assert_eq!(leb(300), [0xAC, 2]);
        assert_eq!(number(&[0xAC, 2, 7]), Some((300, &[7][..])));
    }
}
