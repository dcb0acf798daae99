//! When a response was made (RFC 9110 §6.6.1).

use std::cell::RefCell;
use std::time::SystemTime;

use http::header::{DATE, HeaderMap, HeaderValue};

/// Adds the date of now where there is none. A clock that tells no year of four digits tells no date.
pub(crate) fn add_to(headers: &mut HeaderMap) {
    if !headers.contains_key(DATE)
        && let Some(date) = of_now()
    {
        headers.insert(DATE, date);
    }
}

/// Seconds between 1970 and the year 10000.
const SECONDS_MAX: u64 = 253_402_300_800;

thread_local! {
    /// The second that was told last, and its words: they are made once a second, and no thread waits for another.
    static LAST: RefCell<Option<(u64, HeaderValue)>> = const { RefCell::new(None) };
}

fn of_now() -> Option<HeaderValue> {
    #[allow(
        clippy::disallowed_methods,
        reason = "the time of the world is told to clients, and nothing goes by it"
    )]
    let now = SystemTime::now();
    let second = now.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs();
    if second >= SECONDS_MAX {
        return None;
    }
    LAST.with_borrow_mut(|last| match last {
        Some((of, words)) if *of == second => Some(words.clone()),
        _ => {
            let words = HeaderValue::from_str(&httpdate::fmt_http_date(now)).ok()?;
            *last = Some((second, words.clone()));
            Some(words)
        }
    })
}
