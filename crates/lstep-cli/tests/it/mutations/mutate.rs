//! Good files with faults: bits, bytes, lengths, numbers, swaps, splices and cuts, all drawn from a
//! key.

use lstep::rng::KeyedRng;

/// Numbers at which readers tend to fail: ends of types, signs, powers of two.
const NUMBERS: [u64; 16] = [
    0,
    1,
    2,
    7,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
];

/// The same as people write them, and what is no number.
const TEXTS: [&str; 24] = [
    "0",
    "-1",
    "1",
    "-0",
    "255",
    "65536",
    "16384",
    "16385",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "1e9",
    "1e308",
    "1e400",
    "-1e-320",
    "nan",
    "inf",
    "0.1",
    "",
    "9999-12-31T23:59:60Z",
    "99999999999999999999999999999999999999",
];

/// One of the good files with faults in it, or once in a while no such file at all.
pub fn mutate(good: &[Vec<u8>], draw: &mut KeyedRng) -> Vec<u8> {
    if draw.below(40) == 0 {
        let length = draw.below(400);
        return (0..length).map(|_| draw.next() as u8).collect();
    }
    let mut bytes = good[draw.below(good.len() as u64) as usize].clone();
    // Most inputs have one fault: more of them are mostly found by the first.
    let faults = [1, 1, 1, 2, 2, 3, 4, 8][draw.below(8) as usize];
    for _ in 0..faults {
        spoil(&mut bytes, good, draw);
    }
    bytes
}

fn spoil(bytes: &mut Vec<u8>, good: &[Vec<u8>], draw: &mut KeyedRng) {
    let kind = draw.below(13);
    let at = place(bytes.len(), draw);
    match kind {
        0 if at < bytes.len() => bytes[at] ^= 1 << draw.below(8),
        1 if at < bytes.len() => bytes[at] = draw.next() as u8,
        2 if at < bytes.len() => {
            let interesting = [0, 1, 0x7f, 0x80, 0xff, b'\n', b'"', b',', b'-', b'{'];
            bytes[at] = interesting[draw.below(10) as usize];
        }
        3 | 4 => binary_number(bytes, at, draw),
        5 | 6 => written_number(bytes, at, draw),
        7 => {
            let more: Vec<u8> = (0..=draw.below(16)).map(|_| draw.next() as u8).collect();
            bytes.splice(at..at, more);
        }
        8 => {
            bytes.drain(span(bytes.len(), at, draw));
        }
        9 => bytes.truncate(at),
        // A piece once more, perhaps many times.
        10 => {
            let times = [1, 1, 2, 100][draw.below(4) as usize];
            let piece = bytes[span(bytes.len(), at, draw)].repeat(times);
            let to = place(bytes.len(), draw);
            bytes.splice(to..to, piece);
        }
        // Two pieces change places.
        11 => {
            let one = span(bytes.len(), at, draw);
            let piece: Vec<u8> = bytes.drain(one).collect();
            let to = place(bytes.len(), draw);
            bytes.splice(to..to, piece);
        }
        // The rest is that of another good file, or of the same one from elsewhere.
        _ => {
            let other = &good[draw.below(good.len() as u64) as usize];
            let from = place(other.len(), draw);
            bytes.truncate(at);
            bytes.extend(&other[from..]);
        }
    }
}

/// A place in a file; headers and ends are chosen more often than their share.
fn place(length: usize, draw: &mut KeyedRng) -> usize {
    let near = length.min(256) as u64;
    match draw.below(4) {
        0 => draw.below(near + 1) as usize,
        1 => length - draw.below(near + 1) as usize,
        _ => draw.below(length as u64 + 1) as usize,
    }
}

/// A piece that begins at a place and is mostly short.
fn span(length: usize, at: usize, draw: &mut KeyedRng) -> std::ops::Range<usize> {
    let most = [4, 16, 64, length][draw.below(4) as usize];
    at..length.min(at + 1 + draw.below(most as u64 + 1) as usize)
}

/// Writes over a number of 1, 2, 4 or 8 bytes, whichever end comes first.
fn binary_number(bytes: &mut [u8], at: usize, draw: &mut KeyedRng) {
    let width = 1 << draw.below(4);
    let Some(place) = bytes.get_mut(at..at + width) else { return };
    let mut wide = [0; 8];
    wide[..width].copy_from_slice(place);
    let old = u64::from_le_bytes(wide);
    let number = match draw.below(4) {
        0 => old.wrapping_add(1),
        1 => old.wrapping_sub(1),
        2 => draw.next(),
        _ => NUMBERS[draw.below(NUMBERS.len() as u64) as usize],
    };
    place.copy_from_slice(&number.to_le_bytes()[..width]);
    if draw.below(4) == 0 {
        place.reverse();
    }
}

/// Writes another number over the next one that is written in digits.
fn written_number(bytes: &mut Vec<u8>, at: usize, draw: &mut KeyedRng) {
    let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit) else { return };
    let start = at + start;
    let digits = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let text = match draw.below(3) {
        0 => (draw.next() >> draw.below(64)).to_string(),
        _ => TEXTS[draw.below(TEXTS.len() as u64) as usize].to_string(),
    };
    bytes.splice(start..start + digits, text.into_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_key_gives_the_same_file_and_hardly_any_is_good() {
        let good = vec![b"u,i,ts\n1,2,3\n2,3,4\n".to_vec(), (0..=255).collect()];
        let made = |key: u64| mutate(&good, &mut KeyedRng::new(&[key]));
        let same = (0..500).filter(|&key| good.contains(&made(key))).count();
        assert!((0..500).all(|key| made(key) == made(key)) && same < 50, "{same} are good");
    }
}
