//! Points of a search over settings: all combinations of lists, or some drawn from lists and
//! ranges, the same ones for the same seed.

use crate::error::{Error, Remedy, Result};
use crate::experiments::ModelSpec;
use crate::rng::KeyedRng;
use std::str::FromStr;

/// A setting and the values it may have.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    key: String,
    values: Values,
}

#[derive(Debug, Clone, PartialEq)]
enum Values {
    /// One of these.
    List(Vec<String>),
    /// Integers from the first to the second.
    Integers(i64, i64),
    /// Numbers between the two; by their logarithm if both are above zero.
    Numbers(f64, f64),
}

impl FromStr for Axis {
    type Err = Error;

    /// Reads `key=a,b,c` or `key=low..high`.
    fn from_str(text: &str) -> Result<Axis> {
        let example = "write key=a,b,c or key=low..high, for example model.recent=10,20,30";
        let (key, values) =
            text.split_once('=').ok_or_else(|| Error::setting("set", text, example))?;
        let values = match values.split_once("..") {
            Some((low, high)) => {
                range(low, high).ok_or_else(|| Error::setting("set", text, example))?
            }
            None => Values::List(listed(values)),
        };
        if key.is_empty()
            || matches!(&values, Values::List(list) if list.iter().any(String::is_empty))
        {
            return Err(Error::setting("set", text, example));
        }
        Ok(Axis { key: key.to_string(), values })
    }
}

/// The values between commas; those inside brackets or quotes belong to a value.
fn listed(text: &str) -> Vec<String> {
    let (mut depth, mut quoted) = (0u32, false);
    let between = |letter: char| {
        match letter {
            '"' => quoted = !quoted,
            '[' if !quoted => depth += 1,
            ']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0 && !quoted
    };
    text.split(between).map(|value| value.trim().to_string()).collect()
}

fn range(low: &str, high: &str) -> Option<Values> {
    if let (Ok(low), Ok(high)) = (low.parse::<i64>(), high.parse::<i64>()) {
        return (low < high).then_some(Values::Integers(low, high));
    }
    let (low, high) = (low.parse::<f64>().ok()?, high.parse::<f64>().ok()?);
    (low < high && low.is_finite() && high.is_finite()).then_some(Values::Numbers(low, high))
}

impl Axis {
    fn draw(&self, draw: &mut KeyedRng) -> String {
        match &self.values {
            Values::List(values) => values[draw.below(values.len() as u64) as usize].clone(),
            Values::Integers(low, high) => {
                (low + draw.below((high - low + 1) as u64) as i64).to_string()
            }
            Values::Numbers(low, high) => {
                // 53 random bits, as a double has.
                let share = draw.below(1 << 53) as f64 / (1u64 << 53) as f64;
                let value = if *low > 0.0 {
                    low * (high / low).powf(share)
                } else {
                    low + (high - low) * share
                };
                // Four digits are as fine as a search needs, and short enough for a folder's name.
                let rounded: f64 =
                    format!("{value:.3e}").parse().expect("a number in scientific notation");
                rounded.clamp(*low, *high).to_string()
            }
        }
    }

    /// The setting as `key=value`, if it has one value and is not searched.
    pub fn fixed(&self) -> Option<String> {
        match &self.values {
            Values::List(values) if values.len() == 1 => {
                Some(format!("{}={}", self.key, values[0]))
            }
            _ => None,
        }
    }
}

/// The model at every point of a search: all combinations of lists, or `random` of them drawn with
/// a seed.
pub fn search_points(
    model: &ModelSpec,
    axes: &[Axis],
    random: Option<(usize, u64)>,
) -> Result<Vec<ModelSpec>> {
    let points = match random {
        None => combinations(axes)?,
        Some((count, seed)) => {
            let mut points: Vec<Vec<String>> = Vec::new();
            // A point that was drawn before is drawn anew; small searches run out of points.
            for trial in 0..20 * count as u64 {
                let mut draw = KeyedRng::new(&[seed, 0x5ea, trial]);
                let point: Vec<String> = axes.iter().map(|axis| axis.draw(&mut draw)).collect();
                if points.len() < count && !points.contains(&point) {
                    points.push(point);
                }
            }
            points
        }
    };
    let spec = |point: Vec<String>| {
        let set = |(axis, value): (&Axis, &String)| format!("{}={value}", axis.key);
        let settings: Vec<String> = axes.iter().zip(&point).map(set).collect();
        let short: Vec<&str> =
            settings.iter().map(|setting| setting.trim_start_matches("model.")).collect();
        let label = if short.is_empty() { model.label.clone() } else { short.join(", ") };
        model.clone().with(settings).labelled(&label)
    };
    Ok(points.into_iter().map(spec).collect())
}

fn combinations(axes: &[Axis]) -> Result<Vec<Vec<String>>> {
    let mut points = vec![Vec::new()];
    for axis in axes {
        let Values::List(values) = &axis.values else {
            let problem = "a range has no list of values";
            return Err(Error::refused("set", &axis.key, problem, Remedy::DrawOrList));
        };
        points = (points.iter())
            .flat_map(|point: &Vec<String>| {
                values
                    .iter()
                    .map(move |value| [point.as_slice(), std::slice::from_ref(value)].concat())
            })
            .collect();
    }
    Ok(points)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(texts: &[&str]) -> Vec<Axis> {
        texts.iter().map(|text| text.parse().expect(text)).collect()
    }

    fn lstep() -> ModelSpec {
        "lstep".parse().expect("known")
    }

    #[test]
    fn a_grid_has_every_combination_and_labels_name_it() {
        let axes = axes(&["model.recent=10,20", "train.learning_rate=0.1,0.01,0.001"]);
        let points = search_points(&lstep(), &axes, None).expect("lists");
        assert_eq!(points.len(), 6);
        assert_eq!(points[1].label, "recent=10, train.learning_rate=0.01");
        assert_eq!(points[1].settings, ["model.recent=10", "train.learning_rate=0.01"]);
        assert_eq!(axes[0].fixed(), None);
        assert_eq!(
            "train.epochs=3".parse::<Axis>().expect("one value").fixed().as_deref(),
            Some("train.epochs=3")
        );
        assert_eq!(search_points(&lstep(), &[], None).expect("nothing to search"), [lstep()]);
        let split: Axis = "protocol.split=[0.6,0.8]".parse().expect("one list");
        assert_eq!(split.fixed().as_deref(), Some("protocol.split=[0.6,0.8]"));
        let kinds: Axis =
            r#"train.select=["random"],["random","historical"]"#.parse().expect("two lists");
        assert_eq!(search_points(&lstep(), &[kinds], None).expect("lists").len(), 2);
    }

    #[test]
    fn a_random_search_is_the_same_for_the_same_seed_and_stays_in_its_ranges() {
        let axes = axes(&[
            "model.recent=5..50",
            "train.learning_rate=1e-5..1e-2",
            "model.variant=full,no-position",
        ]);
        let points =
            |seed| search_points(&lstep(), &axes, Some((12, seed))).expect("ranges are drawn from");
        assert_eq!(points(7), points(7));
        assert_ne!(points(7), points(8));
        let mut small = 0;
        for point in points(7) {
            let value = |place: usize| {
                point.settings[place].split_once('=').expect("a setting").1.to_string()
            };
            assert!((5..=50).contains(&value(0).parse::<i64>().expect("an integer")));
            let rate: f64 = value(1).parse().expect("a number");
            assert!((1e-5..=1e-2).contains(&rate), "{rate}");
            small += usize::from(rate < 1e-3);
        }
        assert!(small >= 4, "rates are drawn by their logarithm: {small} of 12 are small");
    }

    #[test]
    fn a_random_search_over_few_points_ends_with_all_of_them() {
        let points =
            search_points(&lstep(), &axes(&["model.recent=1,2,3"]), Some((10, 0))).expect("a list");
        assert_eq!(points.len(), 3);
    }

    #[test]
    fn what_cannot_be_searched_is_refused() {
        assert!(search_points(&lstep(), &axes(&["model.recent=5..50"]), None).is_err());
        for text in
            ["model.recent", "=1,2", "model.recent=", "model.recent=9..3", "model.recent=1,,2"]
        {
            assert!(text.parse::<Axis>().is_err(), "{text}");
        }
    }
}
