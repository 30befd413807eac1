//! Every setting with its default, its unit and a sentence.
//!
//! The sentences are the comments of the fields themselves: they are read from the sources that
//! define the settings, which are part of the program. So nothing is said twice, and a setting
//! without a comment fails a test.

use super::TrainConfig;
use crate::error::{Error, Result};
use crate::model::registry;
use crate::protocol::Protocol;
use serde::Serialize;
use toml::{Table, Value};

/// A setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettingInfo {
    /// Its path, as `--set` and files of settings write it.
    pub key: String,
    /// Its default as TOML; nothing where it is absent, or off, by default.
    pub default: Option<String>,
    /// What it counts, where that is not plain from the sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<&'static str>,
    /// What it is.
    pub about: String,
}

/// A struct of settings and the source that has it.
type Source = (&'static str, &'static str);

const TRAIN: Source = ("TrainConfig", include_str!("train.rs"));
const DATA: Source = ("DataConfig", include_str!("run.rs"));
const PAIR: Source = ("PairConfig", include_str!("../model/features/mod.rs"));
const LSTEP: Source = ("LstepConfig", include_str!("../model/lstep/config.rs"));

const PROTOCOLS: [(&str, Source); 3] = [
    ("stream", ("StreamProtocol", include_str!("../protocol/stream.rs"))),
    ("dyglib", ("DyglibProtocol", include_str!("../protocol/dyglib/protocol.rs"))),
    ("tgb", ("TgbProtocol", include_str!("../protocol/tgb/protocol.rs"))),
];

const MODELS: [(&str, Source); 19] = [
    ("lstep", LSTEP),
    ("lstep-pair", LSTEP),
    ("graphmixer", ("GraphMixerConfig", include_str!("../model/graphmixer.rs"))),
    ("tgn", ("TgnConfig", include_str!("../model/tgn/config.rs"))),
    ("jodie", ("JodieConfig", include_str!("../model/jodie/config.rs"))),
    ("dyrep", ("DyRepConfig", include_str!("../model/dyrep/config.rs"))),
    ("nat", ("NatConfig", include_str!("../model/nat/config.rs"))),
    ("pint", ("PintConfig", include_str!("../model/pint/config.rs"))),
    ("tncn", ("TncnConfig", include_str!("../model/tncn/config.rs"))),
    ("ctan", ("CtanConfig", include_str!("../model/ctan/config.rs"))),
    ("tgat", ("TgatConfig", include_str!("../model/tgat/config.rs"))),
    ("dygformer", ("DyGFormerConfig", include_str!("../model/dygformer/config.rs"))),
    ("cawn", ("CawnConfig", include_str!("../model/cawn/config.rs"))),
    ("tcl", ("TclConfig", include_str!("../model/tcl/config.rs"))),
    ("freedyg", ("FreeDyGConfig", include_str!("../model/freedyg/config.rs"))),
    ("tpnet", ("TpnetConfig", include_str!("../model/tpnet/config.rs"))),
    ("edgebank", ("EdgeBankConfig", include_str!("../model/edgebank/kind.rs"))),
    ("poptrack", ("PopTrackConfig", include_str!("../model/popularity/kind.rs"))),
    ("heuristics", ("HeuristicConfig", include_str!("../model/heuristic/kind.rs"))),
];

/// The settings of a run of any model: `data.*`, `train.*`, and those of each protocol.
pub fn common_settings() -> Vec<SettingInfo> {
    let mut all = of_struct("data", DATA, &Table::new());
    let train = Table::try_from(TrainConfig::default()).expect("settings are plain data");
    all.extend(of_struct("train", TRAIN, &train));
    for (name, source) in PROTOCOLS {
        let defaults = Protocol::named(name, "", None).ok();
        let defaults = defaults.and_then(|protocol| Table::try_from(protocol).ok());
        let mut settings = of_struct("protocol", source, &defaults.unwrap_or_default());
        for setting in &mut settings {
            setting.about = format!("({name}) {}", setting.about);
        }
        all.extend(settings);
    }
    all
}

/// The settings of a model: `model.*`.
///
/// # Errors
///
/// If there is no model of that name.
pub fn model_settings(name: &str) -> Result<Vec<SettingInfo>> {
    let kind = registry::find(name).ok_or_else(|| {
        Error::unknown("model", name, registry::kinds().iter().map(|kind| kind.name()))
    })?;
    let defaults = kind.defaults().table();
    let Some((_, source)) = MODELS.iter().find(|(known, _)| *known == name) else {
        // A model of another crate: its keys and defaults are known, its comments are not.
        let key = |(key, value): (String, Value)| SettingInfo {
            key: format!("model.{key}"),
            default: Some(value.to_string()),
            unit: None,
            about: String::new(),
        };
        return Ok(defaults.into_iter().map(key).collect());
    };
    let mut all = of_struct("model", *source, &defaults);
    if let Some(Value::Table(pair)) = defaults.get("pair") {
        all.retain(|setting| setting.key != "model.pair");
        all.extend(of_struct("model.pair", PAIR, pair));
    }
    Ok(all)
}

/// The fields of a struct with their comments, in order.
fn of_struct(path: &str, (name, source): Source, defaults: &Table) -> Vec<SettingInfo> {
    let opening = format!("pub struct {name} {{");
    let lines = source.lines().skip_while(|line| !line.starts_with(&opening)).skip(1);
    let (mut all, mut comment) = (Vec::new(), String::new());
    for line in lines.map(str::trim).take_while(|line| *line != "}") {
        if let Some(text) = line.strip_prefix("///") {
            if !comment.is_empty() {
                comment.push(' ');
            }
            comment.push_str(text.trim());
        } else if let Some((field, _)) = line.strip_prefix("pub ").and_then(|it| it.split_once(':'))
        {
            all.push(SettingInfo {
                key: format!("{path}.{field}"),
                default: defaults.get(field).map(shown),
                unit: unit(field),
                about: std::mem::take(&mut comment),
            });
        }
    }
    all
}

fn shown(value: &Value) -> String {
    match value {
        Value::Table(table) => {
            let entries = table.iter().map(|(key, value)| format!("{key} = {}", shown(value)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

fn unit(field: &str) -> Option<&'static str> {
    Some(match field {
        "epochs" | "patience" => "epochs",
        "half_life" => "batches",
        "held_out" | "historical" | "novel" | "ema" | "dropout" | "decay" => "share",
        "split" => "quantiles of time",
        "step" | "recent" | "longest" | "history" | "first_hop" | "second_hop" => "events",
        "snapshots" => "steps",
        "per_event" => "negatives",
        "questions" => "events",
        _ if field.ends_with("width") || field == "channels" => "numbers",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_setting_lacks_a_sentence() {
        let mut all = common_settings();
        assert!(all.len() > 25, "{}", all.len());
        for kind in registry::MODELS {
            let settings = model_settings(kind.name()).expect("known");
            // Every key that files hold is there.
            for (key, value) in kind.defaults().table() {
                let path = format!("model.{key}");
                let nested = matches!(value, Value::Table(_));
                let found = settings.iter().any(|setting| {
                    setting.key == path || nested && setting.key.starts_with(&format!("{path}."))
                });
                assert!(found, "{} {path}", kind.name());
            }
            all.extend(settings);
        }
        for setting in all {
            assert!(setting.about.len() > 8, "{setting:?}");
        }
    }

    #[test]
    fn defaults_are_those_of_the_code() {
        let find = |all: Vec<SettingInfo>, key: &str| {
            all.into_iter().find(|setting| setting.key == key).unwrap_or_else(|| panic!("{key}"))
        };
        let epochs = find(common_settings(), "train.epochs");
        assert_eq!((epochs.default.as_deref(), epochs.unit), (Some("200"), Some("epochs")));
        let history = find(model_settings("lstep-pair").expect("known"), "model.pair.history");
        assert_eq!(history.default.as_deref(), Some("64"));
        assert_eq!(find(common_settings(), "train.clip").default, None);
        assert!(model_settings("nobody").is_err());
    }
}
