//! New jobs, byte for byte as the Go library writes them; and what is left of items that are none.

use serde::Serialize;

use super::envelope::RawJob;
use super::go_json::{self, write_string, write_text};
use super::id::random_id;
use super::rewrite::{Numbers, rewrite};

/// Arguments that can't be sent. Says which and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ArgsError(pub(super) String);

/// A job to be written.
#[derive(Debug, Clone, Default)]
pub struct NewJob<'a> {
    /// The job type's name.
    pub name: &'a str,
    /// Its id; see [`random_id`].
    pub id: &'a str,
    /// When it is put into its queue (or the scheduled set), in seconds since the epoch.
    pub enqueued_at: i64,
    /// The arguments as Go-JSON text, see [`args_to_json`]; `None` for none.
    pub args: Option<&'a [u8]>,
    /// Whether it is pushed under a unique key.
    pub unique: bool,
    /// The second after which a first attempt is pointless; 0 for never.
    pub expires_at: i64,
    /// Trace context, sorted by key.
    pub trace: &'a [(String, String)],
}

impl NewJob<'_> {
    /// The job's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out =
            Vec::with_capacity(96 + self.id.len() + self.name.len() + self.args.map_or(4, <[u8]>::len));
        out.extend_from_slice(b"{\"name\":");
        write_text(&mut out, self.name);
        out.extend_from_slice(b",\"id\":");
        write_text(&mut out, self.id);
        out.extend_from_slice(b",\"t\":");
        write_integer(&mut out, self.enqueued_at);
        out.extend_from_slice(b",\"args\":");
        out.extend_from_slice(self.args.unwrap_or(b"null"));
        if self.unique {
            out.extend_from_slice(b",\"unique\":true");
        }
        if self.expires_at != 0 {
            out.extend_from_slice(b",\"d\":");
            write_integer(&mut out, self.expires_at);
        }
        if !self.trace.is_empty() {
            for (index, (key, value)) in self.trace.iter().enumerate() {
                out.extend_from_slice(if index == 0 { b",\"trace\":{" } else { b"," });
                write_text(&mut out, key);
                out.push(b':');
                write_text(&mut out, value);
            }
            out.push(b'}');
        }
        out.push(b'}');
        out
    }
}

fn write_integer(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// The arguments of a job as Go-JSON text; `None` if they are null.
///
/// They must be an object (a struct with named fields, a map) or null (a unit struct): anything else a Go worker can't
/// decode, and it would keep the job's lock for ever.
pub fn args_to_json<T: Serialize + ?Sized>(args: &T) -> Result<Option<Vec<u8>>, ArgsError> {
    let type_name = std::any::type_name::<T>();
    let text = go_json::to_vec(args)
        .map_err(|error| ArgsError(format!("the args {type_name} can't be sent: {error}")))?;
    match text.first() {
        Some(b'{') => Ok(Some(text)),
        _ if text == b"null" => Ok(None),
        first => {
            let kind = kind_of(first);
            Err(ArgsError(format!(
                "the args {type_name} serialise to {kind}, but a job's args are a JSON object or null; \
                 use a struct with named fields or a map"
            )))
        }
    }
}

/// Arguments that are JSON text already, in Go's form: compact, keys sorted, numbers as written.
pub fn args_from_json(text: &[u8]) -> Result<Option<Vec<u8>>, ArgsError> {
    let text =
        rewrite(text, Numbers::Keep).map_err(|error| ArgsError(format!("the args are not JSON: {error}")))?;
    match text.first() {
        Some(b'{') => Ok(Some(text)),
        _ if text == b"null" => Ok(None),
        first => {
            let kind = kind_of(first);
            Err(ArgsError(format!(
                "the args are {kind}, but a job's args are a JSON object or null; write {{\"…\": …}}"
            )))
        }
    }
}

fn kind_of(first: Option<&u8>) -> &'static str {
    match first {
        Some(b'[') => "a list",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        _ => "a number",
    }
}

/// An item that is not a job, as a job for the dead set: the bytes are kept in its args, as text if they are text, else
/// in base64.
pub fn wrap_malformed(name: &str, bytes: &[u8], reason: &str, now: i64) -> RawJob {
    let mut args = Vec::with_capacity(bytes.len() + 24);
    match std::str::from_utf8(bytes) {
        Ok(_) => {
            args.extend_from_slice(b"{\"_raw\":");
            write_string(&mut args, bytes);
        }
        Err(_) => {
            args.extend_from_slice(b"{\"_raw_base64\":");
            write_text(&mut args, &base64(bytes));
        }
    }
    args.push(b'}');
    let job =
        NewJob { name, id: &random_id(), enqueued_at: now, args: Some(&args), ..NewJob::default() }.encode();
    let job = RawJob::parse(job).expect("what is encoded here is a job");
    job.patch().fails(1).error(reason).failed_at(now).build()
}

/// Standard base64 with padding (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let block =
            chunk.iter().fold(0u32, |block, byte| block << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let index = (block >> (18 - 6 * digit)) & 63;
            text.push(if digit <= chunk.len() { char::from(DIGITS[index as usize]) } else { '=' });
        }
    }
    text
}
