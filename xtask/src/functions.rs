//! Tests of the functions of all crates: none is long, and none takes several bare booleans.

use std::fs;

use syn::visit::{self, Visit};
use syn::{FnArg, ImplItemFn, ItemFn, Signature, TraitItemFn, Type, Visibility};

use crate::paths;
use crate::sources::{files, without_tests};

/// How many lines a function may have, its signature and closing brace included.
const LIMIT: usize = 60;

/// The lines of each function of a text as rustfmt writes it, with the function's first line.
fn sizes(text: &str) -> Vec<(usize, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut sizes = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let indent = &line[..line.len() - code.len()];
        let before = code.split_once("fn ").map(|(before, _)| before);
        let is_function = before.is_some_and(|it| it.split_whitespace().all(is_qualifier));
        if !is_function || code.ends_with('}') {
            continue;
        }
        let closing = format!("{indent}}}");
        let length = lines[start..]
            .iter()
            .position(|it| *it == closing || it.ends_with(';') && is_at(it, indent));
        sizes.extend(length.map(|it| (it + 1, code)));
    }
    sizes
}

fn is_qualifier(word: &str) -> bool {
    matches!(word, "async" | "const" | "pub") || word.starts_with("pub(")
}

/// Whether a line has exactly that indentation.
fn is_at(line: &str, indent: &str) -> bool {
    line.strip_prefix(indent).is_some_and(|it| !it.starts_with(' '))
}

/// The public functions that take more than one `bool`.
#[derive(Default)]
struct Booleans(Vec<String>);

impl Booleans {
    fn judge(&mut self, visibility: &Visibility, signature: &Signature) {
        let is_bool = |it: &&FnArg| match it {
            FnArg::Typed(it) => matches!(&*it.ty, Type::Path(it) if it.path.is_ident("bool")),
            FnArg::Receiver(_) => false,
        };
        let is_private = matches!(visibility, Visibility::Inherited);
        if !is_private && signature.inputs.iter().filter(is_bool).count() > 1 {
            self.0.push(signature.ident.to_string());
        }
    }
}

impl<'ast> Visit<'ast> for Booleans {
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.judge(&item.vis, &item.sig);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.judge(&item.vis, &item.sig);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        self.judge(&Visibility::Public(syn::token::Pub::default()), &item.sig);
        visit::visit_trait_item_fn(self, item);
    }
}

/// The public functions of a text that take more than one `bool`.
fn with_booleans(text: &str) -> Vec<String> {
    let mut found = Booleans::default();
    found.visit_file(&syn::parse_file(text).unwrap());
    found.0
}

#[test]
fn functions_are_short_and_take_no_several_booleans() {
    let mut n_checked = 0;
    for path in ["crates", "e2e", "xtask"].iter().flat_map(|it| files(it, ".rs").unwrap()) {
        let name = path.strip_prefix(paths::repo()).unwrap().display().to_string();
        if name.contains("test") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let code = without_tests(&text);
        for (n_lines, function) in sizes(&code) {
            n_checked += 1;
            assert!(n_lines <= LIMIT, "{name}: {function} has {n_lines} lines");
        }
        let found = with_booleans(&text);
        assert_eq!(
            found, [""; 0],
            "{name}: several parameters of type bool: use a struct or an enum"
        );
    }
    assert!(n_checked > 2000, "only {n_checked} functions were looked at");
}

#[test]
fn a_function_is_measured_from_its_signature_to_its_brace() {
    let text = "pub(crate) async fn a(\n    x: u8,\n) {\n    b()\n}\n\nfn b() {}\n\nimpl T {\n    \
                const fn c() {\n        d()\n    }\n}\n";
    let sizes: Vec<usize> = sizes(text).into_iter().map(|it| it.0).collect();
    assert_eq!(sizes, [5, 3]);
}

#[test]
fn two_booleans_are_seen_in_what_others_may_call() {
    let text = "pub fn a(x: bool, y: bool) {} fn b(x: bool, y: bool) {} impl T { pub(crate) fn c(&self, \
                x: bool, y: u8, z: bool) {} } trait U { fn d(x: bool, y: &str, z: bool); }";
    assert_eq!(with_booleans(text), ["a", "c", "d"]);
}
