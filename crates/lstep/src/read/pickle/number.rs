//! numpy's numbers in a pickle: what kind they are, and their bytes as `i64`.

/// What goes wrong, to be read after "at byte N,".
pub(super) type Outcome<T> = Result<T, String>;

/// A numpy dtype of whole or real numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Kind {
    class: u8,
    size: usize,
    big_endian: bool,
}

impl Kind {
    /// From numpy's short name, as `i8`, `<i8` or `f4`.
    pub(super) fn named(name: &str) -> Outcome<Kind> {
        let (order, short) = match name.as_bytes() {
            [order @ (b'<' | b'>' | b'=' | b'|'), short @ ..] => (*order, short),
            short => (b'=', short),
        };
        match short {
            [class @ (b'i' | b'u'), size @ (b'1' | b'2' | b'4' | b'8')]
            | [class @ b'f', size @ (b'4' | b'8')] => Ok(Kind {
                class: *class,
                size: usize::from(size - b'0'),
                big_endian: order == b'>',
            }),
            _ => Err(format!("it holds numbers of kind {name:?}, which cannot be ids")),
        }
    }

    /// With the byte order that numpy writes separately.
    pub(super) fn ordered(self, order: &str) -> Outcome<Kind> {
        match order {
            "<" | "=" | "|" => Ok(Kind { big_endian: false, ..self }),
            ">" => Ok(Kind { big_endian: true, ..self }),
            _ => Err(format!("it gives {order:?} as a byte order")),
        }
    }

    /// How many numbers there are in so many bytes.
    pub(super) fn count(self, bytes: usize) -> Outcome<usize> {
        if bytes.is_multiple_of(self.size) {
            Ok(bytes / self.size)
        } else {
            Err(format!("{bytes} bytes are no whole number of {}-byte numbers", self.size))
        }
    }

    /// One number.
    pub(super) fn one(self, bytes: &[u8]) -> Outcome<i64> {
        if bytes.len() != self.size {
            return Err(format!("a number of {} bytes has {}", self.size, bytes.len()));
        }
        let mut word = [0; 8];
        for (place, byte) in bytes.iter().enumerate() {
            word[if self.big_endian { self.size - 1 - place } else { place }] = *byte;
        }
        let raw = u64::from_le_bytes(word);
        match self.class {
            // Shifted up and down again, so that the sign is carried.
            b'i' => Ok((raw << (64 - 8 * self.size)) as i64 >> (64 - 8 * self.size)),
            b'u' => i64::try_from(raw).map_err(|_| format!("the id {raw} has more than 63 bits")),
            _ if self.size == 4 => whole(f64::from(f32::from_bits(raw as u32))),
            _ => whole(f64::from_bits(raw)),
        }
    }

    /// All numbers of a buffer.
    pub(super) fn all(self, bytes: &[u8]) -> Outcome<Vec<i64>> {
        self.count(bytes.len())?;
        let (words, _) = bytes.as_chunks::<8>();
        match (self.class, self.size, self.big_endian) {
            // The usual case by itself, because it is a plain copy.
            (b'i', 8, false) => Ok(words.iter().map(|word| i64::from_le_bytes(*word)).collect()),
            (b'f', 8, false) => words.iter().map(|word| whole(f64::from_le_bytes(*word))).collect(),
            _ => bytes.chunks_exact(self.size).map(|word| self.one(word)).collect(),
        }
    }
}

/// A real number that is an integer. numpy makes lists real when one of their halves is empty.
pub(super) fn whole(value: f64) -> Outcome<i64> {
    // 2^63 itself is out of range, and every real below it that is whole is in range.
    if value.trunc() == value && (-(2_f64.powi(63))..2_f64.powi(63)).contains(&value) {
        Ok(value as i64)
    } else {
        Err(format!("{value} is not an integer id"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_kind_become_integers() {
        for (name, bytes, value) in [
            ("i8", &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff][..], -2),
            (">i4", &[0, 0, 1, 2], 258),
            ("<u2", &[0xff, 0xff], 65535),
            ("|i1", &[0x80], -128),
            ("f4", &3_f32.to_le_bytes(), 3),
            (">f8", &(-7_f64).to_be_bytes(), -7),
        ] {
            let kind = Kind::named(name).expect("a kind of number");
            assert_eq!(kind.one(bytes), Ok(value), "{name}");
            assert_eq!(kind.all(&[bytes, bytes].concat()), Ok(vec![value; 2]), "{name}");
        }
    }

    #[test]
    fn what_is_no_integer_is_refused() {
        for value in [0.5, f64::NAN, f64::INFINITY, 2_f64.powi(63)] {
            assert!(whole(value).is_err(), "{value}");
        }
        assert!(Kind::named("u8").expect("a kind").one(&[0xff; 8]).is_err());
        for name in ["O", "O8", "i3", "f2", "", "<", "i88", "M8"] {
            assert!(Kind::named(name).is_err(), "{name}");
        }
        assert!(Kind::named("i8").expect("a kind").all(&[0; 12]).is_err());
    }
}
