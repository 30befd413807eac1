//! Words of the field that explain themselves when a reader hovers over them.

use super::chart::escape;
use std::fmt::Write;

/// Words, as a reader meets them, and what they mean.
const WORDS: [(&str, &str); 26] = [
    (
        "mrr",
        "Mean reciprocal rank: the mean of 1/rank of what happened among all candidates. 1 is best; 0.5 means second place on average.",
    ),
    ("hits@1", "Share of questions whose true destination is ranked first."),
    ("hits@10", "Share of questions whose true destination is among the first ten."),
    (
        "ndcg@10",
        "As Hits@10, but a hit counts the more the higher it stands: 1 for the first place, 0.29 for the tenth.",
    ),
    (
        "ap",
        "Average precision: the mean precision over all true pairs, from the highest score down. 1 is best; 0.5 is guessing where each event has one negative.",
    ),
    (
        "auc",
        "Area under the ROC curve: how likely a true pair scores above a negative. 0.5 is guessing.",
    ),
    ("roc-auc", "How likely a true pair scores above a negative. 0.5 is guessing."),
    (
        "ece",
        "Expected calibration error: how far probabilities are from what came true, on average. 0 is best.",
    ),
    (
        "brier",
        "Mean squared distance between the probability said and what came, 1 or 0. 0 is best.",
    ),
    (
        "probability",
        "If the source has an event at that time, how likely it is with this destination and no other; calibrated on the validation part.",
    ),
    ("transductive", "All events of the part are asked."),
    (
        "inductive",
        "Of questions: events with a node that training does not know. Of negatives: pairs that met for the first time after training.",
    ),
    ("historical", "Negatives that have met before, but not now: the hard ones."),
    ("negatives", "Candidates that did not happen."),
    ("negative", "A candidate that did not happen."),
    ("candidates", "Destinations that are asked about, the true one and the negatives."),
    ("step", "Consecutive events that are scored together and then revealed."),
    ("steps", "A step is consecutive events that are scored together and then revealed."),
    (
        "seed",
        "The number that decides what is left to chance in training. Other seeds give other weights.",
    ),
    (
        "seeds",
        "Numbers that decide what is left to chance in training. Other seeds give other weights.",
    ),
    ("epoch", "One pass over the training events."),
    ("epochs", "Passes over the training events."),
    (
        "logit",
        "A score before it is squeezed into a probability: 0 is even odds, higher is likelier.",
    ),
    (
        "logits",
        "Scores before they are squeezed into probabilities: 0 is even odds, higher is likelier.",
    ),
    ("protocol", "How a stream is split, stepped and asked: stream, dyglib or tgb."),
    (
        "counting",
        "Models without weights, which count who met whom: edgebank, poptrack, heuristics.",
    ),
];

/// Text as markup, in which the first of each word of the field is explained.
pub(super) fn explained(text: &str) -> String {
    let (mut markup, mut said) = (String::new(), Vec::new());
    let part_of_word = |letter: char| letter.is_alphanumeric() || letter == '@' || letter == '-';
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|letter| !part_of_word(letter)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let lower = word.to_lowercase();
        match WORDS.iter().find(|(known, _)| *known == lower) {
            Some((known, means)) if !said.contains(known) => {
                said.push(*known);
                let (means, word) = (escape(means), escape(word));
                let _ = write!(markup, "<abbr title=\"{means}\">{word}</abbr>");
            }
            _ => markup.push_str(&escape(word)),
        }
        let next = after.find(part_of_word).unwrap_or(after.len());
        let (between, later) = after.split_at(next);
        markup.push_str(&escape(between));
        rest = later;
    }
    markup
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_explained_once_and_everything_is_escaped() {
        let markup = explained("MRR & <b>, mrr again; hits@10!");
        assert_eq!(markup.matches("<abbr").count(), 2);
        assert!(markup.starts_with("<abbr title=\"Mean reciprocal rank"), "{markup}");
        assert!(markup.contains("</abbr> &amp; &lt;b&gt;, mrr again; <abbr"), "{markup}");
        assert_eq!(explained("a < b"), "a &lt; b");
        assert_eq!(explained("größer, app"), "größer, app");
    }

    #[test]
    fn no_word_is_explained_twice() {
        let mut words: Vec<&str> = WORDS.iter().map(|(word, _)| *word).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), WORDS.len());
        assert!(WORDS.iter().all(|(word, _)| *word == word.to_lowercase()));
    }
}
