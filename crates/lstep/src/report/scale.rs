//! From numbers to places on an axis: ranges, round ticks and their labels.
//!
//! Knows no drawing. Ticks are 1, 2 or 5 times a power of ten, or powers of ten on a logarithmic
//! axis, so that a label says the exact value of its tick.

/// How numbers are spread over an axis.
#[derive(Debug, Clone, PartialEq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// Evenly, and only whole numbers are labelled.
    Whole,
    /// By their order of magnitude; numbers have to be above zero.
    Logarithmic,
    /// One place for each name, in order: 0, 1, 2.
    Names(Vec<String>),
}

/// An axis: what it shows, in which unit, from where to where.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What runs along it, with its unit.
    pub label: String,
    /// How numbers are spread.
    pub scale: Scale,
    /// The ends, if they do not follow from the data.
    pub ends: Option<(f64, f64)>,
    /// Ticks with labels, if round numbers would say nothing, such as for dates.
    pub ticks: Option<Vec<(f64, String)>>,
}

impl Axis {
    /// A linear axis over the range of its data.
    pub fn new(label: &str) -> Axis {
        Axis { label: label.into(), scale: Scale::Linear, ends: None, ticks: None }
    }

    /// A linear axis with given ends.
    pub fn between(label: &str, low: f64, high: f64) -> Axis {
        Axis { ends: Some((low, high)), ..Axis::new(label) }
    }

    /// A linear axis of things that are counted.
    pub fn whole(label: &str) -> Axis {
        Axis { scale: Scale::Whole, ..Axis::new(label) }
    }

    /// A logarithmic axis.
    pub fn logarithmic(label: &str) -> Axis {
        Axis { scale: Scale::Logarithmic, ..Axis::new(label) }
    }

    /// An axis with a place for each name.
    pub fn named(label: &str, names: Vec<String>) -> Axis {
        Axis { scale: Scale::Names(names), ..Axis::new(label) }
    }

    /// The same axis with its own ticks.
    #[must_use]
    pub fn with_ticks(mut self, ticks: Vec<(f64, String)>) -> Axis {
        self.ticks = Some(ticks);
        self
    }

    /// The ends for data of this range: a little room around it, and never a range of nothing.
    pub(super) fn fit(&self, data: impl Iterator<Item = f64>) -> (f64, f64) {
        if let Scale::Names(names) = &self.scale {
            return (-0.5, names.len() as f64 - 0.5);
        }
        if let Some(ends) = self.ends {
            return ends;
        }
        let positive = self.scale == Scale::Logarithmic;
        let (low, high) = data
            .filter(|x| x.is_finite() && (!positive || *x > 0.0))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
        if low > high {
            return if positive { (0.1, 10.0) } else { (0.0, 1.0) };
        }
        if positive {
            let (low, high) = (low / 1.3, high * 1.3);
            return if high / low < 10.0 { (low / 2.0, high * 2.0) } else { (low, high) };
        }
        let room = if high > low { (high - low) * 0.05 } else { (high.abs() * 0.1).max(0.5) };
        // Counts and shares do not go below zero for the sake of room.
        (if low >= 0.0 { (low - room).max(0.0) } else { low - room }, high + room)
    }

    /// A number's place between the ends, from 0 to 1.
    pub(super) fn place(&self, ends: (f64, f64), value: f64) -> f64 {
        let (low, high, value) = match self.scale {
            Scale::Logarithmic => (ends.0.ln(), ends.1.ln(), value.max(f64::MIN_POSITIVE).ln()),
            _ => (ends.0, ends.1, value),
        };
        (value - low) / (high - low)
    }

    /// Ticks with labels between the ends, at most about `most`.
    pub(super) fn tick_labels(&self, ends: (f64, f64), most: usize) -> Vec<(f64, String)> {
        if let Some(ticks) = &self.ticks {
            let every = ticks.len().div_ceil(most.max(1)).max(1);
            let inside = ticks.iter().filter(|(at, _)| *at >= ends.0 && *at <= ends.1);
            return inside.step_by(every).cloned().collect();
        }
        match &self.scale {
            Scale::Names(names) => {
                names.iter().enumerate().map(|(place, name)| (place as f64, name.clone())).collect()
            }
            Scale::Linear => round_ticks(ends, most, 0.0),
            Scale::Whole => round_ticks(ends, most, 1.0),
            Scale::Logarithmic => power_ticks(ends, most),
        }
    }
}

fn round_ticks((low, high): (f64, f64), most: usize, least: f64) -> Vec<(f64, String)> {
    let rough = ((high - low) / most.max(1) as f64).max(least);
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|times| times * power)
        .find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last)
        .map(|count| (count as f64 * step, tick_label(count as f64 * step, step)))
        .collect()
}

fn power_ticks((low, high): (f64, f64), most: usize) -> Vec<(f64, String)> {
    let (first, last) = ((low.log10() - 1e-9).ceil() as i32, (high.log10() + 1e-9).floor() as i32);
    if last <= first {
        return round_ticks((low, high), most.min(4), 0.0);
    }
    let every = (last - first + 1).unsigned_abs().div_ceil(most.max(1) as u32).max(1);
    (first..=last)
        .step_by(every as usize)
        .map(|power| (10f64.powi(power), short(10f64.powi(power))))
        .collect()
}

/// The label of a tick: as many decimals as the step has, large numbers in thousands and millions.
fn tick_label(value: f64, step: f64) -> String {
    let value = if value.abs() < step / 2.0 { 0.0 } else { value };
    let largest = value.abs();
    for (size, letter) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if largest >= size * 10.0 || (largest >= size && step >= size / 2.0) {
            let decimals = (size / step).log10().ceil().clamp(0.0, 3.0) as usize;
            return format!("{}{letter}", trimmed(format!("{:.decimals$}", value / size)));
        }
    }
    let decimals = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{value:.decimals$}")
}

fn trimmed(text: String) -> String {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    } else {
        text
    }
}

/// A number in few characters and about three digits, for labels and hover values.
pub fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        return "0".into();
    }
    if value.fract() == 0.0 && size < 1e4 {
        return format!("{value}");
    }
    if (1e-3..1e4).contains(&size) {
        let decimals = (2 - size.log10().floor() as i32).clamp(0, 5) as usize;
        return trimmed(format!("{value:.decimals$}"));
    }
    for (unit, letter) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if size >= unit && size < 1e13 {
            let decimals = (2 - (size / unit).log10().floor() as i32).clamp(0, 2) as usize;
            return format!("{}{letter}", trimmed(format!("{:.decimals$}", value / unit)));
        }
    }
    let text = format!("{value:.1e}");
    text.replace(".0e", "e")
}

/// A number of things, with its noun in the plural where there is not just one.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// A whole number with its thousands apart.
pub fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Seconds as people say them.
pub fn seconds(value: f64) -> String {
    match value {
        v if v < 1e-3 => format!("{} µs", short(v * 1e6)),
        v if v < 1.0 => format!("{} ms", short(v * 1e3)),
        v if v < 120.0 => format!("{} s", short(v)),
        v if v < 7200.0 => format!("{} min", short(v / 60.0)),
        v => format!("{} h", short(v / 3600.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ends: (f64, f64), most: usize) -> Vec<String> {
        Axis::new("x").tick_labels(ends, most).into_iter().map(|tick| tick.1).collect()
    }

    #[test]
    fn ticks_are_round_and_say_their_value() {
        assert_eq!(labels((0.0, 1.0), 5), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels((0.88, 0.93), 5), ["0.88", "0.89", "0.90", "0.91", "0.92", "0.93"]);
        assert_eq!(labels((0.0, 60_000.0), 6), ["0", "10k", "20k", "30k", "40k", "50k", "60k"]);
        assert_eq!(labels((-2.0, 3.0), 5), ["-2", "-1", "0", "1", "2", "3"]);
        let whole: Vec<String> =
            Axis::whole("x").tick_labels((0.9, 3.1), 6).into_iter().map(|tick| tick.1).collect();
        assert_eq!(whole, ["1", "2", "3"]);
        let powers: Vec<String> = Axis::logarithmic("x")
            .tick_labels((0.5, 2e4), 6)
            .into_iter()
            .map(|tick| tick.1)
            .collect();
        assert_eq!(powers, ["1", "10", "100", "1000", "10k"]);
    }

    #[test]
    fn a_range_of_one_number_has_room_on_both_sides() {
        let (low, high) = Axis::new("x").fit([0.7].into_iter());
        assert!(low < 0.7 && high > 0.7);
        assert_eq!(Axis::new("x").fit(std::iter::empty()), (0.0, 1.0));
    }

    #[test]
    fn numbers_are_told_in_few_characters() {
        let told: Vec<String> =
            [0.0, 0.93214, 12.0, 1234567.0, 0.000_012_3, 59835.0].map(short).to_vec();
        assert_eq!(told, ["0", "0.932", "12", "1.23M", "1.2e-5", "59.8k"]);
        assert_eq!(grouped(1_234_567), "1 234 567");
        assert_eq!(
            (counted(1, "event"), counted(2_000, "event")),
            ("1 event".into(), "2 000 events".into())
        );
        assert_eq!(
            [0.0005, 0.25, 3.0, 600.0].map(seconds).to_vec(),
            ["500 µs", "250 ms", "3 s", "10 min"]
        );
    }
}
