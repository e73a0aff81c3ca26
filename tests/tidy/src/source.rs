//! A file's syntax tree without code for tests.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit_mut::{self, VisitMut};

/// A source file.
pub struct Source {
    /// Its path, relative to the workspace.
    pub path: String,
    /// The lines of the whole file, tests included.
    pub lines: usize,
    /// Its syntax tree without the items, statements, arms and fields under `cfg(test)`.
    pub tree: syn::File,
}

/// Parses the text of the file at `path`.
///
/// # Errors
///
/// A message with the position, if it is not Rust.
pub fn parse(path: &str, text: &str) -> Result<Source, String> {
    let mut tree = syn::parse_file(text).map_err(|error| format!("{path}:{}: {error}", error.span().start().line))?;
    if is_test(&tree.attrs) {
        tree.items.clear();
    }
    StripTests.visit_file_mut(&mut tree);
    Ok(Source { path: path.to_owned(), lines: text.lines().count(), tree })
}

/// Whether an item with these attributes exists only in tests: `#[test]`, `#[cfg(test)]`, `#[cfg(all(.., test, ..))]`.
pub fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) => list.path.is_ident("cfg") && needs_test(list.tokens.clone()),
        syn::Meta::NameValue(_) => false,
    })
}

/// Whether the condition of a `cfg` can only be true in tests.
pub fn needs_test(condition: TokenStream) -> bool {
    let tokens: Vec<TokenTree> = condition.into_iter().collect();
    match tokens.as_slice() {
        [TokenTree::Ident(word)] => word == "test",
        [TokenTree::Ident(word), TokenTree::Group(group)] if group.delimiter() == Delimiter::Parenthesis => {
            let mut parts = split_at_commas(group.stream()).into_iter().filter(|part| !part.is_empty()).map(needs_test);
            match word.to_string().as_str() {
                "all" => parts.any(|needs| needs),
                "any" => parts.next().is_some_and(|first| first && parts.all(|needs| needs)),
                _ => false,
            }
        }
        _ => false,
    }
}

/// The parts of a list that are separated by commas.
pub fn split_at_commas(tokens: TokenStream) -> Vec<TokenStream> {
    let mut parts = vec![TokenStream::new()];
    for token in tokens {
        match &token {
            TokenTree::Punct(mark) if mark.as_char() == ',' => parts.push(TokenStream::new()),
            _ => parts.last_mut().expect("there is always one part").extend([token]),
        }
    }
    parts
}

struct StripTests;

impl VisitMut for StripTests {
    fn visit_file_mut(&mut self, file: &mut syn::File) {
        file.items.retain(|item| !is_test(attributes_of(item)));
        visit_mut::visit_file_mut(self, file);
    }

    fn visit_item_mod_mut(&mut self, module: &mut syn::ItemMod) {
        if let Some((_, items)) = &mut module.content {
            items.retain(|item| !is_test(attributes_of(item)));
        }
        visit_mut::visit_item_mod_mut(self, module);
    }

    fn visit_item_impl_mut(&mut self, item: &mut syn::ItemImpl) {
        item.items.retain(|item| {
            !is_test(match item {
                syn::ImplItem::Const(item) => &item.attrs,
                syn::ImplItem::Fn(item) => &item.attrs,
                syn::ImplItem::Type(item) => &item.attrs,
                syn::ImplItem::Macro(item) => &item.attrs,
                _ => &[],
            })
        });
        visit_mut::visit_item_impl_mut(self, item);
    }

    fn visit_item_trait_mut(&mut self, item: &mut syn::ItemTrait) {
        item.items.retain(|item| {
            !is_test(match item {
                syn::TraitItem::Const(item) => &item.attrs,
                syn::TraitItem::Fn(item) => &item.attrs,
                syn::TraitItem::Type(item) => &item.attrs,
                syn::TraitItem::Macro(item) => &item.attrs,
                _ => &[],
            })
        });
        visit_mut::visit_item_trait_mut(self, item);
    }

    fn visit_item_foreign_mod_mut(&mut self, item: &mut syn::ItemForeignMod) {
        item.items.retain(|item| {
            !is_test(match item {
                syn::ForeignItem::Fn(item) => &item.attrs,
                syn::ForeignItem::Static(item) => &item.attrs,
                syn::ForeignItem::Type(item) => &item.attrs,
                syn::ForeignItem::Macro(item) => &item.attrs,
                _ => &[],
            })
        });
        visit_mut::visit_item_foreign_mod_mut(self, item);
    }

    fn visit_block_mut(&mut self, block: &mut syn::Block) {
        block.stmts.retain(|statement| {
            !is_test(match statement {
                syn::Stmt::Local(local) => &local.attrs,
                syn::Stmt::Item(item) => attributes_of(item),
                syn::Stmt::Expr(value, _) => attributes_of_expression(value),
                syn::Stmt::Macro(call) => &call.attrs,
            })
        });
        visit_mut::visit_block_mut(self, block);
    }

    fn visit_expr_match_mut(&mut self, value: &mut syn::ExprMatch) {
        value.arms.retain(|arm| !is_test(&arm.attrs));
        visit_mut::visit_expr_match_mut(self, value);
    }

    fn visit_expr_struct_mut(&mut self, value: &mut syn::ExprStruct) {
        retain(&mut value.fields, |field| !is_test(&field.attrs));
        visit_mut::visit_expr_struct_mut(self, value);
    }

    fn visit_fields_named_mut(&mut self, fields: &mut syn::FieldsNamed) {
        retain(&mut fields.named, |field| !is_test(&field.attrs));
        visit_mut::visit_fields_named_mut(self, fields);
    }

    fn visit_fields_unnamed_mut(&mut self, fields: &mut syn::FieldsUnnamed) {
        retain(&mut fields.unnamed, |field| !is_test(&field.attrs));
        visit_mut::visit_fields_unnamed_mut(self, fields);
    }

    fn visit_item_enum_mut(&mut self, item: &mut syn::ItemEnum) {
        retain(&mut item.variants, |variant| !is_test(&variant.attrs));
        visit_mut::visit_item_enum_mut(self, item);
    }

    fn visit_macro_mut(&mut self, call: &mut syn::Macro) {
        call.tokens = strip_tokens(call.tokens.clone());
    }
}

fn retain<T, P: Default>(list: &mut syn::punctuated::Punctuated<T, P>, keep: impl FnMut(&T) -> bool) {
    *list = std::mem::take(list).into_iter().filter(keep).collect();
}

/// Removes the tokens to which an attribute `#[cfg(test)]` among them applies: everything up to the next `;` or `{ ..
/// }`.
fn strip_tokens(tokens: TokenStream) -> TokenStream {
    let mut tokens = tokens.into_iter().peekable();
    let mut kept = Vec::new();
    while let Some(token) = tokens.next() {
        match (&token, tokens.peek()) {
            (TokenTree::Punct(mark), Some(TokenTree::Group(group))) if mark.as_char() == '#' && is_test_group(group) => {
                for skipped in tokens.by_ref() {
                    match skipped {
                        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => break,
                        TokenTree::Punct(mark) if mark.as_char() == ';' => break,
                        _ => {}
                    }
                }
            }
            (TokenTree::Group(group), _) => {
                let mut inner = proc_macro2::Group::new(group.delimiter(), strip_tokens(group.stream()));
                inner.set_span(group.span());
                kept.push(TokenTree::Group(inner));
            }
            _ => kept.push(token),
        }
    }
    kept.into_iter().collect()
}

/// Whether this is the `[..]` of an attribute for tests.
fn is_test_group(group: &proc_macro2::Group) -> bool {
    let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
    group.delimiter() == Delimiter::Bracket
        && match tokens.as_slice() {
            [TokenTree::Ident(word)] => word == "test",
            [TokenTree::Ident(word), TokenTree::Group(condition)] => word == "cfg" && needs_test(condition.stream()),
            _ => false,
        }
}

/// The attributes of an item.
pub fn attributes_of(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::ExternCrate(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::ForeignMod(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::TraitAlias(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Union(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The attributes of an expression that is a statement.
fn attributes_of_expression(value: &syn::Expr) -> &[syn::Attribute] {
    match value {
        syn::Expr::Assign(value) => &value.attrs,
        syn::Expr::Block(value) => &value.attrs,
        syn::Expr::Call(value) => &value.attrs,
        syn::Expr::ForLoop(value) => &value.attrs,
        syn::Expr::If(value) => &value.attrs,
        syn::Expr::Loop(value) => &value.attrs,
        syn::Expr::Macro(value) => &value.attrs,
        syn::Expr::Match(value) => &value.attrs,
        syn::Expr::MethodCall(value) => &value.attrs,
        syn::Expr::Return(value) => &value.attrs,
        syn::Expr::Unsafe(value) => &value.attrs,
        syn::Expr::While(value) => &value.attrs,
        _ => &[],
    }
}
