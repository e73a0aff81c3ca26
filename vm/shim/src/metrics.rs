//! What a container uses, in containerd's format.

use crate::cgroup::Version;
use containerd_shim::protos::cgroups::metrics::{CPUStat, CPUUsage, MemoryEntry, MemoryStat, Metrics, PidsStat, Throttle};
use containerd_shim::protos::protobuf::MessageField;
use libcgroups::stats::{CpuStats, MemoryData, MemoryStats, PidStats, Stats};

/// Converts statistics of a group to those that version 1 has. Times are in nanoseconds, sizes in bytes.
pub(crate) fn of(stats: &Stats, version: Version) -> Metrics {
    Metrics {
        cpu: MessageField::some(processors(&stats.cpu, version)),
        memory: MessageField::some(memory(&stats.memory, version)),
        pids: MessageField::some(processes(&stats.pids)),
        ..Metrics::default()
    }
}

fn processors(cpu: &CpuStats, version: Version) -> CPUStat {
    // Version 2 has microseconds.
    let scale = if version == Version::V2 { 1000 } else { 1 };
    let usage = CPUUsage {
        total: cpu.usage.usage_total * scale,
        user: cpu.usage.usage_user * scale,
        kernel: cpu.usage.usage_kernel * scale,
        per_cpu: cpu.usage.per_core_usage_total.clone(),
        ..CPUUsage::default()
    };
    let throttling = Throttle {
        periods: cpu.throttling.periods,
        throttled_periods: cpu.throttling.throttled_periods,
        throttled_time: cpu.throttling.throttled_time * scale,
        ..Throttle::default()
    };
    CPUStat { usage: MessageField::some(usage), throttling: MessageField::some(throttling), ..CPUStat::default() }
}

fn memory(memory: &MemoryStats, version: Version) -> MemoryStat {
    let mut with_swap = entry(&memory.memswap);
    if version == Version::V2 {
        // There it is swap alone.
        with_swap.usage = with_swap.usage.saturating_add(memory.memory.usage);
        with_swap.limit = with_swap.limit.saturating_add(memory.memory.limit);
    }
    let field = |name: &str| memory.stats.get(name).copied().unwrap_or_default();
    // Version 1 and version 2 have different names.
    let either = |name: &str, other: &str| memory.stats.get(name).copied().unwrap_or_else(|| field(other));
    MemoryStat {
        usage: MessageField::some(entry(&memory.memory)),
        swap: MessageField::some(with_swap),
        kernel: MessageField::some(entry(&memory.kernel)),
        cache: either("cache", "file"),
        rss: either("rss", "anon"),
        mapped_file: either("mapped_file", "file_mapped"),
        pg_fault: field("pgfault"),
        pg_maj_fault: field("pgmajfault"),
        inactive_anon: field("inactive_anon"),
        active_anon: field("active_anon"),
        inactive_file: field("inactive_file"),
        active_file: field("active_file"),
        total_cache: either("total_cache", "file"),
        total_rss: either("total_rss", "anon"),
        total_inactive_file: either("total_inactive_file", "inactive_file"),
        hierarchical_memory_limit: field("hierarchical_memory_limit"),
        ..MemoryStat::default()
    }
}

fn entry(data: &MemoryData) -> MemoryEntry {
    MemoryEntry { usage: data.usage, max: data.max_usage, limit: data.limit, failcnt: data.fail_count, ..MemoryEntry::default() }
}

fn processes(pids: &PidStats) -> PidsStat {
    PidsStat { current: pids.current, limit: pids.limit, ..PidsStat::default() }
}
