//! What this process has used so far.

use std::time::Duration;

use anyhow::Context;
use rustix::time::{ClockId, clock_gettime};

/// CPU time of all threads.
pub(super) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Memory that is in RAM, by what Linux says.
pub(super) fn resident_mebibytes() -> anyhow::Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")
        .context("memory is read from /proc, which only Linux has")?;
    let kibibytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
    let kibibytes: f64 = kibibytes.context("/proc/self/status has no VmRSS")?.trim().parse()?;
    Ok(kibibytes / 1024.0)
}
