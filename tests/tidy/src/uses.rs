//! Every path in the code of a file, with its target.

use std::collections::HashSet;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::modules::{ANY, FileId, MACROS, ModuleId, Modules, Path, Spaces, TYPES, UseEnd, VALUES, use_paths};
use crate::resolve::Found;

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathTarget {
    /// An item of another file.
    File(FileId),
    /// An item outside the workspace, by its full path.
    Outside(Vec<String>),
    /// Unknown, though the path begins with `crate`, `self` or `super`.
    Unknown,
}

/// A path in the code.
#[derive(Clone, Debug)]
pub struct Use {
    /// The file that contains it.
    pub file: FileId,
    /// Its line, from 1.
    pub line: usize,
    /// The path as it is written.
    pub path: String,
    /// Its target.
    pub target: PathTarget,
}

/// All paths of all modules, without re-exports.
pub fn find(modules: &mut Modules) -> Vec<Use> {
    let mut uses = Vec::new();
    for id in 0..modules.modules.len() {
        let items = std::mem::take(&mut modules.modules[id].items);
        let mut finder = Finder { modules, scope: id, locals: Vec::new(), uses: &mut uses };
        for item in &items {
            finder.visit_item(item);
        }
        modules.modules[id].items = items;
    }
    uses
}

struct Finder<'a> {
    modules: &'a mut Modules,
    /// The module or block in which names are looked up.
    scope: ModuleId,
    /// The names that the enclosing functions bind.
    locals: Vec<HashSet<String>>,
    uses: &'a mut Vec<Use>,
}

impl Finder<'_> {
    fn file(&self) -> FileId {
        self.modules.modules[self.scope].file
    }

    fn record(&mut self, path: &Path, line: usize, target: PathTarget) {
        let file = self.file();
        if target != PathTarget::File(file) {
            self.uses.push(Use { file, line, path: path.to_string(), target });
        }
    }

    /// Records a path that names something.
    fn named(&mut self, path: &Path, line: usize, spaces: Spaces) {
        let found = self.modules.resolve(self.scope, path, spaces);
        let rooted = path.segments.len() > 1 && matches!(path.segments[0].as_str(), "crate" | "self" | "super");
        if found.is_empty() && rooted {
            self.record(path, line, PathTarget::Unknown);
        }
        for found in found {
            match found {
                Found::Item(file) => self.record(path, line, PathTarget::File(file)),
                Found::Outside(outside) => self.record(path, line, PathTarget::Outside(outside)),
                Found::Module(_) => {}
            }
        }
    }

    /// Records a glob: its targets are the file of the items that it imports, and the traits that it re-exports. Other names
    /// count where they are used.
    fn glob(&mut self, path: &Path, line: usize) {
        let shown = Path { global: path.global, segments: path.segments.iter().cloned().chain(["*".to_owned()]).collect() };
        let found = self.modules.resolve(self.scope, path, TYPES);
        if found.is_empty() {
            self.record(&shown, line, PathTarget::Unknown);
        }
        for found in found {
            match found {
                Found::Module(module) => {
                    if self.modules.has_items(module, self.scope) {
                        let file = self.modules.modules[module].file;
                        self.record(&shown, line, PathTarget::File(file));
                    }
                    for file in self.modules.traits_of_glob(module, self.scope) {
                        self.record(&shown, line, PathTarget::File(file));
                    }
                }
                Found::Item(file) => self.record(&shown, line, PathTarget::File(file)),
                Found::Outside(mut outside) => {
                    outside.push("*".to_owned());
                    self.record(&shown, line, PathTarget::Outside(outside));
                }
            }
        }
    }

    fn is_local(&self, name: &str) -> bool {
        self.locals.iter().any(|names| names.contains(name))
    }

    fn syntax_path(&mut self, path: &syn::Path, spaces: Spaces) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if segments.len() > 1 || !self.is_local(&segments[0]) {
            let line = path.span().start().line;
            self.named(&Path { global: path.leading_colon.is_some(), segments }, line, spaces);
        }
        self.arguments(path);
    }

    /// Visits the types among the generic arguments.
    fn arguments(&mut self, path: &syn::Path) {
        for segment in &path.segments {
            self.visit_path_arguments(&segment.arguments);
        }
    }

    /// Visits a path after `<T>` or `<T as Trait>`.
    fn qualified(&mut self, of: &syn::QSelf, path: &syn::Path) {
        self.visit_type(&of.ty);
        if of.position > 0 { self.syntax_path(path, TYPES) } else { self.arguments(path) }
    }

    fn in_function(&mut self, signature: &syn::Signature, block: Option<&syn::Block>, visit: impl FnOnce(&mut Self)) {
        let mut bindings = Bindings::default();
        bindings.visit_signature(signature);
        if let Some(block) = block {
            bindings.visit_block(block);
        }
        self.locals.push(bindings.names);
        visit(self);
        self.locals.pop();
    }

    /// Visits the paths among the tokens of a macro.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => {
                    self.tokens(group.stream());
                    at += 1;
                }
                TokenTree::Ident(_) => at = self.path_of_tokens(&tokens, at),
                TokenTree::Punct(_) | TokenTree::Literal(_) => at += 1,
            }
        }
    }

    /// Visits the path whose first identifier is at `at`; returns the index after it.
    fn path_of_tokens(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        let before = at.checked_sub(1).and_then(|index| mark(tokens, index));
        let is_field = before == Some('.') && at.checked_sub(2).and_then(|index| mark(tokens, index)) != Some('.');
        let line = tokens[at].span().start().line;
        let mut path = Path { global: before == Some(':'), segments: vec![tokens[at].to_string()] };
        let mut end = at + 1;
        let mut group = None;
        while mark(tokens, end) == Some(':') && is_joint(&tokens[end]) && mark(tokens, end + 1) == Some(':') {
            match tokens.get(end + 2) {
                Some(TokenTree::Ident(word)) => path.segments.push(word.to_string()),
                Some(TokenTree::Group(list)) if list.delimiter() == Delimiter::Brace => {
                    group = Some(list.stream());
                    end += 3;
                    break;
                }
                Some(TokenTree::Punct(star)) if star.as_char() == '*' => {
                    self.glob(&path, line);
                    return end + 3;
                }
                _ => break,
            }
            end += 3;
        }
        // `$name`, `'name` and `.name` are not paths, nor is the part after `::` that follows another `$name` or a `>`.
        let is_parameter = before == Some('$') && path.segments[0] != "crate";
        if is_parameter || is_field || before == Some('\'') || path.global && !begins_global(tokens, at) {
            return end;
        }
        if let Some(group) = group {
            self.group_of_tokens(&path, group);
            return end;
        }
        let after = mark(tokens, end);
        let first = path.segments[0].as_str();
        if path.segments.len() == 1 && !path.global {
            let is_label = after == Some(':') || after == Some('=') && !tokens.get(end).is_some_and(is_joint);
            if first == "crate" || self.is_local(first) || is_label {
                return end;
            }
        }
        let is_call = after == Some('!') && mark(tokens, end + 1) != Some('=');
        let spaces = if is_call { MACROS } else { TYPES | VALUES };
        self.named(&path, line, spaces);
        end
    }

    /// `path::{ a, b::c, d::{..} }` among tokens.
    fn group_of_tokens(&mut self, path: &Path, group: TokenStream) {
        let text = format!("{path}::{{{group}}}").replace("$crate", "crate").replace("$ crate", "crate");
        let Ok(tree) = syn::parse_str::<syn::UseTree>(&text) else { return self.tokens(group) };
        let line = group.span().start().line;
        for (path, end) in use_paths(&tree, false) {
            if end == UseEnd::Glob { self.glob(&path, line) } else { self.named(&path, line, ANY) }
        }
    }

    /// Visits the right-hand sides of a `macro_rules!`.
    fn rules(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for window in tokens.windows(3) {
            if let [TokenTree::Punct(equals), TokenTree::Punct(greater), TokenTree::Group(body)] = window
                && equals.as_char() == '='
                && greater.as_char() == '>'
            {
                self.tokens(body.stream());
            }
        }
    }
}

fn mark(tokens: &[TokenTree], at: usize) -> Option<char> {
    match tokens.get(at) {
        Some(TokenTree::Punct(mark)) => Some(mark.as_char()),
        _ => None,
    }
}

fn is_joint(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(mark) if mark.spacing() == Spacing::Joint)
}

/// Whether the `::` before the identifier at `at` begins a path and is not inside one.
fn begins_global(tokens: &[TokenTree], at: usize) -> bool {
    let is_pair = at >= 2 && mark(tokens, at - 2) == Some(':') && is_joint(&tokens[at - 2]);
    is_pair
        && match at.checked_sub(3).and_then(|before| tokens.get(before)) {
            None => true,
            Some(TokenTree::Punct(mark)) => mark.as_char() != '>',
            Some(TokenTree::Ident(word)) => word == "use" || word == "as" || word == "return" || word == "in",
            Some(TokenTree::Group(_) | TokenTree::Literal(_)) => false,
        }
}

impl<'a> Visit<'a> for Finder<'_> {
    // Child modules are visited separately.
    fn visit_item_mod(&mut self, _: &'a syn::ItemMod) {}
    fn visit_attribute(&mut self, _: &'a syn::Attribute) {}
    fn visit_visibility(&mut self, _: &'a syn::Visibility) {}

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        if !matches!(item.vis, syn::Visibility::Inherited) {
            return;
        }
        let line = item.span().start().line;
        for (path, end) in use_paths(&item.tree, item.leading_colon.is_some()) {
            if end == UseEnd::Glob { self.glob(&path, line) } else { self.named(&path, line, ANY) }
        }
    }

    fn visit_item_macro(&mut self, item: &'a syn::ItemMacro) {
        if item.ident.is_some() { self.rules(item.mac.tokens.clone()) } else { self.visit_macro(&item.mac) }
    }

    fn visit_macro(&mut self, call: &'a syn::Macro) {
        self.syntax_path(&call.path, MACROS);
        self.tokens(call.tokens.clone());
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        self.syntax_path(path, TYPES | VALUES);
    }

    fn visit_type_path(&mut self, of: &'a syn::TypePath) {
        match &of.qself {
            Some(qself) => self.qualified(qself, &of.path),
            None => self.syntax_path(&of.path, TYPES),
        }
    }

    fn visit_expr_path(&mut self, of: &'a syn::ExprPath) {
        match &of.qself {
            Some(qself) => self.qualified(qself, &of.path),
            None => self.syntax_path(&of.path, VALUES),
        }
    }

    fn visit_pat_ident(&mut self, pattern: &'a syn::PatIdent) {
        let name = pattern.ident.to_string();
        if starts_upper(&name) {
            let line = pattern.ident.span().start().line;
            self.named(&Path { global: false, segments: vec![name] }, line, VALUES);
        }
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        self.in_function(&item.sig, Some(&item.block), |finder| visit::visit_item_fn(finder, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.in_function(&item.sig, Some(&item.block), |finder| visit::visit_impl_item_fn(finder, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'a syn::TraitItemFn) {
        self.in_function(&item.sig, item.default.as_ref(), |finder| visit::visit_trait_item_fn(finder, item));
    }

    fn visit_block(&mut self, block: &'a syn::Block) {
        let items = block.stmts.iter().filter_map(|statement| match statement {
            syn::Stmt::Item(item) => Some(item),
            _ => None,
        });
        let outer = self.scope;
        if items.clone().next().is_some() {
            self.scope = self.modules.add_block(outer, items);
        }
        visit::visit_block(self, block);
        self.scope = outer;
    }
}

fn starts_upper(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
}

/// The names that patterns bind.
#[derive(Default)]
struct Bindings {
    names: HashSet<String>,
}

impl<'a> Visit<'a> for Bindings {
    fn visit_pat_ident(&mut self, pattern: &'a syn::PatIdent) {
        let name = pattern.ident.to_string();
        if !starts_upper(&name) {
            self.names.insert(name);
        }
        visit::visit_pat_ident(self, pattern);
    }
}
