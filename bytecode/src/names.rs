//! The name section. It is read when a name is first asked for, because most runs need none, and a module may have tens of
//! thousands.

use crate::account::Account;
use crate::bytes::Bytes;
use std::cell::Cell;
use std::fmt::{self, Write};
use std::ops::Range;
use std::sync::OnceLock;
use wasmparser::{BinaryReader, Name, NameMap, NameSectionReader};

/// The names of a module, its functions and its tags.
#[derive(Debug, Default)]
pub struct Names {
    /// The contents of the name sections in the module's bytes.
    sections: Vec<Range<u32>>,
    read: OnceLock<Read>,
}

/// Where the names are in the module's bytes.
#[derive(Debug, Default)]
struct Read {
    module: Option<Range<usize>>,
    /// Of functions, ascending.
    funcs: Vec<Named>,
    /// Of tags, ascending.
    tags: Vec<Named>,
}

/// An index, and where its name is in the module's bytes.
type Named = (u32, Range<usize>);

impl Names {
    /// Adds a name section with these contents.
    pub fn add(&mut self, contents: Range<u32>) {
        self.sections.push(contents);
    }

    /// Returns the module's own name. `bytes` are the module's, and `account` is charged if the section is read now; without room there, no names
    /// are read.
    pub fn module<'m>(&self, bytes: &'m Bytes, account: &Account) -> Option<&'m str> {
        text(bytes, self.read(bytes, account).module.clone()?)
    }

    /// Returns the name of a function. The arguments are those of [`Names::module`].
    pub fn func<'m>(&self, bytes: &'m Bytes, account: &Account, func: u32) -> Option<&'m str> {
        find(bytes, &self.read(bytes, account).funcs, func)
    }

    /// Returns the name of a tag. The arguments are those of [`Names::module`].
    pub fn tag<'m>(&self, bytes: &'m Bytes, account: &Account, tag: u32) -> Option<&'m str> {
        find(bytes, &self.read(bytes, account).tags, tag)
    }

    /// Reads the names as far as they are well formed: a module with a malformed name section is valid.
    #[expect(clippy::wildcard_enum_match_arm, reason = "these are the parser's name maps, of which three are used")]
    fn read(&self, bytes: &Bytes, account: &Account) -> &Read {
        let range = |name: &str| {
            let start = name.as_ptr().addr() - bytes.as_ptr().addr();
            start..start + name.len()
        };
        let charged = Cell::new(0);
        let add = |names: &mut Vec<Named>, map: NameMap<'_>, bytes: usize| {
            // Each takes two bytes at least, whatever the section declares.
            let count = map.names.size_hint().0.min(bytes / 2);
            let size = count * size_of::<Named>();
            if account.charge(size).is_ok() {
                charged.set(charged.get() + size);
                // A second section of names, which is malformed, must not copy all before it.
                if names.is_empty() {
                    names.reserve_exact(count)
                } else {
                    names.reserve(count)
                }
                names.extend(map.flatten().map(|naming| (naming.index, range(naming.name))));
            }
        };
        self.read.get_or_init(|| {
            let mut read = Read::default();
            for section in &self.sections {
                let Ok(contents) = bytes.try_part(section.start as usize..section.end as usize) else { continue };
                let names = NameSectionReader::new(BinaryReader::new(contents, section.start.into()));
                for subsection in names.into_iter().map_while(Result::ok) {
                    match subsection {
                        Name::Module { name, .. } => read.module = Some(range(name)),
                        Name::Function(map) => add(&mut read.funcs, map, contents.len()),
                        Name::Tag(map) => add(&mut read.tags, map, contents.len()),
                        _ => {}
                    }
                }
            }
            for names in [&mut read.funcs, &mut read.tags] {
                names.sort_by_key(|(index, _)| *index);
                names.dedup_by_key(|(index, _)| *index);
                names.shrink_to_fit();
            }
            account.give_back(charged.get() - (read.funcs.len() + read.tags.len()) * size_of::<Named>());
            read
        })
    }
}

/// Returns the name with this index, of names that ascend by index.
fn find<'m>(bytes: &'m Bytes, names: &[Named], index: u32) -> Option<&'m str> {
    let i = names.binary_search_by_key(&index, |(index, _)| *index).ok()?;
    text(bytes, names[i].1.clone())
}

fn text(bytes: &Bytes, range: Range<usize>) -> Option<&str> {
    str::from_utf8(bytes.try_part(range).ok()?).ok()
}

/// Shows a name of a module without what a terminal or a log could take for more than a name: control characters, line separators, and
/// characters that change the direction of text are escaped as in Rust's strings.
#[derive(Clone, Copy, Debug)]
pub struct Plain<'n>(pub &'n str);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Escaping(f).write_str(self.0)
    }
}

/// Writes text as [`Plain`] does.
struct Escaping<W>(W);

impl<W: fmt::Write> fmt::Write for Escaping<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some(at) = rest.find(is_escaped) {
            let (before, from) = rest.split_at(at);
            self.0.write_str(before)?;
            let mut chars = from.chars();
            if let Some(c) = chars.next() {
                write!(self.0, "{}", c.escape_default())?;
            }
            rest = chars.as_str();
        }
        self.0.write_str(rest)
    }
}

fn is_escaped(c: char) -> bool {
    // The second line has the marks that embed, override and isolate directions.
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

/// Shows the name of a function as its source has it: what compilers of Rust and C++ encode for the linker is decoded. Other names, and
/// all without feature `demangle`, are not. An encoded name begins with `_Z`, `_R`, or these after another underscore; the
/// libraries that decode names take some for encoded that do not, such as a function's name `t`, which encodes a type of C++. All are
/// [plain](Plain).
///
/// `{:#}` leaves out the hash at the end of Rust's names.
#[derive(Clone, Copy, Debug)]
pub struct Demangled<'n>(pub &'n str);

impl fmt::Display for Demangled<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(feature = "demangle")]
        if !["_Z", "__Z", "_R", "__R"].iter().any(|prefix| self.0.starts_with(prefix)) {
            return Plain(self.0).fmt(f);
        } else if let Ok(name) = rustc_demangle::try_demangle(self.0) {
            return if f.alternate() { write!(Escaping(f), "{name:#}") } else { write!(Escaping(f), "{name}") };
        } else if let Ok(symbol) = cpp_demangle::Symbol::new(self.0)
            && let Some(name) = written(&symbol)
        {
            return Plain(&name).fmt(f);
        }
        Plain(self.0).fmt(f)
    }
}

/// Bytes of a demangled C++ name. Each part of a name can repeat all parts before it, so one of 300 bytes may stand for gigabytes.
#[cfg(feature = "demangle")]
const MAX_DEMANGLED: usize = 1 << 16;

/// Returns a C++ name as the source has it, unless it is longer than [`MAX_DEMANGLED`].
#[cfg(feature = "demangle")]
fn written(symbol: &cpp_demangle::Symbol<&str>) -> Option<String> {
    struct Limited(String);

    impl fmt::Write for Limited {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            if self.0.len() + text.len() > MAX_DEMANGLED {
                return Err(fmt::Error);
            }
            self.0.push_str(text);
            Ok(())
        }
    }

    let mut name = Limited(String::new());
    symbol.structured_demangle(&mut name, &cpp_demangle::DemangleOptions::new()).ok()?;
    Some(name.0)
}

#[cfg(all(test, feature = "demangle"))]
mod tests {
    use super::*;

    /// A function with 35 parameters, of which each is a pair of the one before.
    #[test]
    fn a_name_that_stands_for_gigabytes_is_shown_as_it_is() {
        let number = |i: usize| match i {
            0 => "S_".to_string(),
            _ => format!("S{}_", char::from_digit(i as u32 - 1, 36).expect("one digit").to_ascii_uppercase()),
        };
        let deep = |pairs: usize| {
            let mut name = String::from("_Z1f4pairI1aS0_E");
            // S_ is the template, S0_ its argument, and S1_ the first pair.
            for i in 1..=pairs {
                name += &format!("S_I{0}{0}E", number(i + 1));
            }
            name
        };
        assert!(
            format!("{:#}", Demangled(&deep(2))).starts_with("f(pair<a, a>, pair<pair<a, a>, pair<a, a"),
            "{}",
            Demangled(&deep(2))
        );
        assert_eq!(Demangled(&deep(34)).to_string(), deep(34));
    }

    #[test]
    fn names_cannot_move_a_cursor_or_begin_a_line() {
        for (name, shown) in [
            ("\u{1b}[2J\nweir: all is well", r"\u{1b}[2J\nweir: all is well"),
            ("a\u{202e}b\u{2028}", r"a\u{202e}b\u{2028}"),
            ("caf\u{e9} \u{4e2d}", "caf\u{e9} \u{4e2d}"),
        ] {
            assert_eq!((Plain(name).to_string(), Demangled(name).to_string()), (shown.to_string(), shown.to_string()));
        }
        assert_eq!(Demangled("_ZN1\u{7}3barE").to_string(), r"\u{7}::bar");
    }

    #[test]
    fn names_are_shown_as_in_the_source() {
        let both = |name: &str| (Demangled(name).to_string(), format!("{:#}", Demangled(name)));
        let same = |name: &str| (name.to_string(), name.to_string());
        let rust = both("_ZN4core9panicking5panic17h0123456789abcdefE");
        assert_eq!(rust, ("core::panicking::panic::h0123456789abcdef".into(), "core::panicking::panic".into()));
        assert_eq!(both("_RNvC6_123foo3bar").1, "123foo::bar");
        assert_eq!(both("_Z3addii"), same("add(int, int)"));
        assert_eq!(both("_ZN3app4Tree6insertERKi"), same("app::Tree::insert(int const&)"));
        assert_eq!(both("__Z3addii"), same("add(int, int)"));
        // The last of these decode as a type, a name and a path.
        for plain in [
            "",
            "main",
            "_Z",
            "_ZN",
            "_start",
            "a b",
            "_R",
            "\u{e4}",
            "t",
            "i",
            "3foo",
            "St6vector",
            "ZN3fooE",
            "RNvC6_123foo3bar",
        ] {
            assert_eq!(both(plain), same(plain));
        }
    }
}
