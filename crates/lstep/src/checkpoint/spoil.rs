//! Checkpoints in which a single number was changed, as a fault or somebody with a tool for digests
//! would leave them.

use super::{Checkpoint, Values};
use crate::rng::KeyedRng;

/// Changes one number of a tensor that `chosen` allows; tells which.
pub(crate) fn change_one(
    checkpoint: &mut Checkpoint<'_>,
    draw: &mut KeyedRng,
    chosen: impl Fn(&str) -> bool,
) -> String {
    let tensors = checkpoint.tensors.iter_mut();
    let mut tensors: Vec<_> =
        tensors.filter(|tensor| tensor.values.len() > 0 && chosen(&tensor.name)).collect();
    let which = draw.below(tensors.len() as u64) as usize;
    let tensor = &mut tensors[which];
    let place = draw.below(tensor.values.len() as u64) as usize;
    let (kind, random) = (draw.below(8), draw.next());
    let whole = |old: u64, most: u64| match kind {
        0 => 0,
        1 => most,
        2 => most / 2 + 1,
        3 => old.wrapping_add(1) & most,
        4 => old.wrapping_sub(1) & most,
        5 => old ^ (1 << (random % 64)) & most,
        6 => random % 64,
        _ => random & most,
    };
    let float = |old: f64| match kind {
        0 => 0.0,
        1 => f64::NAN,
        2 => f64::INFINITY,
        3 => -old,
        4 => 1e300,
        5 => f64::MIN_POSITIVE,
        6 => f64::NEG_INFINITY,
        _ => old * 1e6 + 1.0,
    };
    let said = match &mut tensor.values {
        Values::F32(values) => {
            let value = &mut values.to_mut()[place];
            *value = float(f64::from(*value)) as f32;
            value.to_string()
        }
        Values::F64(values) => {
            let value = &mut values.to_mut()[place];
            *value = float(*value);
            value.to_string()
        }
        Values::U32(values) => {
            let value = &mut values.to_mut()[place];
            *value = whole(u64::from(*value), u64::from(u32::MAX)) as u32;
            value.to_string()
        }
        Values::U64(values) => {
            let value = &mut values.to_mut()[place];
            *value = whole(*value, u64::MAX);
            value.to_string()
        }
        Values::U8(values) => {
            let value = &mut values.to_mut()[place];
            *value = whole(u64::from(*value), 255) as u8;
            value.to_string()
        }
    };
    format!("{}[{place}] = {said}", tensor.name)
}

/// The most memory that this process ever had, in bytes; nothing where nobody tells.
pub(crate) fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}
