//! Loops over one or two slices: sums, dot products, scaled additions.
//!
//! Reductions run over 16 running sums folded as a tree. The order is the same for any vector
//! width, and the error is smaller than that of one running sum.

use super::math;

pub(crate) const LANES: usize = 16;

#[inline(always)]
fn fold(mut lanes: [f32; LANES]) -> f32 {
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// sum f(a, b) over two slices in the fixed order of 16 lanes.
#[inline(always)]
pub(crate) fn reduce2(a: &[f32], b: &[f32], f: impl Fn(f32, f32, f32) -> f32) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let (a_blocks, a_rest) = a.as_chunks::<LANES>();
    let (b_blocks, b_rest) = b.as_chunks::<LANES>();
    for (x, y) in a_blocks.iter().zip(b_blocks) {
        for i in 0..LANES {
            lanes[i] = f(x[i], y[i], lanes[i]);
        }
    }
    for ((lane, &x), &y) in lanes.iter_mut().zip(a_rest).zip(b_rest) {
        *lane = f(x, y, *lane);
    }
    fold(lanes)
}

multiversion! {
    /// sum of `a[i]` `b[i]`.
    pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
        reduce2(a, b, |x, y, sum| x.mul_add(y, sum))
    }
}

multiversion! {
    /// x becomes sign(x) ln(1 + |x|).
    pub fn signed_logs(values: &mut [f32]) {
        for x in values {
            *x = math::logarithm(x.abs() + 1.0).copysign(*x);
        }
    }
}

multiversion! {
    /// sum of `a[i]`.
    pub(crate) fn sum(a: &[f32]) -> f32 {
        reduce2(a, a, |x, _, sum| sum + x)
    }
}

multiversion! {
    /// sum of (`a[i]` - shift)^2.
    pub(crate) fn sum_of_squares(a: &[f32], shift: f32) -> f32 {
        reduce2(a, a, |x, _, sum| (x - shift).mul_add(x - shift, sum))
    }
}

multiversion! {
    /// sum of (`a[i]` - `b[i]`)^2.
    pub(crate) fn squared_distance(a: &[f32], b: &[f32]) -> f32 {
        reduce2(a, b, |x, y, sum| (x - y).mul_add(x - y, sum))
    }
}

multiversion! {
    /// The sum in `f64`, for losses and norms; eight running sums.
    pub(crate) fn wide_sum_of_squares(a: &[f32]) -> f64 {
        let mut lanes = [0.0_f64; 8];
        let (blocks, rest) = a.as_chunks::<8>();
        for block in blocks {
            for i in 0..8 {
                lanes[i] = f64::from(block[i]).mul_add(f64::from(block[i]), lanes[i]);
            }
        }
        for (lane, &x) in lanes.iter_mut().zip(rest) {
            *lane = f64::from(x).mul_add(f64::from(x), *lane);
        }
        lanes.iter().sum()
    }
}

multiversion! {
    /// `out[i]` += `a[i]`.
    pub(crate) fn add(out: &mut [f32], a: &[f32]) {
        for (o, &x) in out.iter_mut().zip(a) {
            *o += x;
        }
    }
}

multiversion! {
    /// `out[i]` += factor `a[i]`.
    pub(crate) fn add_scaled(out: &mut [f32], a: &[f32], factor: f32) {
        for (o, &x) in out.iter_mut().zip(a) {
            *o = x.mul_add(factor, *o);
        }
    }
}

multiversion! {
    /// `out[i]` += `a[i]` `b[i]`.
    pub(crate) fn add_product(out: &mut [f32], a: &[f32], b: &[f32]) {
        for ((o, &x), &y) in out.iter_mut().zip(a).zip(b) {
            *o = x.mul_add(y, *o);
        }
    }
}

multiversion! {
    /// `out[i]` = `a[i]` `b[i]`.
    pub(crate) fn product(out: &mut [f32], a: &[f32], b: &[f32]) {
        for ((o, &x), &y) in out.iter_mut().zip(a).zip(b) {
            *o = x * y;
        }
    }
}

multiversion! {
    /// `out[i]` = `a[i]` + `b[i]`.
    pub(crate) fn sum_of_two(out: &mut [f32], a: &[f32], b: &[f32]) {
        for ((o, &x), &y) in out.iter_mut().zip(a).zip(b) {
            *o = x + y;
        }
    }
}

multiversion! {
    /// `out[i]` = `a[i]` - `b[i]`.
    pub(crate) fn difference(out: &mut [f32], a: &[f32], b: &[f32]) {
        for ((o, &x), &y) in out.iter_mut().zip(a).zip(b) {
            *o = x - y;
        }
    }
}

multiversion! {
    /// `out[i]` *= `a[i]`.
    pub(crate) fn multiply(out: &mut [f32], a: &[f32]) {
        for (o, &x) in out.iter_mut().zip(a) {
            *o *= x;
        }
    }
}

multiversion! {
    /// `out[i]` = factor `a[i]`.
    pub(crate) fn scaled(out: &mut [f32], a: &[f32], factor: f32) {
        for (o, &x) in out.iter_mut().zip(a) {
            *o = factor * x;
        }
    }
}

multiversion! {
    /// `out[i]` *= factor.
    pub(crate) fn scale(out: &mut [f32], factor: f32) {
        for o in out {
            *o *= factor;
        }
    }
}

multiversion! {
    /// `out[i]` += share (`a[i]` - `out[i]`).
    pub(crate) fn approach(out: &mut [f32], a: &[f32], share: f32) {
        for (o, &a) in out.iter_mut().zip(a) {
            *o = share.mul_add(a - *o, *o);
        }
    }
}

/// out += sum over `rows` of `factor * row`, several rows in one pass so that `out` is loaded and
/// stored once per four.
///
/// The order of additions into each element is that of the iterator, whatever the grouping.
pub(crate) fn add_rows<'a>(out: &mut [f32], mut rows: impl Iterator<Item = (&'a [f32], f32)>) {
    loop {
        match (rows.next(), rows.next(), rows.next(), rows.next()) {
            (Some(a), Some(b), Some(c), Some(d)) => {
                add_four(out, a.0, b.0, c.0, d.0, [a.1, b.1, c.1, d.1]);
            }
            (a, b, c, _) => {
                for (row, factor) in [a, b, c].into_iter().flatten() {
                    add_scaled(out, row, factor);
                }
                return;
            }
        }
    }
}

multiversion! {
    fn add_four(out: &mut [f32], a: &[f32], b: &[f32], c: &[f32], d: &[f32], factor: [f32; 4]) {
        for ((((o, &a), &b), &c), &d) in out.iter_mut().zip(a).zip(b).zip(c).zip(d) {
            let sum = a.mul_add(factor[0], *o);
            let sum = b.mul_add(factor[1], sum);
            let sum = c.mul_add(factor[2], sum);
            *o = d.mul_add(factor[3], sum);
        }
    }
}

multiversion! {
    /// Softmax of one row in place: e^(x - max) / sum. Empty rows stay empty.
    pub(crate) fn softmax(row: &mut [f32]) {
        let mut lanes = [f32::NEG_INFINITY; LANES];
        let (blocks, rest) = row.as_chunks::<LANES>();
        for block in blocks {
            for i in 0..LANES {
                lanes[i] = if block[i] > lanes[i] { block[i] } else { lanes[i] };
            }
        }
        for (lane, &x) in lanes.iter_mut().zip(rest) {
            *lane = if x > *lane { x } else { *lane };
        }
        let mut largest = f32::NEG_INFINITY;
        for lane in lanes {
            largest = if lane > largest { lane } else { largest };
        }
        for x in row.iter_mut() {
            *x = crate::kernel::math::exponential(*x - largest);
        }
        let total = reduce2(row, row, |x, _, sum| sum + x);
        let inverse = 1.0 / total;
        for x in row {
            *x *= inverse;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reductions_agree_with_plain_sums() {
        for n in [0, 1, 15, 16, 17, 100, 172] {
            let a: Vec<f32> = (0..n).map(|i| (i as f32 * 0.7).sin()).collect();
            let b: Vec<f32> = (0..n).map(|i| (i as f32 * 0.3).cos()).collect();
            let plain: f64 = a.iter().zip(&b).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum();
            assert!((f64::from(dot(&a, &b)) - plain).abs() < 1e-5);
            let plain: f64 = a.iter().map(|&x| f64::from(x)).sum();
            assert!((f64::from(sum(&a)) - plain).abs() < 1e-5);
            let plain: f64 = a.iter().map(|&x| f64::from(x).powi(2)).sum();
            assert!((wide_sum_of_squares(&a) - plain).abs() < 1e-9);
        }
    }

    #[test]
    fn logarithms_keep_the_sign_and_the_zero() {
        let mut values: Vec<f32> = (-20..=20).map(|x| x as f32 * 0.37).collect();
        let before = values.clone();
        signed_logs(&mut values);
        for (x, log) in before.iter().zip(&values) {
            let exact = f64::from(*x).abs().ln_1p().copysign(f64::from(*x));
            assert!((f64::from(*log) - exact).abs() < 3e-7, "{x}: {log}");
        }
        assert_eq!(values[20], 0.0);
    }

    #[test]
    fn adding_rows_in_fours_gives_the_bits_of_adding_them_singly() {
        let rows: Vec<Vec<f32>> =
            (0..7).map(|r| (0..37).map(|i| ((r * 37 + i) as f32).sin()).collect()).collect();
        let mut fused = vec![0.5; 37];
        add_rows(
            &mut fused,
            rows.iter().enumerate().map(|(r, row)| (row.as_slice(), 0.1 * r as f32)),
        );
        let mut single = vec![0.5; 37];
        for (r, row) in rows.iter().enumerate() {
            add_scaled(&mut single, row, 0.1 * r as f32);
        }
        assert_eq!(fused, single);
    }
}
