//! Run-time choice of the instruction set: one body, compiled once per set.
//!
//! Two alternatives lost: `-C target-cpu=native`, because binaries must run on other machines, and
//! hand-written intrinsics everywhere, because only the matrix product needs them.

use std::sync::atomic::{AtomicU8, Ordering};

/// An instruction set this crate compiles for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// Whatever the build target guarantees.
    Portable = 1,
    /// AVX2 and FMA: 8 lanes.
    Avx2 = 2,
    /// AVX-512 F, BW, DQ, VL: 16 lanes.
    Avx512 = 3,
}

/// 0 until first asked.
static LEVEL: AtomicU8 = AtomicU8::new(0);

/// The instruction set in use.
#[inline]
pub fn level() -> Level {
    match LEVEL.load(Ordering::Relaxed) {
        1 => Level::Portable,
        2 => Level::Avx2,
        3 => Level::Avx512,
        _ => {
            let level = best();
            LEVEL.store(level as u8, Ordering::Relaxed);
            level
        }
    }
}

/// Restricts the instruction set to `limit` or below, and returns what is now used. Results do not
/// change, only speed: this exists so that tests can check exactly that.
pub fn limit_level(limit: Level) -> Level {
    let level = best().min(limit);
    LEVEL.store(level as u8, Ordering::Relaxed);
    level
}

fn best() -> Level {
    #[cfg(target_arch = "x86_64")]
    {
        let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        if avx2
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
        {
            return Level::Avx512;
        }
        if avx2 {
            return Level::Avx2;
        }
    }
    Level::Portable
}

/// Asks for the values to be brought near, for use soon; does nothing where the processor cannot be
/// asked.
#[inline(always)]
pub fn prefetch(values: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    for line in values.chunks(16) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which reads nothing; the address is that of a slice.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}

/// Defines a function whose body is compiled for every [`Level`] and chosen at run time.
macro_rules! multiversion {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments, reason = "kernels take flat slices and sizes")]
        $vis fn $name($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn body($($arg: $ty),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                fn avx512($($arg: $ty),*) $(-> $ret)? {
                    body($($arg),*)
                }
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $ty),*) $(-> $ret)? {
                    body($($arg),*)
                }
                match $crate::kernel::simd::level() {
                    // SAFETY: `level` has seen these features on this processor.
                    $crate::kernel::simd::Level::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    $crate::kernel::simd::Level::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::kernel::simd::Level::Portable => {}
                }
            }
            body($($arg),*)
        }
    };
}
