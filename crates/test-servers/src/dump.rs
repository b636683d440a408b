//! The exact state of a server, as a map that a test compares with `assert_eq!`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::{RedisServer, Reply};

/// Reads all at once, so that running workers cannot change one key while another is read.
const DUMP: &str = r"
local dump = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  local kind = redis.call('TYPE', key).ok
  local content
  if kind == 'string' then content = { redis.call('GET', key) }
  elseif kind == 'list' then content = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'set' then content = redis.call('SMEMBERS', key)
  elseif kind == 'zset' then content = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'hash' then content = redis.call('HGETALL', key)
  else content = {} end
  dump[#dump + 1] = { key, kind, content }
end
return dump
";

/// A key's type and content, byte for byte.
#[derive(Clone, PartialEq)]
pub enum Value {
    /// A string.
    String(Vec<u8>),
    /// A list, from its head (where `LPUSH` adds) to its tail.
    List(Vec<Vec<u8>>),
    /// A set.
    Set(BTreeSet<Vec<u8>>),
    /// A sorted set, in the server's order: by score, then by member.
    SortedSet(Vec<(Vec<u8>, f64)>),
    /// A hash.
    Hash(BTreeMap<Vec<u8>, Vec<u8>>),
}

impl Value {
    /// An expected string.
    pub fn string(bytes: impl AsRef<[u8]>) -> Value {
        Value::String(bytes.as_ref().to_vec())
    }

    /// An expected list, from head to tail.
    pub fn list<T: AsRef<[u8]>>(items: impl IntoIterator<Item = T>) -> Value {
        Value::List(items.into_iter().map(|item| item.as_ref().to_vec()).collect())
    }

    /// An expected set.
    pub fn set<T: AsRef<[u8]>>(members: impl IntoIterator<Item = T>) -> Value {
        Value::Set(members.into_iter().map(|member| member.as_ref().to_vec()).collect())
    }

    /// An expected sorted set: members with their scores, in order.
    pub fn sorted_set<T: AsRef<[u8]>>(members: impl IntoIterator<Item = (T, f64)>) -> Value {
        Value::SortedSet(
            members.into_iter().map(|(member, score)| (member.as_ref().to_vec(), score)).collect(),
        )
    }

    /// An expected hash: fields with their values.
    pub fn hash<F: AsRef<[u8]>, V: AsRef<[u8]>>(fields: impl IntoIterator<Item = (F, V)>) -> Value {
        let owned = |(field, value): (F, V)| (field.as_ref().to_vec(), value.as_ref().to_vec());
        Value::Hash(fields.into_iter().map(owned).collect())
    }

    fn from_reply(key: &str, kind: &str, content: &[Reply]) -> Value {
        let bytes = |reply: &Reply| reply.bytes().to_vec();
        let pairs = || content.chunks_exact(2).map(|pair| (bytes(&pair[0]), &pair[1]));
        match kind {
            "string" => Value::String(bytes(&content[0])),
            "list" => Value::List(content.iter().map(bytes).collect()),
            "set" => Value::Set(content.iter().map(bytes).collect()),
            "zset" => {
                Value::SortedSet(pairs().map(|(member, score)| (member, parsed_score(score))).collect())
            }
            "hash" => Value::Hash(pairs().map(|(field, value)| (field, bytes(value))).collect()),
            other => panic!("key {key:?} is a {other}, which `dump` does not read"),
        }
    }
}

fn parsed_score(reply: &Reply) -> f64 {
    reply.text().parse().unwrap_or_else(|_| panic!("{reply:?} is no score"))
}

impl RedisServer {
    /// Every key of database 0 that begins with `prefix`, with its content, all read at the same moment.
    ///
    /// # Panics
    /// On keys of other types than [`Value`] knows, and on keys that are not UTF-8.
    #[track_caller]
    pub fn dump(&self, prefix: &str) -> BTreeMap<String, Value> {
        self.dump_db(0, prefix)
    }

    /// As [`RedisServer::dump`], of the database with this number.
    ///
    /// # Panics
    /// As [`RedisServer::dump`].
    #[track_caller]
    pub fn dump_db(&self, database: u32, prefix: &str) -> BTreeMap<String, Value> {
        let mut client = self.connect();
        client.run(&["SELECT", &database.to_string()]);
        let dump = client.run(&["EVAL", DUMP, "0", &pattern_of(prefix)]);
        let value_of = |entry: &Reply| {
            let [key, kind, content] = entry.list() else { panic!("the dump holds {entry:?}") };
            (key.text().to_owned(), Value::from_reply(key.text(), kind.text(), content.list()))
        };
        dump.list().iter().map(value_of).collect()
    }
}

/// The `KEYS` pattern for a literal prefix.
fn pattern_of(prefix: &str) -> String {
    let mut pattern = String::new();
    for letter in prefix.chars() {
        if "*?[]^\\".contains(letter) {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern.push('*');
    pattern
}

/// Bytes as text, as far as they are text.
struct Shown<'a>(&'a [u8]);

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match std::str::from_utf8(self.0) {
            Ok(text) => write!(f, "{text:?}"),
            Err(_) => write!(f, "b\"{}\"", self.0.escape_ascii()),
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::String(bytes) => write!(f, "string {:?}", Shown(bytes)),
            Value::List(items) => {
                f.write_str("list ")?;
                f.debug_list().entries(items.iter().map(|item| Shown(item))).finish()
            }
            Value::Set(members) => {
                f.write_str("set ")?;
                f.debug_set().entries(members.iter().map(|member| Shown(member))).finish()
            }
            Value::SortedSet(members) => {
                f.write_str("sorted set ")?;
                f.debug_list().entries(members.iter().map(|(member, score)| (Shown(member), score))).finish()
            }
            Value::Hash(fields) => {
                f.write_str("hash ")?;
                f.debug_map()
                    .entries(fields.iter().map(|(field, value)| (Shown(field), Shown(value))))
                    .finish()
            }
        }
    }
}
