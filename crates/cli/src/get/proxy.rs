//! Proxies that the environment names. None is used, which whoever relies on one has to know.

use super::Url;

/// The variables that name a proxy for `https`, and those that name servers without one, as curl has them.
const PROXIES: [&str; 4] = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
const EXCEPTIONS: [&str; 2] = ["no_proxy", "NO_PROXY"];

/// A sentence about a proxy that is set for one of the URLs. Its address may hold a secret, and is not told.
pub(super) fn unused(urls: &[String], variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let is_set = |name: &&&str| variable(name).is_some_and(|value| !value.trim().is_empty());
    let name = PROXIES.iter().find(is_set)?;
    let exceptions = EXCEPTIONS.iter().find_map(|name| variable(name)).unwrap_or_default();
    let hosts = urls.iter().filter_map(|url| Url::of_user(url).ok()).map(|url| url.authority.host);
    let host = hosts.into_iter().find(|host| !is_excepted(host, &exceptions))?;
    Some(format!("{name} is set, and not followed: {host} is asked directly (NO_PROXY or -q silence this)"))
}

/// Whether a list of names and addresses has a host, or a domain that it is part of.
fn is_excepted(host: &str, exceptions: &str) -> bool {
    let host = host.trim_end_matches('.');
    let mut names = exceptions.split([',', ' ']).map(|name| name.trim().to_ascii_lowercase());
    names.any(|name| {
        let name = name.trim_start_matches('[').trim_end_matches(']');
        let domain = name.trim_start_matches('.');
        let is_part = || host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
        !domain.is_empty() && (name == "*" || host == domain || is_part())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a word is said of a proxy for `https://www.example.org/` in this environment.
    fn is_told(environment: &[(&str, &str)]) -> bool {
        let value = |name: &str| {
            environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        unused(&["https://www.example.org/".to_owned()], value).is_some()
    }

    #[test]
    fn a_proxy_for_https_is_told_of() {
        for name in PROXIES {
            assert!(is_told(&[(name, "http://proxy:3128")]), "{name}");
        }
        assert!(!is_told(&[]));
        assert!(!is_told(&[("https_proxy", "")]));
        assert!(!is_told(&[("http_proxy", "http://proxy:3128")]));
    }

    #[test]
    fn servers_without_a_proxy_are_not_told_of() {
        for (exceptions, told) in [
            ("*", false),
            ("example.org", false),
            ("a.test, .example.org", false),
            ("WWW.example.org", false),
            ("ample.org", true),
            ("example.com,,", true),
            ("", true),
        ] {
            let environment = [("HTTPS_PROXY", "http://secret@proxy"), ("NO_PROXY", exceptions)];
            assert_eq!(is_told(&environment), told, "{exceptions}");
        }
    }
}
