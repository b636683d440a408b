//! Mistakes that users make, and the words with which the compiler tells them what to do. Each file in `compile-fail/`
//! is one mistake; its `.stderr` beside it is what the compiler says.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and runs in real time"
)]

#[test]
fn mistakes_are_explained() {
    trybuild::TestCases::new().compile_fail("tests/compile-fail/*.rs");
}
