//! Where two sets of settings differ.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// The first setting in which what is found differs from what is asked for.
pub(crate) fn difference<T: Serialize>(asked: &T, found: &T) -> Option<String> {
    let table =
        |settings: &T| Value::Table(Table::try_from(settings).expect("settings are plain data"));
    first_difference("", Some(&table(asked)), Some(&table(found)))
}

/// All settings in which several sets differ, each with its value in every set, as TOML.
pub fn differences<T: Serialize>(all: &[T]) -> Vec<(String, Vec<String>)> {
    let flat = |settings: &T| {
        let mut found = BTreeMap::new();
        let table = Table::try_from(settings).expect("settings are plain data");
        flatten("", &Value::Table(table), &mut found);
        found
    };
    let all: Vec<BTreeMap<String, String>> = all.iter().map(flat).collect();
    let keys: BTreeSet<&String> = all.iter().flat_map(BTreeMap::keys).collect();
    let values = |key: &String| {
        let value = |of: &BTreeMap<String, String>| of.get(key).cloned();
        all.iter().map(|of| value(of).unwrap_or_else(|| "-".to_string())).collect::<Vec<_>>()
    };
    keys.into_iter()
        .map(|key| (key.clone(), values(key)))
        .filter(|(_, values)| values.iter().any(|value| *value != values[0]))
        .collect()
}

fn flatten(path: &str, value: &Value, found: &mut BTreeMap<String, String>) {
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                flatten(&path, value, found);
            }
        }
        other => {
            found.insert(path.to_string(), other.to_string());
        }
    }
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
