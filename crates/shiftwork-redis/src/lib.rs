//! Shiftwork's store on Redis and Valkey, in exactly the layout of the Go library gocraft/work (Kuper-Tech fork), so that
//! Go and Rust services work the same queues.
//!
//! [`RedisStore`] is the way in. Inside: all keys are built in `keys`, each atomic verb is a script in `scripts/`, with the
//! file of the same name around it that takes arguments and replies apart; `connection` comes back by itself; `errors`
//! tells what is worth trying again; `wake` sleeps until the server reports a change.

mod audit;
mod claims;
mod connect;
mod connection;
mod due;
mod errors;
mod exchange;
mod keys;
mod periodic;
mod pools;
mod push;
mod recovery;
mod reply;
mod script;
mod store;
mod wake;

pub use connect::RedisStoreBuilder;
pub use store::RedisStore;
