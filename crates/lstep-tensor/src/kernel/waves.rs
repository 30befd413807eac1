//! Sums of cosines of ages that all grow together, without going over the ages again.
//!
//! cos(w (a + l)) = cos(w a) cos(w l) - sin(w a) sin(w l), so the sums of cos(w a) and of sin(w a)
//! over all ages a tell the sum of cos(w (a + l)) for any l. What took a cosine for every age takes
//! one and a sine. Angles are `f64` up to the reduction, as everywhere.

use super::math;

/// Frequencies at once: two vectors of `f64`, one of `f32`.
const BLOCK: usize = 16;

/// Fills `out`, four rows of as many numbers as there are frequencies: the sums over ages of cos(w
/// a), of sin(w a), and of both times the age's weight.
///
/// # Panics
/// If there are not as many weights as ages, or `out` has no room for four rows.
pub fn wave_sums(ages: &[f64], weights: &[f32], frequencies: &[f64], out: &mut [f32]) {
    assert_eq!(ages.len(), weights.len(), "a weight for every age");
    assert_eq!(out.len(), 4 * frequencies.len(), "room for four rows");
    for (number, block) in frequencies.chunks(BLOCK).enumerate() {
        let mut sums = [[0.0; BLOCK]; 4];
        add_waves(&mut sums, ages, weights, &padded(block));
        for (row, sums) in out.chunks_exact_mut(frequencies.len()).zip(&sums) {
            row[number * BLOCK..][..block.len()].copy_from_slice(&sums[..block.len()]);
        }
    }
}

multiversion! {
    /// From what [`wave_sums`] gave, the sums of cos(w (a + later)), plain and weighted.
    ///
    /// # Panics
    /// If the lengths do not belong together.
    pub fn waves_later(waves: &[f32], later: f64, frequencies: &[f64], plain: &mut [f32], weighted: &mut [f32]) {
        let width = frequencies.len();
        assert_eq!((waves.len(), plain.len(), weighted.len()), (4 * width, width, width), "four rows and two results");
        let (cosines, rest) = waves.split_at(width);
        let (sines, rest) = rest.split_at(width);
        let (weighted_cosines, weighted_sines) = rest.split_at(width);
        for i in 0..width {
            let (cosine, sine) = math::cosine_and_sine(later * frequencies[i]);
            plain[i] = cosine.mul_add(cosines[i], -(sine * sines[i]));
            weighted[i] = cosine.mul_add(weighted_cosines[i], -(sine * weighted_sines[i]));
        }
    }
}

#[inline(always)]
fn padded<T: Copy + Default>(some: &[T]) -> [T; BLOCK] {
    let mut block = [T::default(); BLOCK];
    block[..some.len()].copy_from_slice(some);
    block
}

multiversion! {
    fn add_waves(sums: &mut [[f32; BLOCK]; 4], ages: &[f64], weights: &[f32], frequencies: &[f64; BLOCK]) {
        let [cosines, sines, weighted_cosines, weighted_sines] = sums;
        for (&age, &weight) in ages.iter().zip(weights) {
            for i in 0..BLOCK {
                let (cosine, sine) = math::cosine_and_sine(age * frequencies[i]);
                cosines[i] += cosine;
                weighted_cosines[i] = cosine.mul_add(weight, weighted_cosines[i]);
                sines[i] += sine;
                weighted_sines[i] = sine.mul_add(weight, weighted_sines[i]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_later_ages_are_those_of_the_cosines_themselves() {
        // 16 and 5 more frequencies, from 1 to 1e-7; a year in seconds, and nothing at all.
        let frequencies: Vec<f64> = (0..21).map(|i| 10f64.powf(-f64::from(i) / 3.0)).collect();
        let (ages, weights) = ([0.0, 3.5, 86_400.0, 31_557_600.0], [0.5, -2.0, 0.25, 1.5]);
        for count in 0..=ages.len() {
            let (ages, weights) = (&ages[..count], &weights[..count]);
            let mut waves = vec![0.0; 4 * frequencies.len()];
            wave_sums(ages, weights, &frequencies, &mut waves);
            for later in [0.0, 1.0, 12_345.678, 31_557_600.0] {
                let (mut plain, mut weighted) =
                    (vec![9.0; frequencies.len()], vec![9.0; frequencies.len()]);
                waves_later(&waves, later, &frequencies, &mut plain, &mut weighted);
                for (i, &frequency) in frequencies.iter().enumerate() {
                    let cosine = |age: &f64| ((age + later) * frequency).cos();
                    let expected: f64 = ages.iter().map(cosine).sum();
                    assert!(
                        (f64::from(plain[i]) - expected).abs() < 3e-6,
                        "{later} {frequency}: {}",
                        plain[i]
                    );
                    let expected: f64 =
                        ages.iter().zip(weights).map(|(age, &w)| cosine(age) * f64::from(w)).sum();
                    assert!(
                        (f64::from(weighted[i]) - expected).abs() < 6e-6,
                        "{later} {frequency}: {}",
                        weighted[i]
                    );
                }
            }
        }
    }
}
