//! Ids of jobs, pools and workers: 12 random bytes in lower-case hex, as in the Go library.

use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

const ID_BYTES: usize = 12;
/// Ids made from one request to the system for random bytes: it costs more than the id itself.
const IDS_PER_REFILL: usize = 64;

/// A fresh id: 24 characters.
pub fn random_id() -> String {
    thread_local! {
        static POOL: RefCell<(usize, [u8; ID_BYTES * IDS_PER_REFILL])> =
            const { RefCell::new((IDS_PER_REFILL, [0; ID_BYTES * IDS_PER_REFILL])) };
    }
    POOL.with_borrow_mut(|(used, bytes)| {
        if *used == IDS_PER_REFILL {
            // An id that is not random would make two pools one; there is nothing sensible to do without randomness.
            getrandom::fill(bytes).expect("the operating system gives random bytes");
            *used = 0;
        }
        let start = *used * ID_BYTES;
        *used += 1;
        hex(&bytes[start..start + ID_BYTES])
    })
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)]);
        text.push(DIGITS[usize::from(byte & 15)]);
    }
    text
}

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// A fresh random id.
            pub fn random() -> Self {
                Self(random_id().into())
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self(id.into())
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    };
}

id_type! {
    /// One registration of a worker pool: random, fresh for every start and every return after a removal.
    PoolId
}

id_type! {
    /// One worker: a slot of a pool.
    WorkerId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_24_lower_case_hex_digits_and_differ() {
        let ids: std::collections::HashSet<_> = (0..1000).map(|_| random_id()).collect();
        assert_eq!(ids.len(), 1000);
        for id in ids {
            assert_eq!(id.len(), 24);
            assert!(id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')), "{id}");
        }
    }
}
