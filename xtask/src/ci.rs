//! `cargo xtask ci`: everything that has to pass.

use xshell::{Shell, cmd};

use crate::{test, tidy};

/// Each builds alone, and none, too.
const FEATURES: [&str; 5] = ["", "redis", "tls", "sqlite", "health"];

pub(crate) fn run(shell: &Shell) -> anyhow::Result<()> {
    cmd!(shell, "cargo fmt --all --check").run()?;
    tidy::run(shell)?;
    cmd!(shell, "cargo clippy --workspace --all-targets --all-features -- -D warnings").run()?;
    for features in FEATURES {
        cmd!(
            shell,
            "cargo clippy --package shiftwork --no-default-features --features {features} -- -D warnings"
        )
        .run()?;
    }
    // Features of serde_json that some other crate of a user's program may switch on.
    cmd!(shell, "cargo test --package shiftwork-core --test wire --features serde_json/arbitrary_precision,serde_json/preserve_order")
        .run()?;
    {
        let _strict = shell.push_env("RUSTDOCFLAGS", "-D warnings");
        cmd!(shell, "cargo doc --workspace --no-deps --all-features").run()?;
    }
    cmd!(
        shell,
        "cargo package --workspace --exclude test-servers --exclude xtask --no-verify --allow-dirty --quiet"
    )
    .run()?;
    test::run(shell, &[])
}
