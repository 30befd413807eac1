//! Where two sets of settings differ.

use serde::Serialize;
use toml::{Table, Value};

/// The first setting in which what is found differs from what is asked for.
pub(crate) fn difference<T: Serialize>(asked: &T, found: &T) -> Option<String> {
    let table =
        |settings: &T| Value::Table(Table::try_from(settings).expect("settings are plain data"));
    first_difference("", Some(&table(asked)), Some(&table(found)))
}

fn first_difference(path: &str, asked: Option<&Value>, found: Option<&Value>) -> Option<String> {
    if let (Some(Value::Table(asked)), Some(Value::Table(found))) = (asked, found) {
        let mut keys: Vec<&String> = asked.keys().chain(found.keys()).collect();
        keys.sort();
        keys.dedup();
        return keys.into_iter().find_map(|key| {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            first_difference(&path, asked.get(key), found.get(key))
        });
    }
    let shown = |value: Option<&Value>| value.map_or("absent".to_string(), Value::to_string);
    (asked != found)
        .then(|| format!("{path} is {} there, {} is asked for", shown(found), shown(asked)))
}
