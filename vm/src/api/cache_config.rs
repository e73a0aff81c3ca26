//! The settings of a cache, with wasmtime's names.

use crate::records::config::Unavailable;
use crate::records::error::{Error, Result};
use crate::records::precompiled::cache::Limits;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Declares settings: for each the method that sets it and the one that returns it, its type and its default.
macro_rules! settings {
    ($($(#[$doc:meta])* $set:ident $get:ident: $ty:ty = $default:expr;)*) => {
        /// The settings of a [`Cache`](crate::Cache).
        #[derive(Clone, Debug)]
        pub struct CacheConfig {
            directory: Option<PathBuf>,
            $($get: $ty,)*
        }

        impl Default for CacheConfig {
            fn default() -> CacheConfig {
                CacheConfig { directory: None, $($get: $default,)* }
            }
        }

        impl CacheConfig {
            $(
                $(#[$doc])*
                pub fn $set(&mut self, value: $ty) -> &mut CacheConfig {
                    self.$get = value;
                    self
                }

                #[doc = concat!("Returns what [`", stringify!($set), "`](CacheConfig::", stringify!($set), ") has set, or its default.")]
                pub fn $get(&self) -> $ty {
                    self.$get
                }
            )*
        }
    };
}

settings! {
    /// Limits the bytes of all files. When there are more, the modules that were not used for the longest time are removed. Default:
    /// 512 MiB.
    with_files_total_size_soft_limit files_total_size_soft_limit: u64 = 512 << 20;
    /// Limits the number of files in the same way. Default: 65,536.
    with_file_count_soft_limit file_count_soft_limit: u64 = 0x10000;
    /// Sets to how many percent of [`file_count_soft_limit`](CacheConfig::file_count_soft_limit) modules are removed. Default: 70.
    with_file_count_limit_percent_if_deleting file_count_limit_percent_if_deleting: u8 = 70;
    /// Sets to how many percent of [`files_total_size_soft_limit`](CacheConfig::files_total_size_soft_limit) modules are removed. Default: 70.
    with_files_total_size_limit_percent_if_deleting files_total_size_limit_percent_if_deleting: u8 = 70;
    /// Has no effect: what the cache has to do does not wait in a queue.
    with_worker_event_queue_size worker_event_queue_size: u64 = 0x10;
    /// Has no effect: files are not compressed.
    with_baseline_compression_level baseline_compression_level: i32 = 3;
    /// Has no effect: files are not compressed.
    with_optimized_compression_level optimized_compression_level: i32 = 20;
    /// Has no effect: files are not compressed.
    with_optimized_compression_usage_counter_threshold optimized_compression_usage_counter_threshold: u64 = 0x100;
    /// Has no effect: a process removes modules when it adds one, and not at intervals.
    with_cleanup_interval cleanup_interval: Duration = Duration::from_secs(3_600);
    /// Has no effect: files are not compressed.
    with_optimizing_compression_task_timeout optimizing_compression_task_timeout: Duration = Duration::from_secs(30 * 60);
    /// Has no effect: a file from the future is one that was used last.
    with_allowed_clock_drift_for_files_from_future allowed_clock_drift_for_files_from_future: Duration = Duration::from_secs(24 * 3_600);
}

impl CacheConfig {
    /// Creates the default settings.
    pub fn new() -> CacheConfig {
        CacheConfig::default()
    }

    /// Creates the default settings. Weir reads no file of settings.
    ///
    /// # Errors
    /// A file is given.
    pub fn from_file(path: Option<&Path>) -> Result<CacheConfig> {
        match path {
            None => Ok(CacheConfig::new()),
            Some(_) => Err(Error::new(Unavailable::new("the settings of the cache are not read from a file"))),
        }
    }

    /// Sets the directory, which must be the user's own with mode 0700, and no link; it is created if it does not exist. Default:
    /// `weir` in `$XDG_CACHE_HOME` or, without that variable, in `.cache` in the home directory.
    pub fn with_directory(&mut self, directory: impl Into<PathBuf>) -> &mut CacheConfig {
        self.directory = Some(directory.into());
        self
    }

    /// Returns the directory that was set.
    pub fn directory(&self) -> Option<&PathBuf> {
        self.directory.as_ref()
    }

    /// Returns the limits.
    ///
    /// # Errors
    /// A percentage is above 100.
    pub(super) fn limits(&self) -> Result<Limits> {
        let (files, bytes) = (self.file_count_limit_percent_if_deleting, self.files_total_size_limit_percent_if_deleting);
        if let Some(percent) = [files, bytes].into_iter().find(|percent| *percent > 100) {
            return Err(Error::msg(format!(
                "the cache cannot be left with {percent} percent of its limit, which is more than 100"
            )));
        }
        Ok(Limits {
            files: self.file_count_soft_limit,
            bytes: self.files_total_size_soft_limit,
            files_percent: files,
            bytes_percent: bytes,
        })
    }
}
