//! Generates objects that a structural schema accepts: random ones, and ones at the limits of each
//! field.
//!
//! CEL rules are not evaluated: an object must be readable with the schema's other checks alone.

use proptest::prelude::*;
use proptest::strategy::{Just, ValueTree as _};
use proptest::string::string_regex;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

/// Probability that an optional field is present.
const PRESENT: f64 = 0.2;
/// Times that the API server's format `date-time` accepts, and whether the pattern that our CRDs
/// add accepts them too.
const TIMES: [(&str, bool); 7] = [
    ("2026-01-02T03:04:05Z", true),
    ("0000-01-01T00:00:00.123456789+23:59", true),
    ("8999-12-31T23:59:59-23:59", true),
    ("2026-01-02t03:04:05.123456789123456z", false),
    ("9999-12-31T23:59:59-23:59", false),
    ("2026-01-02T03:04:05+99:99", false),
    ("2026-01-02T03:04:05x9Z", false),
];

/// Generates any JSON that etcd may hold where no schema limits it, including very deep JSON.
pub(super) fn any_json() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        prop::num::f64::NORMAL.prop_map(Value::from),
        Just(json!("")),
        any::<String>().prop_map(Value::from),
        prop::sample::select(TIMES.to_vec()).prop_map(|it| json!(it.0)),
    ];
    let inner = leaf.prop_recursive(4, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(".{0,8}", inner, 0..3).prop_map(|it| json!(it)),
        ]
    });
    let levels = prop_oneof![4 => Just(0_usize), 1 => 0..200_usize];
    (inner, levels, any::<bool>())
        .prop_map(|(inner, levels, is_list)| nested(inner, levels, is_list))
        .boxed()
}

fn nested(inner: Value, levels: usize, is_list: bool) -> Value {
    let wrap = |inner| if is_list { json!([inner]) } else { json!({ "a": inner }) };
    (0..levels).fold(inner, |inner, _| wrap(inner))
}

/// Generates random values that the schema accepts.
pub(super) fn accepted(schema: &Value) -> BoxedStrategy<Value> {
    let plain = match schema["type"].as_str() {
        _ if schema["enum"].is_array() => prop::sample::select(words(schema)).boxed(),
        _ if schema["x-kubernetes-int-or-string"] == true => {
            prop_oneof![integers(schema), texts(schema)].boxed()
        }
        Some("object") => objects(schema),
        Some("array") => lists(schema),
        Some("string") => texts(schema),
        Some("integer") => integers(schema),
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        _ => any_json(),
    };
    if schema["nullable"] == true {
        prop_oneof![9 => plain, 1 => Just(Value::Null)].boxed()
    } else {
        plain
    }
}

/// Returns values at the limits of what the schema accepts; objects are minimal except for one
/// field.
pub(super) fn extremes(schema: &Value) -> Vec<Value> {
    let mut all = match schema["type"].as_str() {
        _ if schema["enum"].is_array() => words(schema),
        _ if schema["x-kubernetes-int-or-string"] == true => {
            [bounds(schema).map(Value::from).to_vec(), samples(schema)].concat()
        }
        Some("object") => extreme_objects(schema),
        Some("array") => {
            let one = |it| json!([it]);
            [vec![json!([])], extremes(&schema["items"]).into_iter().map(one).collect()].concat()
        }
        Some("string") => samples(schema),
        Some("integer") => bounds(schema).map(Value::from).to_vec(),
        Some("boolean") => vec![json!(true), json!(false)],
        _ => free(),
    };
    all.retain(|it| {
        let items = it.as_array().map_or(u64::MAX, |it| it.len() as u64);
        items >= schema["minItems"].as_u64().unwrap_or(0)
    });
    if schema["nullable"] == true {
        all.push(Value::Null);
    }
    all
}

/// Returns the minimal value that the schema accepts, with the defaults that the API server adds.
pub(super) fn minimal(schema: &Value) -> Value {
    let given = &schema["default"];
    match schema["type"].as_str() {
        Some("object") => {
            let mut object = given.as_object().cloned().unwrap_or_default();
            for name in names(schema).filter(|it| is_there(schema, it)) {
                let value = || minimal(&schema["properties"][name]);
                object.entry(name.clone()).or_insert_with(value);
            }
            Value::Object(object)
        }
        _ if !given.is_null() => given.clone(),
        Some("array") => {
            let least = schema["minItems"].as_u64().unwrap_or(0);
            (0..least).map(|_| minimal(&schema["items"])).collect()
        }
        _ => extremes(schema).swap_remove(0),
    }
}

fn names(schema: &Value) -> impl Iterator<Item = &String> {
    // What the API server itself validates is not part of the schema.
    let is_ours = |it: &&String| !["apiVersion", "kind", "metadata"].contains(&it.as_str());
    schema["properties"].as_object().into_iter().flat_map(Map::keys).filter(is_ours)
}

/// Returns whether every object has the field: it is required, or the API server defaults it.
fn is_there(schema: &Value, name: &str) -> bool {
    let mut required = schema["required"].as_array().into_iter().flatten();
    required.any(|it| it == name) || !schema["properties"][name]["default"].is_null()
}

fn words(schema: &Value) -> Vec<Value> {
    schema["enum"].as_array().cloned().unwrap_or_default()
}

/// Generates the content of a map without a schema.
fn free() -> Vec<Value> {
    let numbers = json!([i64::MIN, u64::MAX, 1e300, -1e-300, 0.5, null, "", true]);
    vec![json!({}), json!({ "": numbers }), json!({ "a": nested(json!(1), 200, true) })]
}

fn extreme_objects(schema: &Value) -> Vec<Value> {
    let least = minimal(schema);
    if schema["additionalProperties"].is_object() {
        let one = |it: Value| json!({ "": it, "a": it });
        let with = extremes(&schema["additionalProperties"]).into_iter().map(one);
        return [least].into_iter().chain(with).collect();
    }
    if schema["properties"].is_null() {
        return free();
    }
    let mut all = vec![least.clone()];
    for name in names(schema) {
        for value in extremes(&schema["properties"][name]) {
            let mut object = least.clone();
            object[name] = value;
            all.push(object);
        }
    }
    all
}

fn objects(schema: &Value) -> BoxedStrategy<Value> {
    if schema["additionalProperties"].is_object() {
        let values = accepted(&schema["additionalProperties"]);
        return prop::collection::btree_map(".{0,8}", values, 0..3)
            .prop_map(|it| json!(it))
            .boxed();
    }
    if schema["properties"].is_null() {
        return prop::collection::btree_map(".{0,8}", any_json(), 0..3)
            .prop_map(|it| json!(it))
            .boxed();
    }
    let field = |name: &String| {
        let property = &schema["properties"][name];
        let filled_in = is_there(schema, name).then(|| minimal(property));
        let must_be_given = filled_in.is_some() && property["default"].is_null();
        let value = if must_be_given {
            accepted(property).prop_map(Some).boxed()
        } else {
            prop::option::weighted(PRESENT, accepted(property)).boxed()
        };
        let name = name.clone();
        let entry =
            move |it: Option<Value>| Some((name.clone(), it.or_else(|| filled_in.clone())?));
        value.prop_map(entry).boxed()
    };
    let fields: Vec<_> = names(schema).map(field).collect();
    fields.prop_map(|it| it.into_iter().flatten().collect()).boxed()
}

fn lists(schema: &Value) -> BoxedStrategy<Value> {
    let least = size(schema, "minItems", 0);
    let most = size(schema, "maxItems", usize::MAX).min(least + 2);
    prop::collection::vec(accepted(&schema["items"]), least..=most).prop_map(Value::from).boxed()
}

fn size(schema: &Value, key: &str, absent: usize) -> usize {
    schema[key].as_u64().and_then(|it| usize::try_from(it).ok()).unwrap_or(absent)
}

/// Returns the minimum and the maximum integer; the API server accepts at most 64 bits.
fn bounds(schema: &Value) -> [i64; 2] {
    let bound = |key: &str, absent| {
        // schemars and the API server write bounds as floats.
        let number = &schema[key];
        #[expect(clippy::cast_possible_truncation, reason = "a cast from a float saturates")]
        number.as_i64().or_else(|| Some(number.as_f64()? as i64)).unwrap_or(absent)
    };
    [bound("minimum", i64::MIN), bound("maximum", i64::MAX)]
}

fn integers(schema: &Value) -> BoxedStrategy<Value> {
    let [least, most] = bounds(schema);
    prop_oneof![2 => least..=most, 1 => prop::sample::select(vec![least, most])]
        .prop_map(Value::from)
        .boxed()
}

fn texts(schema: &Value) -> BoxedStrategy<Value> {
    if schema["format"] == "date-time" {
        return prop::sample::select(samples(schema)).boxed();
    }
    let (least, most) = (size(schema, "minLength", 0), size(schema, "maxLength", usize::MAX));
    let fits = move |it: &String| (least..=most).contains(&it.chars().count());
    let text = match schema["pattern"].as_str() {
        Some(pattern) => string_regex(pattern.trim_start_matches('^').trim_end_matches('$'))
            .expect("a pattern that proptest can follow")
            .boxed(),
        None => prop_oneof![Just(String::new()), any::<String>(), "[ -~]{0,40}"].boxed(),
    };
    text.prop_filter_map("length", move |it| fits(&it).then(|| json!(it))).boxed()
}

/// Generates strings; without constraints, very long and unusual ones are among them.
fn samples(schema: &Value) -> Vec<Value> {
    if schema["format"] == "date-time" {
        let times = TIMES.iter().filter(|it| it.1 || schema["pattern"].is_null());
        return times.map(|it| json!(it.0)).collect();
    }
    if schema["pattern"].is_string() || schema["minLength"].is_u64() {
        let mut runner = TestRunner::deterministic();
        let texts = texts(schema);
        let text = |_| texts.new_tree(&mut runner).expect("a text that fits").current();
        return (0..2).map(text).collect();
    }
    let long = "ä".repeat(size(schema, "maxLength", 300).min(300));
    vec![json!(""), json!(long), json!("null\0\u{feff}\u{202e}")]
}
