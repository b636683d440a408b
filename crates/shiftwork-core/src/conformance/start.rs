//! `start`: freeing unique keys.

use super::*;
use crate::store::Start;

/// A job frees the key that it holds itself, not one that another job has taken since.
pub async fn only_the_owners_key_is_freed(subject: &impl Subject) {
    let store = subject.store();
    store.push(&[unique_push("a", "1", "a:x\n"), unique_push("a", "2", "a:y\n")]).await.expect("a push");
    let start = |keys: &[&str], owner: &str| Start {
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        owner: owner.to_owned(),
    };
    store.start(&[]).await.expect("a start");
    store.start(&[start(&["a:x\n", "a:none\n"], "1"), start(&["a:y\n"], "1")]).await.expect("a start");
    let held = subject.snapshot().await.unique;
    assert_eq!(held.into_iter().collect::<Vec<_>>(), [("a:y\n".to_owned(), "2".to_owned())]);
    assert_eq!(
        store.push(&[unique_push("a", "3", "a:x\n")]).await.expect("a push").value,
        [Pushed::Enqueued]
    );
}

/// The Go library writes no owner.
pub async fn a_key_set_by_go_is_freed(subject: &impl Subject) {
    let store = subject.store();
    subject.set_unique("a:x\n", "1").await;
    assert_eq!(
        store.push(&[unique_push("a", "mine", "a:x\n")]).await.expect("a push").value,
        [Pushed::Duplicate]
    );
    store.start(&[Start { keys: vec!["a:x\n".to_owned()], owner: "any".to_owned() }]).await.expect("a start");
    assert_eq!(subject.snapshot().await.unique.len(), 0);
}
