//! Ages in kubectl's format.

use jiff::Timestamp;

/// Returns an age as in kubectl's column AGE.
pub fn age(since: Option<Timestamp>, now: Timestamp) -> String {
    let Some(since) = since else { return "<unknown>".to_owned() };
    duration(now.as_second().saturating_sub(since.as_second()))
}

/// Formats seconds; two units where the larger one alone would be too coarse.
fn duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let two = |big: i64, big_name: &str, small: i64, small_name: &str| match (
        seconds / big,
        seconds % big / small,
    ) {
        (whole, 0) => format!("{whole}{big_name}"),
        (whole, rest) => format!("{whole}{big_name}{rest}{small_name}"),
    };
    match seconds {
        ..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(MINUTE, "m", 1, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(HOUR, "h", MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(DAY, "d", HOUR, "h"),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two(YEAR, "y", DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_as_kubectls() {
        let cases = [
            (-3, "0s"),
            (119, "119s"),
            (125, "2m5s"),
            (599, "9m59s"),
            (660, "11m"),
            (10_860, "3h1m"),
            (100_000, "27h"),
            (180_000, "2d2h"),
            (864_000, "10d"),
            (70_000_000, "2y80d"),
        ];
        for (seconds, text) in cases {
            assert_eq!(duration(seconds), text);
        }
        assert_eq!(age(None, Timestamp::UNIX_EPOCH), "<unknown>");
    }
}
