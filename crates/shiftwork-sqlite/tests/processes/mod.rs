//! Other processes that work on a file: this test program, run again with something to do.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use shiftwork_core::job::PoolId;
use shiftwork_core::store::{Destination, Exchange, Finish, Store};
use shiftwork_sqlite::SqliteStore;

use super::{all_of, push};

/// Starts a process that does `what` with the file.
pub(crate) fn start(what: &str, path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["processes::other_process", "--exact", "--nocapture", "--include-ignored"])
        .env("OTHER_PROCESS", what)
        .env("OTHER_PROCESS_FILE", path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What it said at its end.
pub(crate) fn output(mut child: Child) -> String {
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success(), "{text}");
    let said =
        text.lines().find_map(|line| line.split_once("said: ")).map(|(_, said)| said.trim().to_owned());
    said.unwrap_or_else(|| panic!("it said nothing: {text}"))
}

pub(crate) fn run(what: &str, path: &Path) -> String {
    output(start(what, path))
}

#[tokio::test]
#[ignore = "not a test, but what the other processes of the tests do"]
async fn other_process() {
    let Ok(what) = std::env::var("OTHER_PROCESS") else { return };
    let store = SqliteStore::open(std::env::var_os("OTHER_PROCESS_FILE").unwrap()).await.unwrap();
    match what.as_str() {
        "push" => {
            store.push(&[push("a", 0)]).await.unwrap();
            println!("said: pushed");
        }
        "drain" => println!("said: {}", drain(&store).await),
        "claim" => loop {
            store.claim(&PoolId::random(), all_of("a", 3)).await.unwrap();
        },
        other => panic!("nobody knows how to {other}"),
    }
}

async fn drain(store: &SqliteStore) -> usize {
    let pool = PoolId::random();
    let (mut done, mut finishes) = (0, Vec::new());
    loop {
        let request = Exchange { pool: pool.clone(), finishes, claim: all_of("a", 20) };
        let claims = store.exchange(&request).await.unwrap().value.claims;
        if claims.is_empty() {
            return done;
        }
        done += claims.len();
        finishes = claims.into_iter().map(|claim| Finish { claim, to: Destination::Gone }).collect();
    }
}
