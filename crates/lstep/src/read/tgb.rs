//! How TGB turns the columns of its edge lists into features.
//!
//! Node numbering is `Names::tgb_number`; the negatives of TGB's files are given in these numbers.

use super::columns::Encoding;
use super::number::{Refusal, narrow, wide};

/// Words that a comment is taken to have at most.
const MOST_WORDS: f64 = 5000.0;

/// Characters of a call sign or type code.
const CODE: usize = 8;

/// Appends the features that a field stands for.
pub(super) fn encode(
    encoding: Encoding,
    text: &str,
    features: &mut Vec<f32>,
) -> Result<(), Refusal> {
    match encoding {
        Encoding::Plain => features.push(narrow(wide(text)?)?),
        Encoding::LogWeight => {
            let weight = wide(text)?;
            if weight < 0.0 {
                return Err(Refusal::new(
                    "is a negative weight, which has no logarithm",
                    "correct it or drop the row",
                ));
            }
            features.push(narrow(if weight == 0.0 { 0.0 } else { weight.log2() })?);
        }
        Encoding::Words => {
            let share = narrow(wide(text)? / MOST_WORDS)?;
            features.extend([share, share]);
        }
        Encoding::Callsign => {
            if text.chars().count() > CODE {
                return Err(Refusal::new(
                    "is longer than the 8 characters of a call sign",
                    "correct it or drop the row",
                ));
            }
            codes(text, features);
        }
        Encoding::Typecode => codes(if text.chars().count() > CODE { "" } else { text }, features),
    }
    Ok(())
}

/// Eight character codes, with -1 where the text has ended.
fn codes(text: &str, features: &mut Vec<f32>) {
    let padded = text.chars().chain(std::iter::repeat('!')).take(CODE);
    features.extend(padded.map(|character| match character {
        '!' => -1.0,
        '0'..='9' => (character as u32 - '0' as u32) as f32,
        _ => {
            let upper = character.to_uppercase().next().unwrap_or(character);
            upper as u32 as f32 - 35.0
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(encoding: Encoding, text: &str) -> Result<Vec<f32>, Refusal> {
        let mut features = Vec::new();
        encode(encoding, text, &mut features).map(|()| features)
    }

    #[test]
    fn weights_become_logarithms_and_zero_counts_as_one() {
        assert_eq!(encoded(Encoding::LogWeight, "8"), Ok(vec![3.0]));
        assert_eq!(encoded(Encoding::LogWeight, "0"), Ok(vec![0.0]));
        assert!(encoded(Encoding::LogWeight, "-1").is_err());
    }

    #[test]
    fn words_are_a_share_given_twice() {
        assert_eq!(encoded(Encoding::Words, "2500"), Ok(vec![0.5, 0.5]));
    }

    #[test]
    fn codes_are_digits_letters_and_padding() {
        // What numpy gives for "3K1a" padded: digits as they are, ord(upper) - 44 + 9 for letters,
        // -1 for padding.
        assert_eq!(
            encoded(Encoding::Callsign, "3K1a"),
            Ok(vec![3.0, 40.0, 1.0, 30.0, -1.0, -1.0, -1.0, -1.0])
        );
        assert_eq!(encoded(Encoding::Typecode, "far too long"), Ok(vec![-1.0; 8]));
        assert_eq!(encoded(Encoding::Typecode, ""), Ok(vec![-1.0; 8]));
        assert!(encoded(Encoding::Callsign, "far too long").is_err());
    }
}
