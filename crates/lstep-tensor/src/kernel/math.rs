//! Scalar functions made of additions, products, `mul_add`, selects and bit operations only.
//!
//! Inlined into a loop they vectorise, and because each lane does exactly these operations, 1, 8
//! and 16 lanes give the same bits. Polynomials are minimax fits on the reduced interval; the bound
//! of each is tested against `f64`.

#![allow(clippy::excessive_precision, reason = "coefficients have the digits of their fit")]

use std::f64::consts::FRAC_1_PI;

/// pi = `PI_HIGH` + `PI_LOW` to 107 bits.
const PI_HIGH: f64 = std::f64::consts::PI;
const PI_LOW: f64 = 1.224_646_799_147_353_2e-16;
/// 1.5 * 2^52: adding it rounds an `f64` to an integer and leaves that integer in the low bits.
const ROUND_F64: f64 = 6_755_399_441_055_744.0;
/// 1.5 * 2^23, the same for `f32`.
const ROUND_F32: f32 = 12_582_912.0;

/// sin(r) for |r| <= pi/2, absolute error below 1.2e-7.
#[inline(always)]
fn sine_of_reduced(r: f32) -> f32 {
    let square = r * r;
    let p = 2.752_261_e-6_f32
        .mul_add(1.0, square * -2.384_656_6e-8)
        .mul_add(square, -1.984_080_4e-4)
        .mul_add(square, 8.333_330_5e-3)
        .mul_add(square, -1.666_666_7e-1);
    (r * square).mul_add(p, r)
}

/// The remainder of a reduction. From about 1e15 on a double's last digit is worth a part of a
/// turn, and what the reduction leaves may lie anywhere; kept near a quarter of a turn, it gives at
/// least a number between -1 and 1. Not nearer: below that the rounded number of half turns may be
/// one off close to the middle between two, and the remainder is right all the same.
#[inline(always)]
fn near_a_quarter_turn(r: f64) -> f64 {
    const MOST: f64 = 2.0;
    // Comparisons are written so that NaN passes through.
    let r = if r > MOST { MOST } else { r };
    if r < -MOST { -MOST } else { r }
}

/// cos(x), absolute error below 2e-7 for |x| up to 1e14; beyond 1e15, some number between -1 and 1.
///
/// Time differences in seconds reach 1e9, so the reduction is done in `f64`: with
/// `x = (n + 1/2) pi + r`, `cos x` is `sin r` up to the sign of `(-1)^(n+1)`. Two fused steps keep
/// `r` exact to 1e-16.
#[inline(always)]
pub(crate) fn cosine(x: f64) -> f32 {
    let rounded = x.mul_add(FRAC_1_PI, -0.5) + ROUND_F64;
    let half_turns = (rounded - ROUND_F64) + 0.5;
    let r = (-half_turns).mul_add(PI_HIGH, x);
    let r = near_a_quarter_turn((-half_turns).mul_add(PI_LOW, r));
    let sign = (!rounded.to_bits() & 1) << 63;
    sine_of_reduced(f64::from_bits(r.to_bits() ^ sign) as f32)
}

/// `x = n pi + r` with r near zero: r, and a sign bit that is set where n is odd, so that sin x is
/// -sin r and cos x is -cos r.
#[inline(always)]
fn past_half_turns(x: f64) -> (f32, u32) {
    let rounded = x.mul_add(FRAC_1_PI, ROUND_F64);
    let half_turns = rounded - ROUND_F64;
    let r = (-half_turns).mul_add(PI_HIGH, x);
    let r = near_a_quarter_turn((-half_turns).mul_add(PI_LOW, r));
    (r as f32, ((rounded.to_bits() & 1) as u32) << 31)
}

/// sin(x), absolute error below 2e-7 for |x| up to 1e14; beyond 1e15, some number between -1 and 1.
#[inline(always)]
pub(crate) fn sine(x: f64) -> f32 {
    let (r, sign) = past_half_turns(x);
    sine_of_reduced(f32::from_bits(r.to_bits() ^ sign))
}

/// cos(x) and sin(x) with one reduction between them, each with an absolute error below 2e-7 for
/// |x| up to 1e14.
#[inline(always)]
pub(crate) fn cosine_and_sine(x: f64) -> (f32, f32) {
    let (r, sign) = past_half_turns(x);
    let square = r * r;
    let p = (-2.619_368e-7_f32)
        .mul_add(square, 2.476_929_8e-5)
        .mul_add(square, -1.388_856_9e-3)
        .mul_add(square, 4.166_665_6e-2);
    let cosine = (square * square).mul_add(p, (-0.5_f32).mul_add(square, 1.0));
    let signed = |value: f32| f32::from_bits(value.to_bits() ^ sign);
    (signed(cosine), signed(sine_of_reduced(r)))
}

/// e^x, relative error below 2e-7; 0 below -103, infinity above 88.8.
#[inline(always)]
pub(crate) fn exponential(x: f32) -> f32 {
    // Comparisons are written so that NaN passes through the clamp.
    let clamped = if x > 89.0 { 89.0 } else { x };
    let clamped = if clamped < -104.0 { -104.0 } else { clamped };
    let rounded = clamped.mul_add(std::f32::consts::LOG2_E, ROUND_F32);
    let n = rounded - ROUND_F32;
    let r = n.mul_add(-0.693_359_4, clamped);
    let r = n.mul_add(2.121_944_4e-4, r);
    let p = 1.395_048_6e-3_f32
        .mul_add(r, 8.368_89e-3)
        .mul_add(r, 4.166_620_6e-2)
        .mul_add(r, 1.666_651_9e-1)
        .mul_add(r, 5.000_000_1e-1);
    let value = (r * r).mul_add(p, r) + 1.0;
    // 2^n in two factors, since n reaches 128 and -150, which no single exponent holds.
    let n = (rounded.to_bits() as i32).wrapping_sub(ROUND_F32.to_bits() as i32);
    let half = n >> 1;
    let power = |e: i32| f32::from_bits(((e + 127) << 23) as u32);
    value * power(half) * power(n - half)
}

/// ln(x) for x >= 1, relative error below 2e-7.
#[inline(always)]
pub(crate) fn logarithm(x: f32) -> f32 {
    // x = 2^n (1 + f) with 1 + f between the roots of 1/2 and of 2.
    const ROOT_OF_HALF: i32 = 0x3f35_04f3;
    let bits = x.to_bits() as i32;
    let n = (bits - ROOT_OF_HALF) >> 23;
    let f = f32::from_bits((bits - (n << 23)) as u32) - 1.0;
    let n = n as f32;
    let square = f * f;
    let p = 8.700_394e-2_f32
        .mul_add(f, -1.426_748_1e-1)
        .mul_add(f, 1.491_477_8e-1)
        .mul_add(f, -1.657_758_5e-1)
        .mul_add(f, 1.996_306_3e-1)
        .mul_add(f, -2.500_133_7e-1)
        .mul_add(f, 3.333_391e-1);
    // ln 2 in two parts, of which n times the larger one is exact.
    let small = n.mul_add(-2.121_944_4e-4, (square * f).mul_add(p, -0.5 * square));
    let value = n.mul_add(0.693_359_4, f + small);
    // What is no number stays none.
    if x < f32::INFINITY { value } else { x }
}

/// tanh(x), relative error below 4e-7.
#[inline(always)]
pub(crate) fn hyperbolic_tangent(x: f32) -> f32 {
    let square = x * x;
    let p = (-5.714_663_4e-3_f32)
        .mul_add(square, 2.064_855_1e-2)
        .mul_add(square, -5.374_290_6e-2)
        .mul_add(square, 1.333_148_5e-1)
        .mul_add(square, -3.333_328_4e-1);
    let near = (x * square).mul_add(p, x);
    let far = 1.0 - 2.0 / (exponential(2.0 * x.abs()) + 1.0);
    let far = f32::from_bits(far.to_bits() | (x.to_bits() & 0x8000_0000));
    if x.abs() > 0.625 { far } else { near }
}

/// 1 / (1 + e^-x), absolute error below 2e-7.
#[inline(always)]
pub(crate) fn logistic(x: f32) -> f32 {
    1.0 / (1.0 + exponential(-x))
}

/// log(1 + e^x) without overflow; used by the loss only, so it need not vectorise.
#[inline(always)]
pub(crate) fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// The error function, absolute error below 2e-7.
#[inline(always)]
pub(crate) fn error_function(x: f32) -> f32 {
    let t = x.abs();
    let s = x * x;
    let near = (-5.967_617e-4_f32)
        .mul_add(s, 4.991_194_2e-3)
        .mul_add(s, -2.676_813_5e-2)
        .mul_add(s, 1.128_199_2e-1)
        .mul_add(s, -3.761_253_4e-1)
        .mul_add(s, 1.283_791_7e-1)
        .mul_add(x, x);
    // Beyond 4 the result is 1 in f32, and the polynomial under the exponential is no longer a fit.
    let t = if t > 4.0 { 4.0 } else { t };
    let s = t * t;
    let upper = (-3.883_964_4e-3_f32).mul_add(t, 2.425_462_2e-2);
    let p = (-1.728_534_7e-5_f32)
        .mul_add(t, 3.831_971_3e-4)
        .mul_add(s, upper)
        .mul_add(t, -1.067_778_8e-1)
        .mul_add(t, -6.348_466_9e-1)
        .mul_add(t, -1.287_175_1e-1)
        .mul_add(t, -t);
    let far = 1.0 - exponential(p);
    let far = f32::from_bits(far.to_bits() | (x.to_bits() & 0x8000_0000));
    if x.abs() > 0.927_734_4 { far } else { near }
}

/// x Phi(x), Phi the normal distribution function.
#[inline(always)]
pub(crate) fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + error_function(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// d gelu / dx = Phi(x) + x phi(x).
#[inline(always)]
pub(crate) fn gelu_slope(x: f32) -> f32 {
    gelu_and_slope(x).1
}

/// [`gelu`] and [`gelu_slope`], to the bit.
#[inline(always)]
pub(crate) fn gelu_and_slope(x: f32) -> (f32, f32) {
    const FRAC_1_SQRT_2PI: f32 = 0.398_942_28;
    let twice = 1.0 + error_function(x * std::f32::consts::FRAC_1_SQRT_2);
    (0.5 * x * twice, (x * FRAC_1_SQRT_2PI).mul_add(exponential(-0.5 * x * x), 0.5 * twice))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(from: f64, to: f64, steps: usize) -> impl Iterator<Item = f64> {
        (0..=steps).map(move |i| from + (to - from) * i as f64 / steps as f64)
    }

    /// Maclaurin series in f64: good to 1e-13 for |x| <= 4.
    fn slow_error_function(x: f64) -> f64 {
        let mut term = x;
        let mut sum = x;
        for n in 1..200 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        sum * std::f64::consts::FRAC_2_SQRT_PI
    }

    #[test]
    fn cosine_and_sine_are_accurate_as_far_as_doubles_tell_turns_apart() {
        for scale in [1.0, 1e3, 1e7, 1e9, 1e12, 1e14] {
            for x in sweep(-scale, scale, 20_011) {
                assert!((f64::from(cosine(x)) - x.cos()).abs() < 2e-7, "cos {x}");
                assert!((f64::from(sine(x)) - x.sin()).abs() < 2e-7, "sin {x}");
                let both = cosine_and_sine(x);
                assert!((f64::from(both.0) - x.cos()).abs() < 2e-7, "cos {x} of both");
                assert_eq!(both.1, sine(x), "sin {x} of both");
            }
        }
    }

    #[test]
    fn cosine_and_sine_of_anything_finite_are_between_minus_one_and_one() {
        for scale in [1e15, 8e15, 1e17, 1e19, 1e25, 1e38, 1e300] {
            for x in sweep(-scale, scale, 5_003) {
                for value in [cosine(x), sine(x), cosine_and_sine(x).0, cosine_and_sine(x).1] {
                    assert!(value.abs() <= 1.0 + 2e-7, "{x}: {value}");
                }
            }
        }
    }

    #[test]
    fn the_exponential_is_accurate_and_saturates() {
        for x in sweep(-87.0, 88.5, 30_011) {
            let x = x as f32;
            let exact = f64::from(x).exp();
            assert!((f64::from(exponential(x)) - exact).abs() < 2e-7 * exact, "exp {x}");
        }
        assert_eq!(exponential(1000.0), f32::INFINITY);
        assert_eq!(exponential(-1000.0), 0.0);
        assert_eq!(exponential(f32::NEG_INFINITY), 0.0);
        assert_eq!(exponential(0.0), 1.0);
        assert!(exponential(f32::NAN).is_nan());
    }

    #[test]
    fn the_logarithm_is_accurate_from_one_on() {
        for x in sweep(1.0, 3.0, 30_011)
            .chain(sweep(3.0, 1e6, 30_011))
            .chain([1e20, f64::from(f32::MAX)])
        {
            let x = x as f32;
            let exact = f64::from(x).ln();
            assert!(
                (f64::from(logarithm(x)) - exact).abs() <= 2e-7 * exact,
                "ln {x}: {}",
                logarithm(x)
            );
        }
        assert_eq!(logarithm(f32::INFINITY), f32::INFINITY);
        assert!(logarithm(f32::NAN).is_nan());
    }

    #[test]
    fn both_at_once_have_the_bits_of_each() {
        for x in sweep(-9.0, 9.0, 30_011) {
            let x = x as f32;
            assert_eq!(gelu_and_slope(x).0.to_bits(), gelu(x).to_bits(), "gelu {x}");
        }
    }

    #[test]
    fn tangent_logistic_and_error_function_are_accurate() {
        for x in sweep(-12.0, 12.0, 30_011) {
            let x = x as f32;
            let wide = f64::from(x);
            let tanh = wide.tanh();
            assert!(
                (f64::from(hyperbolic_tangent(x)) - tanh).abs() < 4e-7 * tanh.abs().max(1e-3),
                "tanh {x}"
            );
            let logistic_exact = 1.0 / (1.0 + (-wide).exp());
            assert!((f64::from(logistic(x)) - logistic_exact).abs() < 2e-7, "logistic {x}");
            let erf = if wide.abs() > 4.0 { wide.signum() } else { slow_error_function(wide) };
            assert!((f64::from(error_function(x)) - erf).abs() < 2e-7, "erf {x}: {erf}");
        }
        assert_eq!(logistic(-200.0), 0.0);
        assert_eq!(logistic(200.0), 1.0);
        assert!(hyperbolic_tangent(f32::NAN).is_nan());
    }
}
