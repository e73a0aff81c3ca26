//! Files that `perf` reads: the map of names for `perf report`, or the dump from which `perf inject` makes objects.
//! Formats: `tools/perf/Documentation/jit-interface.txt` and `jitdump-specification.txt` of the Linux kernel.

use crate::records::events::ProfilingStrategy;
use crate::sys::clock;
use crate::sys::file::Writer;
use crate::sys::mapping::Mapping;
use crate::sys::thread;
use std::io;
use std::path::Path;

/// An open map or dump of this process.
#[derive(Debug)]
pub(super) struct Perf {
    file: Writer,
    /// Number of functions in the dump; `None` for a map.
    dumped: Option<u64>,
    /// `perf record` finds the dump through this executable mapping.
    _marker: Option<Mapping>,
}

/// The magic number of a dump: "JiTD", in the machine's byte order.
const MAGIC: u32 = 0x4A69_5444;
const VERSION: u32 = 1;
const HEADER_LEN: u32 = 40;
const EM_X86_64: u32 = 62;
/// The kind of a record that has code, and its length without name and code.
const CODE_LOAD: u32 = 0;
const CODE_LOAD_LEN: usize = 56;

impl Perf {
    /// Creates the file that the profiler reads, if it reads one, and writes its header.
    ///
    /// # Errors
    /// The file can't be written or mapped.
    pub fn new(profiler: ProfilingStrategy) -> io::Result<Option<Perf>> {
        let pid = std::process::id();
        match profiler {
            ProfilingStrategy::None | ProfilingStrategy::VTune | ProfilingStrategy::Pulley => Ok(None),
            ProfilingStrategy::PerfMap => {
                let file = Writer::append(Path::new(&format!("/tmp/perf-{pid}.map")))?;
                Ok(Some(Perf { file, dumped: None, _marker: None }))
            }
            ProfilingStrategy::JitDump => {
                let mut file = Writer::create(Path::new(&format!("jit-{pid}.dump")))?;
                let mut header = Vec::new();
                for word in [MAGIC, VERSION, HEADER_LEN, EM_X86_64, 0, pid] {
                    header.extend(word.to_ne_bytes());
                }
                header.extend(clock::monotonic().to_ne_bytes());
                header.extend(0u64.to_ne_bytes());
                file.write_all(&header)?;
                let marker = file.map_executable(HEADER_LEN as usize)?;
                Ok(Some(Perf { file, dumped: Some(0), _marker: Some(marker) }))
            }
        }
    }

    /// Adds code at its address.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn code(&mut self, name: &str, code: &[u8]) -> io::Result<()> {
        let address = code.as_ptr().addr() as u64;
        let name: String = name.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
        let Some(index) = &mut self.dumped else {
            // Not buffered, because another process may be reading the file.
            return self.file.write_all(format!("{address:x} {:x} {name}\n", code.len()).as_bytes());
        };
        let pid = std::process::id();
        let len = CODE_LOAD_LEN + name.len() + 1 + code.len();
        let mut record = Vec::with_capacity(len);
        record.extend([CODE_LOAD, len as u32].map(u32::to_ne_bytes).as_flattened());
        record.extend(clock::monotonic().to_ne_bytes());
        record.extend([pid, thread::id()].map(u32::to_ne_bytes).as_flattened());
        record.extend([address, address, code.len() as u64, *index].map(u64::to_ne_bytes).as_flattened());
        record.extend(name.as_bytes());
        record.push(0);
        record.extend(code);
        *index += 1;
        self.file.write_all(&record)
    }
}
