//! Matmul of split numbers by the matrix unit of recent Xeons (AMX: eight registers of 16 x 64
//! bytes, products of bf16 pairs).
//!
//! The unit's instructions are not yet in stable Rust's `std::arch`, so they stand here as
//! assembly; and Linux gives a process the registers only when it asks.

use std::arch::asm;
use std::arch::x86_64::{__cpuid_count, _MM_HINT_ET0, _mm_prefetch};
use std::sync::OnceLock;

use super::simd::{Level, level};
use super::split::{GROUP, SIDE, Square};

/// Whether the processor has the unit, the kernel gives it, and vectors are not limited below what
/// goes with it.
pub(super) fn is_usable() -> bool {
    level() == Level::Avx512 && is_given()
}

fn is_given() -> bool {
    static GIVEN: OnceLock<bool> = OnceLock::new();
    *GIVEN.get_or_init(|| is_present() && ask_for_registers())
}

fn is_present() -> bool {
    /// Bits of leaf 7's EDX: products of bf16, and the tile registers.
    const UNIT: u32 = 1 << 22 | 1 << 24;
    __cpuid_count(0, 0).eax >= 7 && __cpuid_count(7, 0).edx & UNIT == UNIT
}

/// Asks Linux for the registers' contents to be kept for this process.
fn ask_for_registers() -> bool {
    const ARCH_PRCTL: i64 = 158;
    const ARCH_REQ_XCOMP_PERM: i64 = 0x1023;
    const XFEATURE_XTILEDATA: i64 = 18;
    let result: i64;
    // SAFETY: the call changes nothing but what this process may use; `syscall` overwrites rcx and
    // r11.
    unsafe {
        asm!("syscall", inlateout("rax") ARCH_PRCTL => result, in("rdi") ARCH_REQ_XCOMP_PERM,
            in("rsi") XFEATURE_XTILEDATA, out("rcx") _, out("r11") _, options(nostack));
    }
    result == 0
}

/// The shape of the registers, as the unit reads it.
#[repr(C, align(64))]
struct Shapes {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    bytes_of_row: [u16; 16],
    rows: [u8; 16],
}

static SHAPES: Shapes = {
    let (mut bytes_of_row, mut rows) = ([0; 16], [0; 16]);
    let mut register = 0;
    while register < 8 {
        (bytes_of_row[register], rows[register]) = (64, 16);
        register += 1;
    }
    Shapes { palette: 1, start_row: 0, reserved: [0; 14], bytes_of_row, rows }
};

/// The thread's registers are eight tiles as long as this lives.
pub(super) struct Configured(());

impl Configured {
    /// Only where the unit [`is_usable`].
    pub fn new() -> Configured {
        assert!(is_given(), "no matrix unit");
        // SAFETY: the unit is there and the process may use it; `SHAPES` is a shape that its
        // palette has.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const SHAPES, options(nostack, readonly)) };
        Configured(())
    }
}

impl Drop for Configured {
    fn drop(&mut self) {
        // SAFETY: as in `new`. The registers go back to nothing, so that the kernel need not save
        // them.
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }
}

/// C = A B or C += A B for 32 x 32 numbers, while the thread is [`Configured`].
pub(super) fn square(square: Square<'_>) {
    let Square { a, b, c, stride, add } = square;
    let groups = a.len() / GROUP;
    assert!(groups > 0 && a.len() == b.len() && a.len() == groups * GROUP, "sides of one depth");
    assert!(c.len() >= (SIDE - 1) * stride + SIDE, "room for a square");
    let below = 16 * 4 * stride;
    // SAFETY: both sides hold `groups` groups of four tiles of 1 KiB, C has 32 rows of 32 numbers
    // at this stride (all asserted above); the caller has configured the registers, which nothing
    // else in this process uses.
    unsafe {
        // C is mostly not in cache. It is brought near for writing while the unit multiplies.
        for i in 0..SIDE {
            let row = c.as_ptr().add(i * stride).cast::<i8>();
            _mm_prefetch::<_MM_HINT_ET0>(row);
            _mm_prefetch::<_MM_HINT_ET0>(row.add(64));
        }
        let (top, bottom) = (c.as_mut_ptr(), c.as_mut_ptr().cast::<u8>().add(below).cast::<f32>());
        if add {
            asm!(
                "tileloadd tmm0, [{top} + {stride}]",
                "tileloadd tmm1, [{top} + {stride} + 64]",
                "tileloadd tmm2, [{bottom} + {stride}]",
                "tileloadd tmm3, [{bottom} + {stride} + 64]",
                top = in(reg) top, bottom = in(reg) bottom, stride = in(reg) 4 * stride,
                options(nostack, readonly)
            );
        } else {
            asm!(
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                options(nostack, nomem)
            );
        }
        asm!(
            "2:",
            "tileloadd tmm4, [{a} + {line} + 2048]",
            "tileloadd tmm5, [{a} + {line} + 3072]",
            "tileloadd tmm6, [{b} + {line}]",
            "tileloadd tmm7, [{b} + {line} + 1024]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
            "tileloadd tmm4, [{a} + {line}]",
            "tileloadd tmm5, [{a} + {line} + 1024]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
            "tileloadd tmm6, [{b} + {line} + 2048]",
            "tileloadd tmm7, [{b} + {line} + 3072]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
            "add {a}, 4096",
            "add {b}, 4096",
            "dec {groups}",
            "jnz 2b",
            a = inout(reg) a.as_ptr() => _, b = inout(reg) b.as_ptr() => _,
            groups = inout(reg) groups => _, line = in(reg) 64_usize,
            options(nostack, readonly)
        );
        asm!(
            "tilestored [{top} + {stride}], tmm0",
            "tilestored [{top} + {stride} + 64], tmm1",
            "tilestored [{bottom} + {stride}], tmm2",
            "tilestored [{bottom} + {stride} + 64], tmm3",
            top = in(reg) top, bottom = in(reg) bottom, stride = in(reg) 4 * stride,
            options(nostack)
        );
    }
}
