//! `weir cache`, and the cache of `weir run`.

use crate::args::{self, CacheAction};
use crate::failure::{Done, Failure};
use crate::stats::number;
use std::io::Write;
use std::path::PathBuf;
use weir::Cache;

/// The user's cache, if the environment says where it is.
pub(crate) fn of_user() -> Option<Cache> {
    Cache::from_file(None).ok()
}

/// Returns the directories of the caches that this user's runs use: that of this run, and the one of runs without `XDG_CACHE_HOME`.
pub(crate) fn directories() -> Vec<PathBuf> {
    let mut directories = Vec::from_iter(of_user().map(|cache| cache.directory().clone()));
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    if let Some(usual) = home.map(|home| home.join(".cache/weir")).filter(|usual| !directories.contains(usual)) {
        directories.push(usual);
    }
    directories
}

/// Returns the number of files in words: a module has one, or two if it is large.
fn files(count: usize) -> String {
    number(count as u64, "file", "files")
}

/// Shows or clears the cache.
pub(crate) fn run(args: &args::Cache) -> Done {
    let cache = Cache::from_file(None).map_err(|error| Failure::Usage(error.to_string()))?;
    let failed = |error: weir::Error| Failure::Module(error.context(cache.directory().display().to_string()));
    let mut out = std::io::stdout().lock();
    match args.action {
        CacheAction::List => {
            let mut entries = cache.entries().map_err(failed)?;
            entries.sort_by_key(|entry| std::cmp::Reverse(entry.last_use));
            let bytes: u64 = entries.iter().map(|entry| entry.size).sum();
            writeln!(out, "{}: {}, {bytes} bytes", cache.directory().display(), files(entries.len()))?;
            for entry in entries {
                let age = entry.last_use.elapsed().unwrap_or_default().as_secs();
                writeln!(out, "{:12} {age:10} {}", entry.size, entry.name)?;
            }
        }
        CacheAction::Clear => {
            let (removed, bytes) = cache.clear().map_err(failed)?;
            writeln!(out, "{}: removed {}, {bytes} bytes", cache.directory().display(), files(removed))?;
        }
    }
    Ok(0)
}
