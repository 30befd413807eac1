//! Quantiles as numpy computes them.

/// The quantile of values in ascending order, as numpy computes it by default: position q (n - 1),
/// linear between neighbours, from the nearer one, which is not the same in the last bit.
///
/// # Panics
/// If there are no values, or the share is not within `0.0..=1.0`.
pub fn quantile(ascending: &[impl Copy + Into<f64>], share: f64) -> f64 {
    assert!((0.0..=1.0).contains(&share), "a share is between 0 and 1");
    let position = share * (ascending.len() - 1) as f64;
    let below = position.floor();
    let fraction = position - below;
    let low: f64 = ascending[below as usize].into();
    let high: f64 = ascending[(below as usize + 1).min(ascending.len() - 1)].into();
    let step = high - low;
    if fraction >= 0.5 { high - step * (1.0 - fraction) } else { low + step * fraction }
}
