//! Which memory the published EdgeBank figures use.

use crate::error::{Error, Remedy, Result};
use crate::model::Memory;
use crate::protocol::Strategy;

/// Which memory DyGLib's published EdgeBank rows use: dataset, then random, historical and
/// inductive negatives.
pub const PUBLISHED_MEMORIES: [(&str, [Memory; 3]); 13] = {
    use Memory::{RepeatThreshold, Unlimited, WindowProportion, WindowRepeat};
    [
        ("wikipedia", [Unlimited, RepeatThreshold, RepeatThreshold]),
        ("reddit", [Unlimited, RepeatThreshold, RepeatThreshold]),
        ("mooc", [WindowProportion, WindowRepeat, RepeatThreshold]),
        ("lastfm", [WindowProportion, WindowRepeat, RepeatThreshold]),
        ("enron", [WindowProportion, WindowRepeat, RepeatThreshold]),
        ("socialevo", [RepeatThreshold, RepeatThreshold, RepeatThreshold]),
        ("uci", [Unlimited, WindowProportion, WindowRepeat]),
        ("flights", [Unlimited, RepeatThreshold, RepeatThreshold]),
        ("canparl", [WindowProportion, WindowProportion, RepeatThreshold]),
        ("uslegis", [WindowProportion, WindowProportion, WindowProportion]),
        ("untrade", [WindowRepeat, WindowRepeat, RepeatThreshold]),
        ("unvote", [WindowRepeat, WindowRepeat, WindowRepeat]),
        ("contacts", [WindowRepeat, WindowRepeat, RepeatThreshold]),
    ]
};

/// The memory behind a published number, for a dataset's name in any of its spellings (`Can.
/// Parl.`, `CanParl`).
pub fn published_memory(dataset: &str, strategy: Strategy) -> Result<Memory> {
    let plain: String =
        dataset.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    let plain = if plain == "contact" { "contacts".into() } else { plain };
    let place = match strategy {
        Strategy::Random => Some(0),
        Strategy::Historical => Some(1),
        Strategy::Inductive => Some(2),
        Strategy::Tgb => None,
    };
    let row = PUBLISHED_MEMORIES.iter().find(|row| row.0 == plain);
    match (row, place) {
        (Some(row), Some(place)) => Ok(row.1[place]),
        _ => Err(Error::refused(
            "memory",
            format!("published for dataset {dataset:?} with {strategy:?} negatives"),
            format!(
                "there is a published choice only for {}",
                PUBLISHED_MEMORIES.map(|row| row.0).join(", ")
            ),
            Remedy::NameDataset,
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dataset_is_found_in_any_spelling() {
        assert_eq!(
            published_memory("Can. Parl.", Strategy::Random).expect("known"),
            Memory::WindowProportion
        );
        assert_eq!(
            published_memory("UCI", Strategy::Inductive).expect("known"),
            Memory::WindowRepeat
        );
        assert!(published_memory("mine", Strategy::Random).is_err());
    }
}
