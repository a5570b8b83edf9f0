//! URLs in tables: what is parsed and printed back, and the error messages.

use super::RedisUrl;

#[test]
fn reads_and_prints_without_passwords() {
    for (text, printed) in [
        ("redis://localhost", "redis://localhost:6379"),
        ("redis://localhost/", "redis://localhost:6379"),
        ("redis://[::1]", "redis://[::1]:6379"),
        ("redis://[::1]:7000/3", "redis://[::1]:7000/3"),
        ("redis://:secret@h:1/2", "redis://:***@h:1/2"),
        ("redis://me:s%40cret@h", "redis://me:***@h:6379"),
        ("redis://me:s@cret@h", "redis://me:***@h:6379"),
        ("redis://me@h", "redis://me@h:6379"),
        ("rediss://h", "rediss://h:6379"),
        ("rediss://h?ca=/etc/ssl/our%20ca.pem", "rediss://h:6379?ca=/etc/ssl/our%20ca.pem"),
        ("redis+sentinel://a,b:2/mymaster", "redis+sentinel://a:26379,b:2/mymaster"),
        (
            "redis+sentinel://u:p@a/my/4?sentinel_password=x&sentinel_user=s&tls=true",
            "redis+sentinel://u:***@a:26379/my/4?sentinel_user=s&sentinel_password=***&tls=true",
        ),
        ("redis+cluster://a:1,b:2,c:3", "redis+cluster://a:1,b:2,c:3"),
        ("redis://h?namespace={mine}&timeout=500ms", "redis://h:6379?namespace={mine}&timeout=500ms"),
        ("redis://h?namespace=%7Bcronken%7D&output=zset", "redis://h:6379"),
        ("redis://h?peers=cronken", "redis://h:6379?peers=cronken"),
        ("redis://h?peers=none&output=list", "redis://h:6379?output=list&peers=none"),
        ("redis://h?output=list&lines=0", "redis://h:6379?output=list&lines=0"),
        ("redis://h?lease=90s", "redis://h:6379?lease=1m30s"),
        ("redis://h?lease=10m", "redis://h:6379"),
        ("redis://h?heartbeat=2s", "redis://h:6379?heartbeat=2s&stale=3s"),
        (
            "redis://h?job_results=5&all_results=50&output_ttl=1h",
            "redis://h:6379?job_results=5&all_results=50&output_ttl=1h",
        ),
    ] {
        let url = RedisUrl::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(url.to_string(), printed, "{text}");
        assert_eq!(format!("{url:?}"), format!("RedisUrl({printed})"), "{text}");
        if !printed.contains("***") {
            assert_eq!(RedisUrl::parse(printed).as_ref(), Ok(&url), "the printed URL parses again: {printed}");
        }
    }
}

#[test]
fn invalid_urls_are_rejected_with_a_hint() {
    for (text, message) in [
        (
            "localhost:6379",
            "not a URL of a Redis store (such as redis://localhost, or redis+sentinel://host1,host2/name)",
        ),
        ("reddis://h", "unknown scheme `reddis` (use redis, rediss, redis+sentinel or redis+cluster)"),
        ("redis://", "the URL names no server (such as redis://localhost:6379)"),
        ("redis://h:0", "`0` is not a port"),
        ("redis://h:port", "`port` is not a port"),
        ("redis://a,b", "`redis://` takes one server (use redis+sentinel:// or redis+cluster:// for several servers)"),
        ("redis://h/x", "`x` is not a database number"),
        ("redis://h?namespce=x", "unknown parameter `namespce` (did you mean `namespace`?)"),
        ("redis://h?heartbeat=1s&heartbeat=2s", "`heartbeat` occurs twice"),
        (
            "redis://h?heartbeat=60s&stale=45s",
            "`stale` must be longer than `heartbeat`, otherwise live runs would count as lost",
        ),
        ("redis://h?heartbeat=soon", "`heartbeat`: expected a span of time such as `15m`, `1h30m` or `90s`"),
        ("redis://h?output=stream", "`output` is `zset` or `list`, not `stream`"),
        (
            "redis://h?peers=cronken&output=zset",
            "Cronken's nodes keep output lines in lists (remove `output`, or `peers=cronken`)",
        ),
        ("redis://h?lines=many", "`lines` is a number from 0 to 10000, not `many`"),
        ("redis://h?timeout=1ms", "`timeout` must be between 50ms and 1m"),
        ("redis://h?namespace=", "`namespace` has no value"),
        ("redis://h?tls=true", "`redis://` is not encrypted (write rediss://)"),
        ("redis://h?ca=x.pem", "`ca` has no effect without TLS (write rediss://)"),
        ("redis://h?sentinel_user=x", "unknown parameter `sentinel_user` (it applies to redis+sentinel://)"),
        (
            "redis+sentinel://h",
            "the name of the Sentinel master is missing (write it after the servers: \
             redis+sentinel://host1,host2/mymaster)",
        ),
        ("redis+cluster://h/1", "a Cluster has only database 0"),
        (
            "redis+cluster://h?namespace=mine",
            "all keys must be in one slot of a Cluster: the namespace needs a {tag} (such as namespace={mine})",
        ),
        (
            "redis://h?namespace=%zz",
            "a `%` is not followed by two hexadecimal digits, or the text is not UTF-8 (write `%` as %25)",
        ),
        ("redis://u:p#x@h", "unexpected `#` (write `#` in names and passwords as %23)"),
    ] {
        let error = RedisUrl::parse(text).expect_err(text);
        assert_eq!(error.to_string(), message, "{text}");
    }
}

#[test]
fn errors_do_not_show_parts_of_passwords() {
    for text in ["redis://u:se/cret@h", "redis://u:se?cret@h", "redis://:se/cret@h:1", "redis://u:secret@h:bad"] {
        let error = RedisUrl::parse(text).expect_err(text).to_string();
        assert!(!error.contains("se/") && !error.contains("`se") && !error.contains("secret"), "{text}: {error}");
    }
}

#[test]
fn tasks_have_a_prefix() {
    let tasks = |text: &str| RedisUrl::parse(text).map(|url| (url.tasks_prefix().to_owned(), url.to_string()));
    assert_eq!(tasks("redis://h").expect("a URL").0, "");
    let (prefix, text) = tasks("redis://h?tasks=shop").expect("a URL");
    assert_eq!((prefix.as_str(), text.as_str()), ("shop", "redis://h:6379?tasks=shop"));
    assert_eq!(tasks("redis+cluster://h").expect("a URL").0, "{sidejob}");
    for wrong in ["redis://h?tasks=a*", "redis://h?tasks=a:", "redis+cluster://h?tasks=shop"] {
        let error = tasks(wrong).expect_err(wrong);
        assert!(error.hint.is_some(), "{error:?}");
    }
}

#[test]
fn sidejob_variables_name_the_server_of_tasks() {
    let found = |variables: &[(&str, &str)]| {
        let value = |name: &str| variables.iter().find(|(of, _)| *of == name).map(|(_, value)| (*value).to_owned());
        let found = RedisUrl::of_sidejob(value);
        found.map(|(name, url)| format!("{name} {}", RedisUrl::parse(&url).expect("a URL")))
    };
    assert_eq!(found(&[]), None);
    assert_eq!(found(&[("SIDEJOB_HOST", "queue")]).as_deref(), Some("SIDEJOB_HOST redis://queue:6379"));
    let both = [("SIDEJOB_HOST", "queue"), ("SIDEJOB_URL", "redis://other:6380/4")];
    assert_eq!(found(&both).as_deref(), Some("SIDEJOB_URL redis://other:6380/4"));
}
