//! The messages that scripts expect, and the wordings of Weir and of the libraries with which it decodes.
//!
//! A failure matches if its message begins with the one in the script. Where a library uses other words for a fault, a
//! [wording](Wording) says that the two messages mean the same, and why they differ.

use std::fmt;

/// The kind of a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Text that the crate `wast` rejects as malformed.
    Text,
    /// Bytes that cannot be decoded.
    Malformed,
    /// A module that can be decoded but is invalid.
    Invalid,
    /// A trap.
    Trap,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Text => "malformed text",
            Kind::Malformed => "malformed",
            Kind::Invalid => "invalid",
            Kind::Trap => "trap",
        })
    }
}

/// Two messages that mean the same.
struct Wording {
    /// The message in the specification's scripts, for a fault of kind `expected`; `*` matches any text.
    spec: &'static str,
    /// The beginning of the message that is found; `*` matches any text.
    found: &'static str,
}

/// Wordings that differ for the same reason.
struct Group {
    reason: &'static str,
    expected: Kind,
    found: Kind,
    wordings: &'static [Wording],
}

/// A row of a [`Group`].
const fn wording(spec: &'static str, found: &'static str) -> Wording {
    Wording { spec, found }
}

/// All messages that may differ from those that the specification's scripts expect. The tests that run the
/// specification's suite fail for a row that they do not need.
const GROUPS: &[Group] = &[
    Group {
        reason: "Weir's message of a trap names neither an index nor a type, and is the same for all uses of a table",
        expected: Kind::Trap,
        found: Kind::Trap,
        wordings: &[
            wording("null function reference", "null reference"),
            wording("uninitialized element 2", "uninitialized element"),
            wording("out of bounds", "undefined element: out of bounds table access"),
            wording("out of bounds table access", "undefined element: out of bounds table access"),
        ],
    },
    Group {
        reason: "the validator says more, or the same with other words",
        expected: Kind::Invalid,
        found: Kind::Invalid,
        wordings: &[
            wording("alignment must not be larger than natural", "invalid memop alignment: alignment must not be larger"),
            wording("immutable global", "global is immutable"),
            wording("invalid lane index", "SIMD index out of bounds"),
            wording("memory size must be at most 65536 pages (4GiB)", "memory size must be at most 0x10000 65536-byte pages"),
            wording(
                "non-empty tag result type",
                "proposal not supported: stack switching (invalid exception type: non-empty tag result type)",
            ),
            wording("start function", "invalid start function type"),
            wording(
                "type mismatch: instruction requires [i32] but stack has []",
                "type mismatch: expected i32 but nothing on stack",
            ),
            wording("type mismatch: instruction requires [i32] but stack has [i64]", "type mismatch: expected i32, found i64"),
        ],
    },
    Group {
        reason: "the decoder says more, or the same with other words",
        expected: Kind::Malformed,
        found: Kind::Malformed,
        wordings: &[
            wording("END opcode expected", "control frames remain at end"),
            wording("data count and data section have inconsistent lengths", "data count is non-zero but data section is absent"),
            wording(
                "function and code section have inconsistent lengths",
                "function section has non-zero count but code section is absent",
            ),
            wording(
                "function and code section have inconsistent lengths",
                "function section is absent but code section has non-zero count",
            ),
            wording("illegal opcode ff", "illegal opcode: 0xff"),
            wording("integer representation too long", "invalid var_*: integer representation too long"),
            wording("integer too large", "invalid var_*: integer too large"),
            wording("malformed import kind", "invalid leading byte (0x*) for external kind"),
            wording("malformed limits flags", "invalid memory limits flags"),
            wording("malformed limits flags", "invalid table resizable limits flags"),
            wording("malformed memop flags", "malformed memop: reserved flags bits set"),
            wording("malformed mutability", "malformed global flags"),
            wording("section size mismatch", "control frames remain at end"),
            wording("unexpected end", "control frames remain at end"),
            wording("unexpected end of section or function", "control frames remain at end"),
            wording("unexpected end of section or function", "unexpected end-of-file"),
            wording("length out of bounds", "unexpected end-of-file"),
        ],
    },
    Group {
        reason: "the text format of the library has the legacy instructions of exception handling",
        expected: Kind::Malformed,
        found: Kind::Malformed,
        wordings: &[wording("unexpected token", "proposal not supported: legacy exceptions")],
    },
    Group {
        reason: "a section that is repeated is to the decoder a section in the wrong place",
        expected: Kind::Malformed,
        found: Kind::Malformed,
        wordings: &[
            wording("junk after last section", "section out of order"),
            wording("multiple start sections", "section out of order"),
            wording("unexpected content after last section", "section out of order"),
            wording("length out of bounds", "expected section, got wasm magic number"),
        ],
    },
    Group {
        reason: "the decoder compares sizes and counts before it reads what they are of, or the reverse",
        expected: Kind::Malformed,
        found: Kind::Malformed,
        wordings: &[
            wording("illegal opcode", "unexpected end-of-file"),
            wording("malformed elements segment kind", "unexpected end-of-file"),
            wording("malformed import kind", "unexpected end-of-file"),
            wording("malformed limits flags", "unexpected end-of-file"),
            wording("malformed section id", "unexpected end-of-file"),
            wording("unexpected content after last section", "function and code section have inconsistent lengths"),
        ],
    },
    Group {
        reason: "where the script has an integer of too many bytes, the decoder reads one byte or fewer bytes, and fails at the next",
        expected: Kind::Malformed,
        found: Kind::Malformed,
        wordings: &[
            wording("integer representation too long", "invalid leading byte (0xe0) for type"),
            wording("integer representation too long", "invalid memory limits flags"),
            wording("integer representation too long", "invalid table resizable limits flags"),
            wording("integer representation too long", "malformed section id"),
            wording("integer representation too long", "trailing bytes at end of section"),
            wording("integer representation too long", "unexpected end-of-file"),
            wording("integer too large", "invalid memory limits flags"),
            wording("integer too large", "invalid table resizable limits flags"),
            wording("integer too large", "malformed section id"),
            wording("integer too large", "trailing bytes at end of section"),
            wording("integer too large", "unexpected end-of-file"),
        ],
    },
    Group {
        reason: "the format of a later proposal can express it, and then it is too much: memory64 has offsets and limits of 64 \
                 bits, multi-memory an index where a zero byte was, shared-everything-threads a flag of globals",
        expected: Kind::Malformed,
        found: Kind::Invalid,
        wordings: &[
            wording("i32 constant out of range", "table size must be at most 0xffffffff entries"),
            wording("integer too large", "invalid memop alignment: alignment must not be larger"),
            wording("integer too large", "memory size must be at most 0x10000 65536-byte pages"),
            wording("integer too large", "offset out of range: must be <= 2**32"),
            wording("malformed mutability", "proposal not supported: shared everything threads"),
            wording("zero byte expected", "unknown memory 1"),
            wording("zero flag expected", "unknown memory 1"),
        ],
    },
    Group {
        reason: "the text parser names the literal that is out of range, by type or by use",
        expected: Kind::Malformed,
        found: Kind::Text,
        wordings: &[
            wording("constant out of range", "invalid float value: constant out of range"),
            wording("constant out of range", "invalid i* number: constant out of range"),
            wording("i64 constant out of range", "invalid u64 number: constant out of range"),
            wording("i8 constant out of range", "invalid u8 number: constant out of range"),
            wording("i8 constant out of range", "malformed lane index"),
            wording("malformed lane index", "invalid u8 number: constant out of range"),
            wording("unexpected token", "invalid u8 number: constant out of range"),
            wording("unknown operator", "u64 constant out of range"),
            wording("wrong number of lane literals", "invalid i32 number: constant out of range"),
        ],
    },
    Group {
        reason: "the text parser names the character",
        expected: Kind::Malformed,
        found: Kind::Text,
        wordings: &[
            wording("empty annotation id", "invalid character in string"),
            wording("empty identifier", "invalid character in string"),
            wording("illegal character", "unexpected character"),
            wording("unclosed string", "unexpected end-of-file"),
        ],
    },
    Group {
        reason: "the text parser names what could have come instead of the token that is there",
        expected: Kind::Malformed,
        found: Kind::Text,
        wordings: &[
            wording("invalid lane length", "expected a u8"),
            wording("invalid lane length", "expected an instruction"),
            wording("malformed lane index", "expected a u8"),
            wording("unexpected token", "expected `(`"),
            wording("unexpected token", "expected a float"),
            wording("unexpected token", "expected a i"),
            wording("unexpected token", "expected a lane index"),
            wording("unexpected token", "expected a u8"),
            wording("unexpected token", "extra tokens remaining after parse"),
            wording("unexpected token", "result before parameter (or unexpected token)"),
            wording("unexpected token", "unknown operator or unexpected token"),
            wording("unknown operator", "expected `(`"),
            wording("unknown operator", "expected a float"),
            wording("unknown operator", "expected a i"),
            wording("unknown operator", "expected an instruction"),
            wording("unknown operator", "expected valid module field"),
            wording("unknown operator", "unexpected token, expected an index or an identifier"),
            wording("unknown operator anyfunc", "unexpected token, expected one of"),
            wording("unknown operator *", "unknown operator or unexpected token"),
            wording("wrong number of lane indices", "expected a u8"),
            wording("wrong number of lane indices", "expected an instruction"),
            wording("wrong number of lane literals", "expected a float"),
            wording("wrong number of lane literals", "expected a i"),
            wording("wrong number of lane literals", "expected an instruction"),
        ],
    },
];

/// Returns every wording with its group.
fn all() -> impl Iterator<Item = (&'static Group, &'static Wording)> {
    GROUPS.iter().flat_map(|group| group.wordings.iter().map(move |wording| (group, wording)))
}

/// Returns for each wording a text with the expected message, the found message and the reason for the difference.
pub fn wordings() -> impl Iterator<Item = String> {
    all().map(|(group, Wording { spec, found })| {
        format!("{} \"{spec}\" is {} \"{found}\": {}", group.expected, group.found, group.reason)
    })
}

/// The result of comparing a failure with the expected one.
pub(super) enum Verdict {
    Same,
    /// They match by the wording with this index.
    Worded(usize),
    Different,
}

/// Compares a failure with the expected one. An empty message matches every message.
pub(super) fn compare(expected: (Kind, &str), found: (Kind, &str)) -> Verdict {
    let kind = if found.0 == Kind::Text { Kind::Malformed } else { found.0 };
    if kind == expected.0 && !expected.1.is_empty() && found.1.starts_with(expected.1) {
        return Verdict::Same;
    }
    let same = |(group, wording): (&Group, &Wording)| {
        (group.expected, group.found) == (expected.0, found.0)
            && matches(wording.spec, expected.1) == Some("")
            && matches(wording.found, found.1).is_some()
    };
    all().position(same).map_or(Verdict::Different, Verdict::Worded)
}

/// Returns the text after the shortest prefix of `text` that matches `pattern`, in which each `*` matches any text.
fn matches<'t>(pattern: &str, text: &'t str) -> Option<&'t str> {
    let (first, others) = pattern.split_once('*').unwrap_or((pattern, ""));
    let rest = text.strip_prefix(first)?;
    if !pattern.contains('*') {
        return Some(rest);
    }
    if others.is_empty() {
        return Some("");
    }
    rest.char_indices().find_map(|(i, _)| matches(others, &rest[i..]))
}
