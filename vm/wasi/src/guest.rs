//! The guest's memory as the calls see it: every pointer is checked, and one that is out of bounds gives `EFAULT`.

use crate::errno::Errno;

/// The memory that the guest exports as `memory`; empty if it exports none, so every access fails.
pub(crate) struct Guest<'a> {
    bytes: &'a mut [u8],
}

/// A buffer in guest memory, as in an `iovec`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer {
    pub at: u32,
    pub len: u32,
}

/// Maximum number of buffers of a call; POSIX's usual `IOV_MAX`.
const MAX_BUFFERS: u32 = 1024;

impl<'a> Guest<'a> {
    pub fn new(bytes: &'a mut [u8]) -> Guest<'a> {
        Guest { bytes }
    }

    pub fn slice(&self, buffer: Buffer) -> Result<&[u8], Errno> {
        let start = buffer.at as usize;
        self.bytes.get(start..).and_then(|rest| rest.get(..buffer.len as usize)).ok_or(Errno::Fault)
    }

    pub fn slice_mut(&mut self, buffer: Buffer) -> Result<&mut [u8], Errno> {
        let start = buffer.at as usize;
        self.bytes.get_mut(start..).and_then(|rest| rest.get_mut(..buffer.len as usize)).ok_or(Errno::Fault)
    }

    fn array<const N: usize>(&self, at: u32) -> Result<[u8; N], Errno> {
        let bytes = self.slice(Buffer { at, len: N as u32 })?;
        bytes.try_into().map_err(|_| Errno::Fault)
    }

    pub fn read_u8(&self, at: u32) -> Result<u8, Errno> {
        self.array(at).map(u8::from_le_bytes)
    }

    pub fn read_u16(&self, at: u32) -> Result<u16, Errno> {
        self.array(at).map(u16::from_le_bytes)
    }

    pub fn read_u32(&self, at: u32) -> Result<u32, Errno> {
        self.array(at).map(u32::from_le_bytes)
    }

    pub fn read_u64(&self, at: u32) -> Result<u64, Errno> {
        self.array(at).map(u64::from_le_bytes)
    }

    pub fn write(&mut self, at: u32, bytes: &[u8]) -> Result<(), Errno> {
        let len = u32::try_from(bytes.len()).map_err(|_| Errno::Overflow)?;
        self.slice_mut(Buffer { at, len })?.copy_from_slice(bytes);
        Ok(())
    }

    /// Checks that a result can be written at `at`, before the call has effects that could not be undone.
    pub fn check_u32(&self, at: u32) -> Result<(), Errno> {
        self.read_u32(at).map(|_| ())
    }

    /// Checks that a result of eight bytes can be written at `at`, before the call has effects that could not be undone.
    pub fn check_u64(&self, at: u32) -> Result<(), Errno> {
        self.read_u64(at).map(|_| ())
    }

    pub fn write_u32(&mut self, at: u32, value: u32) -> Result<(), Errno> {
        self.write(at, &value.to_le_bytes())
    }

    pub fn write_u64(&mut self, at: u32, value: u64) -> Result<(), Errno> {
        self.write(at, &value.to_le_bytes())
    }

    /// Reads a path, which is UTF-8.
    pub fn path(&self, at: u32, len: u32) -> Result<&str, Errno> {
        str::from_utf8(self.slice(Buffer { at, len })?).map_err(|_| Errno::Ilseq)
    }

    /// Reads the array of `count` `iovec`s at `at`, and checks that each buffer is within memory.
    pub fn buffers(&self, at: u32, count: u32) -> Result<Vec<Buffer>, Errno> {
        if count > MAX_BUFFERS {
            return Err(Errno::Inval);
        }
        (0..count)
            .map(|i| {
                let record = element(at, i, 8)?;
                let buffer = Buffer { at: self.read_u32(record)?, len: self.read_u32(offset(record, 4)?)? };
                self.slice(buffer).map(|_| buffer)
            })
            .collect()
    }
}

/// Returns `at + by`, if it is an address.
pub(crate) fn offset(at: u32, by: u32) -> Result<u32, Errno> {
    at.checked_add(by).ok_or(Errno::Fault)
}

/// Returns the address of element `i` of an array at `at`.
pub(crate) fn element(at: u32, i: u32, size: u32) -> Result<u32, Errno> {
    i.checked_mul(size).and_then(|by| at.checked_add(by)).ok_or(Errno::Fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_at_and_past_the_end() {
        let mut bytes = [0u8; 16];
        let mut guest = Guest::new(&mut bytes);
        assert_eq!(guest.write_u64(8, u64::MAX), Ok(()));
        assert_eq!(guest.read_u64(8), Ok(u64::MAX));
        assert_eq!(guest.write_u64(9, 0), Err(Errno::Fault));
        assert_eq!(guest.read_u32(u32::MAX), Err(Errno::Fault));
        assert_eq!(guest.read_u64(8), Ok(u64::MAX), "a refused write changes nothing");
        assert!(guest.slice(Buffer { at: 16, len: 0 }).is_ok());
        assert!(guest.slice(Buffer { at: 17, len: 0 }).is_err());
        assert!(guest.slice(Buffer { at: 1, len: u32::MAX }).is_err());
    }

    #[test]
    fn buffers_are_checked_before_use() {
        let mut bytes = [0u8; 24];
        bytes[0..8].copy_from_slice(&[16, 0, 0, 0, 8, 0, 0, 0]);
        bytes[8..16].copy_from_slice(&[17, 0, 0, 0, 8, 0, 0, 0]);
        let guest = Guest::new(&mut bytes);
        assert_eq!(guest.buffers(0, 1).map(|list| (list[0].at, list[0].len)), Ok((16, 8)));
        assert_eq!(guest.buffers(0, 2).err(), Some(Errno::Fault));
        assert_eq!(guest.buffers(20, 1).err(), Some(Errno::Fault));
        assert_eq!(guest.buffers(u32::MAX - 3, 1).err(), Some(Errno::Fault));
        assert_eq!(guest.buffers(0, MAX_BUFFERS + 1).err(), Some(Errno::Inval));
        assert_eq!(guest.buffers(u32::MAX, 0).map(|list| list.len()), Ok(0));
    }
}
