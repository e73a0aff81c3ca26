//! Sizes and times with units.

use std::time::Duration;

/// Parses a number of bytes, or of binary units: `65536`, `64K`, `1.5G`, `512MiB`.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    let error = || "expected a size, such as 65536, 64K, 512M or 1G".to_string();
    let (number, unit) = split(text);
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => return Err(error()),
    };
    let bytes = multiple(number, factor).ok_or_else(error)?;
    bytes.and_then(|bytes| usize::try_from(bytes).ok()).ok_or_else(|| format!("{text} is more than this system can address"))
}

/// Returns this decimal number of units of `factor`: `None` if it is not one, and `Some(None)` if it is too large. Only units above one have
/// fractions.
fn multiple(number: &str, factor: u64) -> Option<Option<u64>> {
    match number.parse::<u64>() {
        Ok(number) => Some(number.checked_mul(factor)),
        // `f64` represents fractions of units well enough.
        Err(_) if factor > 1 && number.contains('.') => {
            let product = number.parse::<f64>().ok()? * factor as f64;
            Some((product < u64::MAX as f64).then_some(product as u64))
        }
        Err(_) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => Some(None),
        Err(_) => None,
    }
}

/// As [`size`], but not zero.
pub(crate) fn size_above_zero(text: &str) -> Result<usize, String> {
    size(text).and_then(|bytes| if bytes > 0 { Ok(bytes) } else { Err("expected a size above zero".into()) })
}

/// Parses a number of units of fuel, or of thousands, millions or billions of them: `100000`, `100k`, `1.5M`, `2G`.
pub(crate) fn fuel(text: &str) -> Result<u64, String> {
    let error = || "expected a number of units of fuel, such as 100000, 100k, 1.5M or 2G".to_string();
    let (number, unit) = split(text);
    let factor = match unit {
        "" => 1,
        "k" | "K" => 1_000,
        "m" | "M" => 1_000_000,
        "g" | "G" => 1_000_000_000,
        _ => return Err(error()),
    };
    multiple(number, factor).ok_or_else(error)?.ok_or_else(|| format!("{text} is more than the largest amount, {}", u64::MAX))
}

/// Parses a positive time, in seconds if it has no unit: `5`, `0.5`, `5s`, `100ms`, `2m`, `1h`, `1m30s`.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let error = || "expected a time, such as 5, 0.5s, 100ms, 2m or 1m30s".to_string();
    let (mut seconds, mut rest) = (0.0, text);
    loop {
        let (number, after) = split(rest);
        let (unit, after) = after.split_at(after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len()));
        let (factor, divisor) = match unit {
            // Alone, because 1m30 may be meant as 1h30.
            "" if rest == text && after.is_empty() => (1.0, 1.0),
            "s" => (1.0, 1.0),
            "us" => (1.0, 1e6),
            "ms" => (1.0, 1e3),
            "m" | "min" => (60.0, 1.0),
            "h" => (3600.0, 1.0),
            _ => return Err(error()),
        };
        seconds += number.parse::<f64>().map_err(|_| error())? * factor / divisor;
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    match Duration::try_from_secs_f64(seconds) {
        Ok(Duration::ZERO) => Err("expected a time above zero".into()),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}

/// Shows a number of bytes in the largest unit of which there are at least ten.
pub(crate) fn show(bytes: u64) -> String {
    let units = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.into_iter().find(|(unit, _)| bytes / unit >= 10);
    unit.map_or_else(|| format!("{bytes} bytes"), |(unit, name)| format!("{} {name}", bytes / unit))
}

/// Splits a number from its unit.
fn split(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let right: [(&str, u64); 9] = [
            ("0", 0),
            ("131072", 131072),
            ("64K", 65536),
            ("64KiB", 65536),
            ("512M", 512 << 20),
            ("1G", 1 << 30),
            ("1.5g", 3 << 29),
            ("2tb", 2 << 40),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, bytes) in right {
            assert_eq!(size(text), Ok(bytes as usize), "{text}");
        }
        for text in ["", "G", "-1", "+1", "1x", "1.5", "0x10", "1 G", "lots", "1.2.3G", ".", ".G"] {
            assert!(size(text).is_err_and(|message| message.starts_with("expected a size")), "{text}");
        }
        for text in ["18446744073709551616", "16777216T", "99999999.5T"] {
            assert!(size(text).is_err_and(|message| message.contains("more than")), "{text}");
        }
    }

    #[test]
    fn amounts_of_fuel() {
        let right = [("0", 0), ("100000", 100_000), ("100k", 100_000), ("1.5M", 1_500_000), ("2G", 2_000_000_000)];
        for (text, units) in right {
            assert_eq!(fuel(text), Ok(units), "{text}");
        }
        for text in ["", "k", "-1", "1.5", "1KiB", "1x", "1 k"] {
            assert!(fuel(text).is_err_and(|message| message.starts_with("expected a number of units of fuel")), "{text}");
        }
        assert!(fuel("18446744074G").is_err_and(|message| message.contains("more than")));
    }

    #[test]
    fn times() {
        let right = [
            ("5", 5000),
            ("0.2", 200),
            ("5s", 5000),
            ("100ms", 100),
            ("1500us", 1),
            ("2m", 120_000),
            ("1.5h", 5_400_000),
            ("1m30s", 90_000),
            ("1h2min3s4ms", 3_723_004),
        ];
        for (text, millis) in right {
            assert_eq!(time(text).map(|time| time.as_millis()), Ok(millis), "{text}");
        }
        for text in ["", "s", "0", "0ms", "-1", "soon", "5 s", "5d", "1.2.3", "1m30", "1mm", "1m-1s", "1e400", "nan", "inf"] {
            assert!(time(text).is_err(), "{text}");
        }
        assert!(time("99999999999999999999999h").is_err());
    }

    #[test]
    fn bytes_are_shown() {
        let shown = [0, 10239, 10240, (10 << 20) + 5, 9 << 30, u64::MAX].map(show);
        assert_eq!(shown, ["0 bytes", "10239 bytes", "10 KiB", "10 MiB", "9216 MiB", "16777215 TiB"]);
    }
}
