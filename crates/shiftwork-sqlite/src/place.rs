//! Where the file is, and whether it can be there.

use std::path::{Path, PathBuf};

use shiftwork_core::Error;

/// The path without links and dots, so that two names of one file are seen to be one. The file need not exist yet.
pub(crate) fn canonical(path: &Path) -> Result<PathBuf, Error> {
    let Some(name) = path.file_name() else {
        return Err(Error::config(format!(
            "{:?} names no file; write sqlite:PATH with the path of a file, or sqlite::memory:",
            path.display().to_string()
        )));
    };
    if let Ok(existing) = path.canonicalize() {
        return match existing.is_dir() {
            true => Err(Error::config(format!(
                "{} is a directory; add the name of a file in it, such as {}",
                path.display(),
                path.join("jobs.db").display()
            ))),
            false => Ok(existing),
        };
    }
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let directory = directory.canonicalize().map_err(|error| {
        Error::config(format!(
            "the directory {} can't be used ({error}); make it first, or name a file somewhere else",
            directory.display()
        ))
    })?;
    Ok(directory.join(name))
}

/// Refuses a file on a network file system: SQLite's shared memory and file locks don't work across machines, and the
/// file would be damaged.
pub(crate) fn refuse_network(path: &Path) -> Result<(), Error> {
    match network_file_system(path) {
        Some(kind) => Err(Error::config(format!(
            "{} is on a network file system ({kind}), where SQLite can't keep the file whole; name a file on a local disk, \
             or use Redis for more than one machine",
            path.display()
        ))),
        None => Ok(()),
    }
}

#[cfg(target_os = "linux")]
fn network_file_system(path: &Path) -> Option<&'static str> {
    let directory = path.parent()?;
    let magic = rustix::fs::statfs(directory).ok()?.f_type;
    // The numbers are 32 bits wide; some platforms sign-extend them.
    kind_of(magic as u32)
}

#[cfg(not(target_os = "linux"))]
fn network_file_system(_: &Path) -> Option<&'static str> {
    None
}

/// The name of the network file system with this magic number, from Linux's statfs(2).
#[cfg(target_os = "linux")]
fn kind_of(magic: u32) -> Option<&'static str> {
    match magic {
        0x6969 => Some("NFS"),
        0x517b => Some("SMB"),
        0xff53_4d42 | 0xfe53_4d42 => Some("CIFS"),
        0x0102_1997 => Some("9P"),
        0x00c3_6400 => Some("Ceph"),
        0x0bd0_0bd0 => Some("Lustre"),
        0x5346_414f | 0x6b41_4653 => Some("AFS"),
        0x7375_7245 => Some("Coda"),
        _ => None,
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_told_from_local_ones() {
        assert_eq!(kind_of(0x6969), Some("NFS"));
        assert_eq!(kind_of(0xff53_4d42), Some("CIFS"));
        for local in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630] {
            assert_eq!(kind_of(local), None, "{local:#x}");
        }
        assert_eq!(network_file_system(Path::new("/proc/self/jobs.db")), None);
    }

    #[test]
    fn two_names_of_one_file_are_one() {
        let directory = tempfile::tempdir().unwrap();
        let plain = directory.path().canonicalize().unwrap().join("jobs.db");
        let dotted = directory.path().join("./jobs.db");
        assert_eq!(canonical(&dotted).unwrap(), plain);
        std::fs::write(&plain, "").unwrap();
        let link = directory.path().join("link.db");
        std::os::unix::fs::symlink(&plain, &link).unwrap();
        assert_eq!(canonical(&link).unwrap(), plain);
    }

    #[test]
    fn what_cannot_be_a_file_is_refused_with_a_remedy() {
        let directory = tempfile::tempdir().unwrap();
        let message = |path: &Path| canonical(path).unwrap_err().to_string();
        assert!(message(directory.path()).contains("jobs.db"));
        assert!(message(&directory.path().join("no/such/jobs.db")).contains("make it first"));
        assert!(message(Path::new("/")).contains("names no file"));
    }
}
