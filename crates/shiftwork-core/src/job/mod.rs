//! Jobs as they travel: the envelope byte for byte, names, ids, arguments and unique keys.
//!
//! Everything here is a pure function of bytes. The form is that of the Go library gocraft/work (Kuper-Tech fork), with which
//! a namespace may be shared; tests hold it to vectors measured from that library.

mod decode;
mod encode;
mod envelope;
mod go_json;
mod id;
mod name;
mod patch;
mod rewrite;
mod scan;
mod unique;

pub use decode::decode_args;
pub use encode::{ArgsError, NewJob, args_from_json, args_to_json, wrap_malformed};
pub use envelope::{MalformedJob, RawJob};
pub use go_json::{EncodeError, to_vec as to_go_json};
pub use id::{PoolId, WorkerId, random_id};
pub use name::{JobName, NameError};
pub use patch::{MAX_ERROR_BYTES, Patch};
pub use unique::{unique_key, unique_keys_to_free};
