//! Functions of one number applied to whole slices, and the factors their gradients need.

use super::math;

/// A function applied to every element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// x
    Identity,
    /// max(x, 0)
    Relu,
    /// tanh(x)
    Tanh,
    /// 1 / (1 + e^-x)
    Sigmoid,
    /// x Phi(x), with the exact normal distribution function
    Gelu,
    /// cos(x)
    Cos,
    /// e^x
    Exp,
    /// x^2
    Square,
}

impl Activation {
    /// Whether the slope is computed from the argument; otherwise it is computed from the result.
    pub(crate) fn slope_needs_argument(self) -> bool {
        matches!(self, Self::Gelu | Self::Cos | Self::Square)
    }

    /// `values[i]` = f(`values[i]`).
    pub(crate) fn apply(self, values: &mut [f32]) {
        match self {
            Self::Identity => {}
            Self::Relu => relu(values),
            Self::Tanh => tanh(values),
            Self::Sigmoid => sigmoid(values),
            Self::Gelu => gelu(values),
            Self::Cos => cos(values),
            Self::Exp => exp(values),
            Self::Square => square(values),
        }
    }

    /// `slopes[i]` = f'(`values[i]`), then `values[i]` = f(`values[i]`).
    pub(crate) fn apply_with_slopes(self, values: &mut [f32], slopes: &mut [f32]) {
        if self == Self::Gelu {
            return gelu_with_slopes(values, slopes);
        }
        slopes.fill(1.0);
        if self.slope_needs_argument() {
            self.chain(values, slopes);
            self.apply(values);
        } else {
            self.apply(values);
            self.chain(values, slopes);
        }
    }

    /// `gradient[i]` *= f'(x), given f(x), or x itself if [`Self::slope_needs_argument`].
    pub(crate) fn chain(self, known: &[f32], gradient: &mut [f32]) {
        match self {
            Self::Identity => {}
            Self::Relu => relu_chain(known, gradient),
            Self::Tanh => tanh_chain(known, gradient),
            Self::Sigmoid => sigmoid_chain(known, gradient),
            Self::Gelu => gelu_chain(known, gradient),
            Self::Cos => cos_chain(known, gradient),
            Self::Exp => exp_chain(known, gradient),
            Self::Square => square_chain(known, gradient),
        }
    }
}

macro_rules! element_wise {
    ($name:ident, |$x:ident| $value:expr; $chain:ident, |$known:ident| $slope:expr) => {
        multiversion! {
            fn $name(values: &mut [f32]) {
                for value in values {
                    let $x = *value;
                    *value = $value;
                }
            }
        }
        multiversion! {
            fn $chain(known: &[f32], gradient: &mut [f32]) {
                for (g, &$known) in gradient.iter_mut().zip(known) {
                    *g *= $slope;
                }
            }
        }
    };
}

multiversion! {
    /// Both have the distribution function in common, which is most of the work.
    fn gelu_with_slopes(values: &mut [f32], slopes: &mut [f32]) {
        for (value, slope) in values.iter_mut().zip(slopes) {
            (*value, *slope) = math::gelu_and_slope(*value);
        }
    }
}

// NaN stays NaN: a comparison that is false for NaN must select x.
element_wise!(relu, |x| if x < 0.0 { 0.0 } else { x }; relu_chain, |y| if y > 0.0 { 1.0 } else { 0.0 });
element_wise!(tanh, |x| math::hyperbolic_tangent(x); tanh_chain, |y| (-y).mul_add(y, 1.0));
element_wise!(sigmoid, |x| math::logistic(x); sigmoid_chain, |y| y * (1.0 - y));
element_wise!(gelu, |x| math::gelu(x); gelu_chain, |x| math::gelu_slope(x));
element_wise!(cos, |x| math::cosine(f64::from(x)); cos_chain, |x| -math::sine(f64::from(x)));
element_wise!(exp, |x| math::exponential(x); exp_chain, |y| y);
element_wise!(square, |x| x * x; square_chain, |x| 2.0 * x);
