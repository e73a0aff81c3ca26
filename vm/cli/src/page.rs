//! The stages of a function's compilation as one HTML page: panes side by side, linked by bytecode offset. The page is
//! self-contained. Its appearance and behaviour are in `page.html`; the content is made here and is readable without
//! scripts.

use crate::diff::{self, Edit};
use std::fmt::Write;
use weir_jit::explore::Section;
use weir_jit::opt::passes;

/// The page around the stages. `{{name}}` marks the place of a text.
const TEMPLATE: &str = include_str!("page.html");

/// Creates a page with these stages, a title and a subtitle.
pub(crate) fn page(title: &str, subtitle: &str, sections: &[Section]) -> String {
    let (mut stages, mut panes) = (String::new(), String::new());
    for (i, section) in sections.iter().enumerate() {
        let pane = Pane::new(sections, i);
        stages += &pane.button();
        panes += &pane.html(section.stage);
    }
    let texts = [("title", escape(title)), ("subtitle", escape(subtitle)), ("stages", stages), ("panes", panes)];
    fill(TEMPLATE, &texts)
}

/// Returns `template` with each `{{name}}` replaced by the text of that name. The texts themselves are not scanned for
/// names.
pub(crate) fn fill(template: &str, texts: &[(&str, String)]) -> String {
    let mut parts = template.split("{{");
    let mut filled = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (name, rest) = part.split_once("}}").expect("a name in the template is closed");
        let text = texts.iter().find(|(known, _)| *known == name);
        filled += &text.unwrap_or_else(|| panic!("there is no text {name}")).1;
        filled += rest;
    }
    filled
}

/// Determines which stages are compared: the SSA after a pass with the SSA before it, gates with gates.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ssa,
    Gates,
    Other,
}

impl Kind {
    fn of(stage: &str) -> Kind {
        match stage {
            "gates" => Kind::Gates,
            "build" => Kind::Ssa,
            pass if passes::by_name(pass).is_some() => Kind::Ssa,
            _ => Kind::Other,
        }
    }
}

/// A stage.
pub(crate) struct Pane<'s> {
    /// Unique among the panes, although a stage may occur several times.
    pub name: String,
    pub edits: Vec<Edit<'s>>,
    /// Whether it is compared with an earlier stage.
    compared: bool,
}

impl<'s> Pane<'s> {
    pub fn new(sections: &'s [Section], i: usize) -> Pane<'s> {
        let Section { stage, text } = &sections[i];
        let (kind, earlier) = (Kind::of(stage), &sections[..i]);
        let base = match (kind, earlier.last()) {
            (Kind::Gates, Some(before)) => format!("gates of {}", before.stage),
            _ => stage.to_string(),
        };
        let before = earlier.iter().filter(|section| section.stage == *stage && kind != Kind::Gates).count();
        let name = if before > 0 { format!("{base} {}", before + 1) } else { base };
        let previous = earlier.iter().rfind(|section| kind != Kind::Other && Kind::of(section.stage) == kind);
        let edits = match previous {
            Some(previous) => diff::lines(&previous.text, text),
            None => text.lines().map(Edit::Kept).collect(),
        };
        Pane { name, edits, compared: previous.is_some() }
    }

    /// Returns the fragment identifier of the pane.
    fn slug(&self) -> String {
        self.name.replace(' ', "-")
    }

    /// Returns a summary of the changes, as numbers of added and removed lines.
    fn changes(&self) -> String {
        if !self.compared {
            return String::new();
        }
        let count = |wanted: fn(&Edit<'_>) -> bool| self.edits.iter().filter(|edit| wanted(edit)).count();
        let added = count(|edit| matches!(edit, Edit::Added(_)));
        let removed = count(|edit| matches!(edit, Edit::Removed(_)));
        format!(" <small><ins>+{added}</ins> <del>−{removed}</del></small>")
    }

    fn button(&self) -> String {
        let (slug, name, changes) = (self.slug(), escape(&self.name), self.changes());
        format!("<button type=\"button\" data-stage=\"{slug}\" aria-pressed=\"true\">{name}{changes}</button>\n")
    }

    fn html(&self, stage: &str) -> String {
        let (slug, name, changes) = (self.slug(), escape(&self.name), self.changes());
        let next = match changes.as_str() {
            "" => String::new(),
            changes => format!(" <button type=\"button\" title=\"to the next changed line\">{}</button>", changes.trim_start()),
        };
        // Lines of bytecode begin with their offset; lines of other stages end with it.
        let class = if leads(stage) { "code" } else { "code ends" };
        let mut html = format!(
            "<section id=\"stage-{slug}\" data-stage=\"{slug}\">\n<h2>{name}{next}</h2>\n\
             <div class=\"{class}\" tabindex=\"0\" role=\"group\" aria-label=\"{name}\">\n"
        );
        for edit in &self.edits {
            let (class, line) = match edit {
                Edit::Kept(line) => ("", line),
                Edit::Added(line) => (" class=\"new\"", line),
                Edit::Removed(line) => (" class=\"old\"", line),
            };
            html += "<div";
            html += class;
            let (text, offsets) = show(stage, line);
            if !offsets.is_empty() {
                let _ = write!(html, " data-at=\"{}\"", offsets.join(" "));
            }
            let _ = writeln!(html, ">{text}</div>");
        }
        html += "</div>\n</section>\n";
        html
    }
}

/// Returns whether the first number of a line is its bytecode offset. Otherwise the offsets follow `@` at its end.
pub(crate) fn leads(stage: &str) -> bool {
    matches!(stage, "bytecode" | "sidetable")
}

/// Returns a line as HTML, and the bytecode offsets that it belongs to, in hexadecimal.
fn show(stage: &str, line: &str) -> (String, Vec<String>) {
    if leads(stage) {
        let Some(start) = line.find("0x") else { return (escape(line), Vec::new()) };
        let digits = line[start + 2..].find(|c: char| !c.is_ascii_hexdigit()).map_or(line.len(), |end| start + 2 + end);
        let offset = line[start + 2..digits].trim_start_matches('0').to_string();
        let (before, number, after) = (&line[..start], &line[start..digits], &line[digits..]);
        return (format!("{}<i>{number}</i>{}", escape(before), escape(after)), vec![offset]);
    }
    let Some(at) = line.find(" @0x") else { return (escape(line), Vec::new()) };
    let (text, after) = line.split_at(at);
    let offsets = after.split_whitespace().filter_map(|word| word.strip_prefix("@0x")).map(ToString::to_string);
    // The page aligns this column.
    (format!("{} <i>{}</i>", escape(text.trim_end()), escape(after.trim_start())), offsets.collect())
}

/// Returns data for a script element of type `application/json`, which its text cannot end.
pub(crate) fn json(data: &serde_json::Value) -> String {
    let mut text = String::new();
    for c in data.to_string().chars() {
        match c {
            // They occur only in strings.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => _ = write!(text, "\\u{:04x}", c as u32),
            c => text.push(c),
        }
    }
    text
}

/// Returns text for HTML.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            c if c.is_control() => escaped.extend(c.escape_default()),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(stage: &'static str, text: &str) -> Section {
        Section { stage, text: text.to_string() }
    }

    #[test]
    fn lines_tell_where_they_come_from() {
        let at = |stage, line: &str| show(stage, line).1;
        assert_eq!(at("bytecode", "0x00012d    if (type 6)"), ["12d"]);
        assert_eq!(at("bytecode", "func 6 [i32] -> [i32] ;; a"), [""; 0]);
        assert_eq!(at("sidetable", "    0: 0x00012d if       → 0x000136 stp 2 keep 0 drop 0"), ["12d"]);
        assert_eq!(at("build", "  v2: i32 = eqz v1                           @0x12c"), ["12c"]);
        assert_eq!(at("build", "  v1: i64 = const 0xdeadbeef"), [""; 0]);
        assert_eq!(at("gates", "b3: v15 = γ(v2, v0, v9)                      @0x12d @0x13f"), ["12d", "13f"]);
        assert_eq!(at("asm", "     0  mov eax,0FEEDh @0xfeed"), ["feed"]);
        assert_eq!(at("asm", "    2b  xor edx,edx"), [""; 0]);
        assert_eq!(at("asm", "    2b  add eax,bad                          @0xbad"), ["bad"]);
    }

    #[test]
    fn nothing_in_a_stage_is_taken_for_html() {
        let name = "<script>alert('\"&\u{7}{{panes}}')</script>";
        let html = page(name, name, &[section("bytecode", name), section("build", name), section("dce", "<b>")]);
        assert!(!html.contains("<script>alert") && !html.contains("<b>") && !html.contains('\u{7}'), "{html}");
        let escaped = "&lt;script&gt;alert(&#39;&quot;&amp;\\u{7}{{panes}}&#39;)&lt;/script&gt;";
        // Twice in the title, once in the subtitle, in a line of the first and of the second stage, and in one that the
        // third removed.
        assert_eq!(html.matches(escaped).count(), 6, "{html}");
    }

    #[test]
    fn stages_are_compared_with_their_like() {
        let stages =
            [section("build", "a\nb"), section("gates", "g"), section("gvn", "a\nc"), section("gates", "h"), section("asm", "x")];
        let html = page("f", "", &stages);
        for piece in [
            "<h2>build</h2>",
            "<h2>gates of build</h2>",
            "<h2>gvn <button type=\"button\" title=\"to the next changed line\">",
            "><small><ins>+1</ins> <del>−1</del></small></button></h2>",
            "<div class=\"old\">b</div>\n<div class=\"new\">c</div>",
            "<h2>gates of gvn <button",
            "<div class=\"old\">g</div>\n<div class=\"new\">h</div>",
            "<h2>asm</h2>",
        ] {
            assert!(html.contains(piece), "{piece} is missing in {html}");
        }
    }
}
