//! Tests that the modules of each crate have no import cycles, nor the folders at any level.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;

use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemUse, UseTree, Visibility};

use crate::paths;
use crate::sources::{files, without_tests};
use crate::tidy::impure_word;

/// A module of a crate: its path from the crate's root.
type Module = Vec<String>;

/// The paths in a file, in full.
#[derive(Default)]
struct Paths(Vec<Vec<String>>);

impl<'ast> Visit<'ast> for Paths {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_of_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        expand(&item.tree, Vec::new(), &mut self.0);
    }

    /// `pub(super)` is a visibility and imports nothing.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.push(path.segments.iter().map(|it| it.ident.to_string()).collect());
        visit::visit_path(self, path);
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Static(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Trait(it) => &it.attrs,
        Item::Type(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        Item::ExternCrate(_)
        | Item::ForeignMod(_)
        | Item::Macro(_)
        | Item::TraitAlias(_)
        | Item::Union(_)
        | Item::Verbatim(_)
        | _ => &[],
    }
}

fn is_of_tests(attributes: &[Attribute]) -> bool {
    let is_test = |it: &Attribute| {
        let tokens = it.meta.require_list().map(|it| it.tokens.to_string()).unwrap_or_default();
        it.path().is_ident("cfg")
            && tokens.split(|it: char| !it.is_alphanumeric()).any(|it| it == "test")
    };
    attributes.iter().any(is_test)
}

/// Collects the paths of a `use`, in full.
fn expand(tree: &UseTree, before: Vec<String>, paths: &mut Vec<Vec<String>>) {
    let with = |name: &syn::Ident| [before.clone(), vec![name.to_string()]].concat();
    match tree {
        UseTree::Path(it) => expand(&it.tree, with(&it.ident), paths),
        UseTree::Name(it) => paths.push(with(&it.ident)),
        UseTree::Rename(it) => paths.push(with(&it.ident)),
        UseTree::Glob(_) => paths.push(before),
        UseTree::Group(it) => it.items.iter().for_each(|it| expand(it, before.clone(), paths)),
    }
}

/// Resolves a path in `module` to the module that contains its item; `None` for paths of other
/// crates.
fn resolve(all: &BTreeSet<Module>, module: &Module, path: &[String]) -> Option<Module> {
    let mut names = path;
    let mut at = match path.first()?.as_str() {
        "crate" => Vec::new(),
        _ => module.clone(),
    };
    let mut is_relative = false;
    while let Some((first, rest)) = names.split_first()
        && ["crate", "self", "super"].contains(&first.as_str())
    {
        if first == "super" {
            at.pop();
        }
        (names, is_relative) = (rest, true);
    }
    let start = at.clone();
    for name in names {
        at.push(name.clone());
        if !all.contains(&at) {
            at.pop();
            break;
        }
    }
    // Without such a prefix only the name of a child module leads anywhere.
    (is_relative || at != start).then_some(at).filter(|it| it != module)
}

/// Returns module → the modules whose items it uses, for a crate without its tests.
fn edges(name: &str) -> BTreeMap<Module, BTreeSet<Module>> {
    let source = paths::repo().join("crates").join(name).join("src");
    let mut texts = BTreeMap::new();
    for file in files(&format!("crates/{name}/src"), ".rs").unwrap() {
        let inside = file.strip_prefix(&source).unwrap().with_extension("");
        let mut module: Module =
            inside.iter().map(|it| it.to_string_lossy().into_owned()).collect();
        if module.last().is_some_and(|it| it == "mod") {
            module.pop();
        }
        if module == ["main"] || module.iter().any(|it| it.contains("test")) {
            continue;
        }
        let module = if module == ["lib"] { Vec::new() } else { module };
        texts.insert(module, fs::read_to_string(file).unwrap());
    }
    let all: BTreeSet<Module> = texts.keys().cloned().collect();
    let of_module = |(module, text): (Module, String)| {
        let mut paths = Paths::default();
        paths.visit_file(&syn::parse_file(&text).unwrap());
        let named = paths.0.iter().filter_map(|it| resolve(&all, &module, it)).collect();
        (module, named)
    };
    texts.into_iter().map(of_module).collect()
}

/// Returns the modules in import cycles or between two cycles: those left after repeatedly removing
/// modules that import nothing or that nothing imports.
fn in_circles(edges: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<Module> {
    let mut left: BTreeSet<Module> = edges.keys().cloned().collect();
    loop {
        let imports = |it: &Module| edges[it].iter().any(|it| left.contains(it));
        let is_imported = |it: &Module| left.iter().any(|by| edges[by].contains(it));
        let kept: BTreeSet<Module> =
            left.iter().filter(|it| imports(it) && is_imported(it)).cloned().collect();
        if kept.len() == left.len() {
            return kept;
        }
        left = kept;
    }
}

/// The names of all crates.
fn crates() -> BTreeSet<String> {
    let entries = fs::read_dir(paths::repo().join("crates")).unwrap();
    entries.map(|it| it.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn no_modules_import_each_other_in_a_circle() {
    let mut found = Vec::new();
    for name in crates() {
        let modules: Vec<String> =
            in_circles(&edges(&name)).iter().map(|it| it.join("::")).collect();
        if !modules.is_empty() {
            found.push(format!("{name}: {}", modules.join(", ")));
        }
    }
    assert!(found.is_empty(), "in circles:\n{}", found.join("\n"));
}

/// The children of a folder: child → the children whose items it uses → one such use. A file and the
/// folder of its name are one child.
type Children = BTreeMap<String, BTreeMap<String, String>>;

/// Returns the children of the folder of the module `level`, without that module's own file.
fn children(level: &[String], edges: &BTreeMap<Module, BTreeSet<Module>>) -> Children {
    let child = |it: &Module| it.strip_prefix(level)?.first().cloned();
    let mut children = Children::new();
    for (module, used) in edges {
        let Some(from) = child(module) else { continue };
        let uses = children.entry(from.clone()).or_default();
        for (to, other) in used.iter().filter_map(|it| Some((child(it)?, it))) {
            if to != from {
                let one = || format!("{} uses {}", module.join("::"), other.join("::"));
                uses.entry(to).or_insert_with(one);
            }
        }
    }
    children
}

/// Returns the shortest circle that begins and ends with a child; `None` without any.
fn circle<'a>(start: &'a str, children: &'a Children) -> Option<Vec<&'a str>> {
    let mut before: BTreeMap<&str, &str> = BTreeMap::new();
    let mut next = VecDeque::from([start]);
    while let Some(at) = next.pop_front() {
        for to in children[at].keys() {
            if let Entry::Vacant(first) = before.entry(to) {
                first.insert(at);
                next.push_back(to);
            }
        }
        if before.contains_key(start) {
            let mut path = vec![start, before[start]];
            while path.last() != Some(&start) {
                path.push(before[path[path.len() - 1]]);
            }
            path.reverse();
            return Some(path);
        }
    }
    None
}

/// Returns the circles at every level of a crate, each with one use of each child by the one before it.
fn circles_of_folders(edges: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<String> {
    let levels: BTreeSet<&[String]> =
        edges.keys().flat_map(|it| (0..it.len()).map(|n| &it[..n])).collect();
    let mut found = Vec::new();
    for level in levels {
        let children = children(level, edges);
        let mut reported: BTreeSet<&str> = BTreeSet::new();
        for child in children.keys() {
            if reported.contains(child.as_str()) {
                continue;
            }
            let Some(circle) = circle(child, &children) else { continue };
            reported.extend(&circle);
            let uses = circle.windows(2).map(|it| format!("\n    {}", children[it[0]][it[1]]));
            let place = if level.is_empty() { "its root".to_owned() } else { level.join("::") };
            found.push(format!("{place}: {}{}", circle.join(" -> "), uses.collect::<String>()));
        }
    }
    found
}

#[test]
fn no_folders_use_each_other_in_a_circle() {
    let mut found = Vec::new();
    for name in crates() {
        let circles = circles_of_folders(&edges(&name)).into_iter();
        found.extend(circles.map(|it| format!("{name}, {it}")));
    }
    let help = "Of a folder no two children use each other, on whatever way. Move what is used to where \
                both may use it, or to the one that alone needs it";
    assert!(found.is_empty(), "{help}:\n{}", found.join("\n"));
}

/// The crates whose `decide` modules must reach nothing that has a client, a clock or a runtime.
const DECIDING: [&str; 4] =
    ["ansibleee-operator", "baremetal", "dataplane-operator", "nova-operator"];

/// Returns the modules that modules of a name import, on whatever way, themselves included.
fn reached_from(name: &str, edges: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<Module> {
    let has_name = |it: &&Module| it.last().is_some_and(|it| it == name);
    let mut next: Vec<Module> = edges.keys().filter(has_name).cloned().collect();
    let mut reached = BTreeSet::new();
    while let Some(module) = next.pop() {
        if reached.insert(module.clone()) {
            next.extend(edges[&module].iter().cloned());
        }
    }
    reached
}

/// Returns the text of a module's file.
fn text_of(name: &str, module: &Module) -> String {
    let source = paths::repo().join("crates").join(name).join("src");
    let path = if module.is_empty() { source.join("lib") } else { source.join(module.join("/")) };
    fs::read_to_string(path.with_extension("rs")).unwrap()
}

#[test]
fn whatever_decide_reaches_is_pure() {
    let mut found = Vec::new();
    for name in DECIDING {
        let reached = reached_from("decide", &edges(name));
        assert!(reached.len() > 3, "{name}: only {} modules are reached", reached.len());
        for module in reached {
            let word = impure_word(&without_tests(&text_of(name, &module)));
            found.extend(word.map(|it| format!("{name} {}: {it}", module.join("::"))));
        }
    }
    assert!(found.is_empty(), "reached from decide and not pure:\n{}", found.join("\n"));
}

#[test]
fn no_module_that_observe_reaches_gives_orders() {
    let edges = edges("nova-operator");
    let orders: Module = ["nova", "orders"].map(str::to_owned).to_vec();
    assert!(edges.contains_key(&orders), "where orders are carried out is another module now");
    let reached = reached_from("observe", &edges);
    assert!(reached.len() > 20, "only {} modules are reached", reached.len());
    let giving: Vec<String> =
        reached.iter().filter(|it| edges[*it].contains(&orders)).map(|it| it.join("::")).collect();
    assert!(giving.is_empty(), "they observe and reach nova::orders: {}", giving.join(", "));
}

#[test]
fn imports_are_followed_by_name_through_groups_and_from_parents() {
    let module = |it: &str| it.split("::").filter(|it| !it.is_empty()).map(str::to_owned).collect();
    let all: BTreeSet<Module> = ["", "a", "a::b", "c"].map(module).into();
    let of = |at: &str, text: &str| {
        let mut paths = Paths::default();
        paths.visit_file(&syn::parse_file(text).unwrap());
        let found = paths.0.iter().filter_map(|it| resolve(&all, &module(at), it));
        found.map(|it| it.join("::")).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    };
    assert_eq!(of("c", "use crate::a::{b::X, Y as Z}; use std::fmt;"), ["a", "a::b"]);
    assert_eq!(of("a::b", "fn f() -> super::T { crate::c::g() }"), ["a", "c"]);
    assert_eq!(of("a", "mod b; pub use b::X; use serde::Y;"), ["a::b"]);
    assert_eq!(of("c", "#[cfg(test)]\nmod tests { use crate::a::X; }"), [""; 0]);
    assert_eq!(of("a", "use crate::Root;"), [""]);
    let edges = |it: &[(&str, &str)]| {
        let all: BTreeSet<&str> = it.iter().flat_map(|it| [it.0, it.1]).collect();
        let to = |from: &str| it.iter().filter(|it| it.0 == from).map(|it| module(it.1)).collect();
        all.into_iter().map(|it| (module(it), to(it))).collect()
    };
    assert_eq!(in_circles(&edges(&[("a", "a::b"), ("c", "a")])), BTreeSet::new());
    let circle = [("a", "a::b"), ("a::b", "c"), ("c", "a"), ("x", "a"), ("a", "y")];
    assert_eq!(in_circles(&edges(&circle)), ["a", "a::b", "c"].map(module).into());
}

#[test]
fn circles_of_folders_are_reported_with_their_level_and_the_uses() {
    let found = |uses: &[(&str, &str)]| {
        let module = |it: &str| -> Module { it.split("::").map(str::to_owned).collect() };
        let mut edges: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
        for (from, to) in uses {
            edges.entry(module(to)).or_default();
            edges.entry(module(from)).or_default().insert(module(to));
        }
        circles_of_folders(&edges)
    };
    let none = [("a", "a::b"), ("a::b", "a"), ("a::b", "c::d"), ("c", "x")];
    assert_eq!(found(&none), [""; 0]);
    // No two files use each other.
    let root = [("a::b", "c::d"), ("c::e", "a::f"), ("a::b", "a::f"), ("c", "x")];
    let expected = "its root: a -> c -> a\n    a::b uses c::d\n    c::e uses a::f";
    assert_eq!(found(&root), [expected]);
    let inside = [("p::a", "p::b::x"), ("p::b", "p::c"), ("p::c::y", "p::a"), ("p", "p::a")];
    let expected = "p: a -> b -> c -> a\n    p::a uses p::b::x\n    p::b uses p::c\n    \
                    p::c::y uses p::a";
    assert_eq!(found(&inside), [expected]);
}
