//! Unique keys: what keeps a second job with the same name and arguments out of the queue.

use super::rewrite::{Numbers, rewrite};

/// The key of a job with these arguments, without the namespace and the word `unique:`.
///
/// The text is the one that a worker computes: arguments decoded and encoded as Go does, with a line feed at the end
/// (Go's encoder adds one), or nothing at all without arguments.
pub fn unique_key(name: &str, args: Option<&[u8]>) -> String {
    let Some(args) = args else { return key(name, b"", false) };
    match rewrite(args, Numbers::AsGoFloats) {
        Ok(canonical) => key(name, &canonical, true),
        // The args of a parsed job are JSON; text from elsewhere that is none is its own key.
        Err(_) => key(name, args, true),
    }
}

/// The keys under which a job with these arguments may have been pushed: that of [`unique_key`], and that of the text as
/// it is, which a Go enqueuer takes (they differ for integers beyond 2^53, say).
pub fn unique_keys_to_free(name: &str, args: Option<&[u8]>) -> Vec<String> {
    let canonical = unique_key(name, args);
    let raw = args.map(|args| key(name, args, true)).filter(|raw| *raw != canonical);
    std::iter::once(canonical).chain(raw).collect()
}

fn key(name: &str, args: &[u8], line_feed: bool) -> String {
    let mut key = String::with_capacity(name.len() + args.len() + 2);
    key.push_str(name);
    key.push(':');
    key.push_str(&super::scan::lossy(args));
    if line_feed {
        key.push('\n');
    }
    key
}
