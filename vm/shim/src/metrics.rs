//! What a container uses, in containerd's format.

use containerd_shim::protos::cgroups::metrics::{CPUStat, CPUUsage, MemoryEntry, MemoryStat, Metrics, PidsStat, Throttle};
use containerd_shim::protos::protobuf::MessageField;
use libcgroups::stats::{CpuStats, MemoryData, MemoryStats, PidStats, Stats};
use std::collections::HashMap;
use std::path::Path;

/// Converts statistics of a group. Times are in nanoseconds, sizes in bytes.
pub(crate) fn of(stats: &Stats) -> Metrics {
    Metrics {
        cpu: MessageField::some(processors(&stats.cpu)),
        memory: MessageField::some(memory(&stats.memory)),
        pids: MessageField::some(processes(&stats.pids)),
        ..Metrics::default()
    }
}

/// Reads the statistics of a group of version 2 in the units of version 1. What the kernel does not say is 0: libcontainer fails if it
/// does not account for pressure or swap, and leaves times in microseconds.
pub(crate) fn read(directory: &Path) -> Stats {
    let text = |file: &str| std::fs::read_to_string(directory.join(file)).unwrap_or_default();
    let number = |file: &str| match text(file).trim() {
        "max" => u64::MAX,
        number => number.parse().unwrap_or_default(),
    };
    let fields = |file: &str| -> HashMap<String, u64> {
        let text = text(file);
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.filter_map(|(name, value)| Some((name.into(), value.parse().ok()?))).collect()
    };
    let times = fields("cpu.stat");
    let count = |name: &str| times.get(name).copied().unwrap_or_default();
    let nanoseconds = |name: &str| count(name).saturating_mul(1000);
    let mut stats = Stats::default();
    let (usage, throttling) = (&mut stats.cpu.usage, &mut stats.cpu.throttling);
    usage.usage_total = nanoseconds("usage_usec");
    usage.usage_user = nanoseconds("user_usec");
    usage.usage_kernel = nanoseconds("system_usec");
    throttling.periods = count("nr_periods");
    throttling.throttled_periods = count("nr_throttled");
    throttling.throttled_time = nanoseconds("throttled_usec");
    let (memory, with_swap) = (&mut stats.memory.memory, &mut stats.memory.memswap);
    memory.usage = number("memory.current");
    memory.max_usage = number("memory.peak");
    memory.limit = number("memory.max");
    with_swap.usage = memory.usage.saturating_add(number("memory.swap.current"));
    with_swap.limit = memory.limit.saturating_add(number("memory.swap.max"));
    stats.memory.stats = fields("memory.stat");
    stats.pids.current = number("pids.current");
    // 0 is no limit.
    stats.pids.limit = Some(number("pids.max")).filter(|limit| *limit != u64::MAX).unwrap_or_default();
    stats
}

fn processors(cpu: &CpuStats) -> CPUStat {
    let usage = CPUUsage {
        total: cpu.usage.usage_total,
        user: cpu.usage.usage_user,
        kernel: cpu.usage.usage_kernel,
        per_cpu: cpu.usage.per_core_usage_total.clone(),
        ..CPUUsage::default()
    };
    let throttling = Throttle {
        periods: cpu.throttling.periods,
        throttled_periods: cpu.throttling.throttled_periods,
        throttled_time: cpu.throttling.throttled_time,
        ..Throttle::default()
    };
    CPUStat { usage: MessageField::some(usage), throttling: MessageField::some(throttling), ..CPUStat::default() }
}

fn memory(memory: &MemoryStats) -> MemoryStat {
    let field = |name: &str| memory.stats.get(name).copied().unwrap_or_default();
    // Version 1 and version 2 have different names.
    let either = |name: &str, other: &str| memory.stats.get(name).copied().unwrap_or_else(|| field(other));
    MemoryStat {
        usage: MessageField::some(entry(&memory.memory)),
        swap: MessageField::some(entry(&memory.memswap)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::tests::Tree;

    /// A record without the files of pressure and swap, as kernels that do not account for them have none.
    #[test]
    fn version_2() {
        let tree = Tree::recorded("metrics", include_str!("../tests/groups-v2.txt"));
        let directory = tree.0.join("kubepods/burstable/pod1/c1");
        let stats = of(&read(&directory));
        let (processors, memory) = (&stats.cpu.usage, &stats.memory);
        let recorded = std::fs::read_to_string(directory.join("cpu.stat")).unwrap();
        let microseconds: u64 = recorded.lines().next().unwrap().strip_prefix("usage_usec ").unwrap().parse().unwrap();
        assert!(microseconds > 10_000, "{recorded}");
        assert_eq!(processors.total, 1000 * microseconds);
        assert!(processors.user + processors.kernel <= processors.total);
        assert_eq!(memory.usage.limit, 64 << 20);
        assert!(memory.rss > 40 << 20 && memory.rss < memory.usage.usage && memory.swap.usage == memory.usage.usage);
        assert!(stats.pids.current >= 2 && stats.pids.limit == 0);
    }
}
