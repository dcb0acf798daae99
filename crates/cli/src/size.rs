//! Amounts of bytes, as people write and read them.

use std::fmt;
use std::time::Duration;

/// Units by name, in bytes. The decimal ones are powers of ten, as in the figures that are printed. A single letter is what it is for
/// curl, dd and head: a power of 1,024.
const UNITS: [(&str, u64); 12] = [
    ("", 1),
    ("b", 1),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
];

/// Parses an amount of bytes: `1GB`, `100MB`, `10kB`, `1.5GB`, `1GiB`, `1M` (as 1 MiB) or plain bytes. Upper and lower case are
/// alike.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let malformed = || format!("`{text}` is no size: write for example 1GB, 100MB, 10kB, 1GiB or 1500");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let &(_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(malformed)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let whole: u64 = whole.parse().map_err(|_| malformed())?;
    let size = whole.checked_mul(factor).and_then(|size| size.checked_add(part_of(fraction, factor)?));
    size.filter(|_| !fraction.is_empty()).ok_or_else(malformed)
}

/// The digits after the decimal point, as bytes of a unit of `factor` bytes; what is less than a byte is dropped.
fn part_of(fraction: &str, factor: u64) -> Option<u64> {
    // Nine digits of a terabyte are a kilobyte: more make no sense, and 10^9 * 10^12 needs no more than 128 bits.
    let digits = u32::try_from(fraction.len()).ok().filter(|digits| *digits <= 9)?;
    let value: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    u64::try_from(value * u128::from(factor) / 10u128.pow(digits)).ok()
}

/// An amount of bytes to print: three digits and a decimal unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size(pub(crate) u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, factor) = match self.0 {
            0..1_000 => return write!(f, "{} B", self.0),
            1_000..1_000_000 => ("kB", 1e3),
            1_000_000..1_000_000_000 => ("MB", 1e6),
            1_000_000_000..1_000_000_000_000 => ("GB", 1e9),
            _ => ("TB", 1e12),
        };
        let value = self.0 as f64 / factor;
        let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
        write!(f, "{value:.decimals$} {unit}")
    }
}

/// Bits per second to print: three digits and a decimal unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) bytes: u64,
    pub(crate) duration: Duration,
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.duration.is_zero() {
            return f.write_str("0 bit/s");
        }
        let bits = self.bytes as f64 * 8.0 / self.duration.as_secs_f64();
        // The unit of what will be printed: 999.9 of one are rounded to 1 of the next.
        let (value, unit) = match bits {
            ..999.5 => return write!(f, "{bits:.0} bit/s"),
            ..999.5e3 => (bits / 1e3, "kbit/s"),
            ..999.5e6 => (bits / 1e6, "Mbit/s"),
            _ => (bits / 1e9, "Gbit/s"),
        };
        let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
        write!(f, "{value:.decimals$} {unit}")
    }
}

#[cfg(test)]
mod tests;
