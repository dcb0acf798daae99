//! What a calendar and a clock show, as RFC 3339 writes it.

use std::time::Duration;

const SECONDS_OF_DAY: u64 = 86_400;

/// Days from 1 March of the year 0 to 1 January 1970, in the Gregorian calendar.
const DAYS_TO_1970: u64 = 719_468;

/// Days of 400 years, after which the calendar repeats.
const DAYS_OF_ERA: u64 = 146_097;

/// The time so long after the beginning of 1970 (UTC), to the millisecond: `2026-11-01T12:00:00.000Z`.
pub fn rfc3339(since_1970: Duration) -> String {
    let seconds = since_1970.as_secs();
    let (year, month, day) = date(seconds / SECONDS_OF_DAY);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    let millis = since_1970.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Year, month and day, so many days after 1 January 1970. Years are counted from March, so that the day that only some
/// years have is their last.
fn date(days_since_1970: u64) -> (u64, u64, u64) {
    let days = days_since_1970 + DAYS_TO_1970;
    let (era, of_era) = (days / DAYS_OF_ERA, days % DAYS_OF_ERA);
    // A leap day each 4 years, but for each 100, and yet each 400.
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Five months from March on have 153 days, and so have the five that follow.
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_that_are_known() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_709_164_800, "2024-02-29T00:00:00.000Z"),
            (1_740_787_200, "2025-03-01T00:00:00.000Z"),
            (1_795_284_245, "2026-11-21T18:04:05.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(Duration::from_secs(seconds)), text);
        }
        assert_eq!(rfc3339(Duration::from_millis(1_999)), "1970-01-01T00:00:01.999Z");
    }

    #[test]
    fn days_follow_one_another() {
        let days = (0..200_000).map(date);
        let next = days.clone().skip(1);
        for (before, after) in days.zip(next) {
            let (year, month, day) = before;
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let length = match month {
                2 => 28 + u64::from(leap),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            let expected = match (day == length, month) {
                (false, _) => (year, month, day + 1),
                (true, 12) => (year + 1, 1, 1),
                (true, _) => (year, month + 1, 1),
            };
            assert_eq!(after, expected, "after {before:?}");
        }
    }
}
