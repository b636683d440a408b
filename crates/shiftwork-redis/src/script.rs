//! Lua scripts by their hash, sent whole when the server does not know them.

use std::sync::LazyLock;

use redis::{Cmd, FromRedisValue, Script};
use shiftwork_core::Error;

use crate::connection::Connection;
use crate::errors::is_no_script;

/// A script and its hash.
pub(crate) struct LuaScript {
    text: &'static str,
    hash: LazyLock<String>,
}

macro_rules! scripts {
    ($($(#[$doc:meta])* $name:ident = $file:literal => $hash:ident;)*) => {
        $(
            fn $hash() -> String {
                Script::new(include_str!($file)).get_hash().to_owned()
            }
            $(#[$doc])*
            pub(crate) static $name: LuaScript =
                LuaScript { text: include_str!($file), hash: LazyLock::new($hash) };
        )*
    };
}

scripts! {
    EXCHANGE = "scripts/exchange.lua" => exchange_hash;
    PUSH_UNIQUE = "scripts/push_unique.lua" => push_unique_hash;
    START = "scripts/start.lua" => start_hash;
    RELEASE = "scripts/release.lua" => release_hash;
    DUE = "scripts/due.lua" => due_hash;
    PROMOTE = "scripts/promote.lua" => promote_hash;
    BEAT = "scripts/beat.lua" => beat_hash;
    LEAVE = "scripts/leave.lua" => leave_hash;
    TICK = "scripts/tick.lua" => tick_hash;
    OBSERVE = "scripts/observe.lua" => observe_hash;
    LOOK = "scripts/look.lua" => look_hash;
    SEEN = "scripts/seen.lua" => seen_hash;
    RECOVER = "scripts/recover.lua" => recover_hash;
    REPAIR = "scripts/repair.lua" => repair_hash;
    REAPER_LOCK = "scripts/reaper_lock.lua" => reaper_lock_hash;
}

impl LuaScript {
    /// The whole text, for pipelines: in those a script that the server does not know could not be sent again without
    /// sending all the rest again.
    pub(crate) fn text(&self) -> &'static str {
        self.text
    }

    /// Runs the script. `arguments` appends the number of keys, the keys and the arguments.
    pub(crate) async fn run<T: FromRedisValue>(
        &self,
        connection: &Connection,
        arguments: impl Fn(&mut Cmd),
    ) -> Result<T, Error> {
        let mut command = redis::cmd("EVALSHA");
        command.arg(self.hash.as_str());
        arguments(&mut command);
        match connection.try_query(&command).await {
            Err(error) if is_no_script(&error) => {
                // The script did not run, so sending it again is safe.
                let mut command = redis::cmd("EVAL");
                command.arg(self.text);
                arguments(&mut command);
                connection.query(&command).await
            }
            result => result.map_err(|error| connection.error(&error)),
        }
    }
}
