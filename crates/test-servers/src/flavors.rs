//! Which server programs a test can run on: the installed Redis, and what `cargo xtask test` fetched beside it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::builder::find_program;

/// Where `cargo xtask test` puts further servers, below the workspace's root: a folder for each.
const SERVERS: &str = "target/servers";
/// The programs that it looks for in such a folder.
const PROGRAMS: [&str; 2] = ["redis-server", "valkey-server"];

/// A server program, to run with [`RedisServerBuilder::binary`](crate::RedisServerBuilder::binary).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flavor {
    /// `redis` for the installed one, else the name of its folder: `redis-6.2`, `valkey`.
    pub name: String,
    /// The program.
    pub path: PathBuf,
}

/// Every server program on this machine, the installed `redis-server` first, the others by name. The list depends on
/// what could be fetched, so a test goes through it and never asks for one by name.
///
/// # Panics
/// When there is none: then a test over all of them would pass without having tested anything.
#[track_caller]
pub fn flavors() -> Vec<Flavor> {
    let mut found = Vec::new();
    if let Some(path) = find_program(Path::new("redis-server")) {
        found.push(Flavor { name: "redis".to_owned(), path });
    }
    found.extend(fetched_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(SERVERS)));
    assert!(!found.is_empty(), "there is no `redis-server`: run `cargo xtask test`, which installs it");
    found
}

fn fetched_in(servers: &Path) -> Vec<Flavor> {
    let Ok(folders) = fs::read_dir(servers) else { return Vec::new() };
    let mut found = Vec::new();
    for folder in folders.flatten() {
        let name = folder.file_name().to_string_lossy().into_owned();
        let program = PROGRAMS.iter().map(|program| folder.path().join(program)).find(|path| path.is_file());
        found.extend(program.map(|path| Flavor { name, path }));
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fetched_servers_are_found_by_their_folder() {
        let servers = tempfile::tempdir().unwrap();
        for file in ["valkey/valkey-server", "redis-6.2/redis-server", "empty/README"] {
            let path = servers.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let names: Vec<String> = fetched_in(servers.path()).into_iter().map(|flavor| flavor.name).collect();
        assert_eq!(names, ["redis-6.2", "valkey"]);
    }

    #[test]
    fn no_folder_of_servers_is_no_error() {
        assert_eq!(fetched_in(Path::new("/nonexistent")), []);
    }
}
