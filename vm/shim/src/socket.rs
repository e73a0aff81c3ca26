//! The shim's socket, a file of the machine at which containerd finds it.
//!
//! containerd's library removes it at the shim's end, with its path from the bundle. That is too late if containerd has removed the bundle,
//! and does not happen if the shim is killed.

use nix::sys::socket::{UnixAddr, getsockname};
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::fd::RawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// The number of the descriptor with which containerd's library passes the socket to the shim.
const DESCRIPTOR: RawFd = 3;
/// The file of a bundle with the socket's address.
const ADDRESS: &str = "address";

/// The socket that this process serves.
#[derive(Debug)]
pub(crate) struct Socket {
    path: PathBuf,
    file: [u64; 2],
}

impl Socket {
    /// Finds it, if this process is a shim. To be called before other files are opened.
    pub fn of_this_process() -> Option<Socket> {
        let path = getsockname::<UnixAddr>(DESCRIPTOR).ok()?.path()?.to_path_buf();
        let file = identity(&std::fs::symlink_metadata(&path).ok()?);
        Some(Socket { path, file })
    }

    /// Closes it in a process that was forked from the shim and does not serve it: it may live longer, and containerd would wait for the
    /// answers of a shim that has ended.
    ///
    /// # Safety
    /// Nothing uses the descriptor again in this process.
    pub unsafe fn close() {
        // SAFETY: by the contract.
        unsafe { rustix::io::close(DESCRIPTOR) };
    }

    /// Removes it, if it has not been replaced by that of another shim.
    pub fn remove(self) {
        if std::fs::symlink_metadata(&self.path).is_ok_and(|data| identity(&data) == self.file) {
            let _ = std::fs::remove_file(self.path);
        }
    }
}

/// Removes the socket of a bundle's shim, if that was killed. Containers of a pod have one shim, which may serve others.
pub(crate) fn remove_unserved(bundle: &Path) {
    let Ok(address) = std::fs::read_to_string(bundle.join(ADDRESS)) else { return };
    let Some(path) = address.trim().strip_prefix("unix://") else { return };
    if UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
        let _ = std::fs::remove_file(path);
    }
}

/// Device and inode.
fn identity(data: &Metadata) -> [u64; 2] {
    [data.dev(), data.ino()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn unserved() {
        let bundle = std::env::temp_dir().join(format!("weir-shim-socket-{}", std::process::id()));
        std::fs::create_dir(&bundle).unwrap();
        let path = bundle.join("socket");
        remove_unserved(&bundle);
        std::fs::write(bundle.join(ADDRESS), format!("unix://{}", path.display())).unwrap();
        let listener = UnixListener::bind(&path).unwrap();
        remove_unserved(&bundle);
        assert!(path.exists(), "it is served");
        drop(listener);
        remove_unserved(&bundle);
        assert!(!path.exists());
        std::fs::remove_dir_all(&bundle).unwrap();
    }

    #[test]
    fn replaced() {
        let path = std::env::temp_dir().join(format!("weir-shim-replaced-{}", std::process::id()));
        let _first = UnixListener::bind(&path).unwrap();
        let socket = || Socket { path: path.clone(), file: identity(&std::fs::symlink_metadata(&path).unwrap()) };
        let first = socket();
        // The inode stays in use, so that the second socket has another.
        let kept = path.with_extension("kept");
        std::fs::rename(&path, &kept).unwrap();
        let _second = UnixListener::bind(&path).unwrap();
        first.remove();
        assert!(path.exists(), "it is another's");
        socket().remove();
        assert!(!path.exists());
        std::fs::remove_file(kept).unwrap();
    }
}
