//! Descriptors: the objects to which the guest's numbers refer, with their rights.

use crate::directory::{self, Directory, Entry};
use crate::errno::Errno;
use crate::handle::Handle;
use crate::offload::Source;
use crate::rights;
use crate::stat::{CHARACTER_DEVICE, DIRECTORY, SOCKET_STREAM, UNKNOWN, file_type};
use crate::stream::Stream;
use crate::sys::dir::FileType;
use crate::sys::file;
use crate::sys::poll::Interest;
use cap_std::fs::File;
use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Bits of `fdflags`.
pub(crate) mod flags {
    pub const APPEND: u16 = 1;
    pub const DSYNC: u16 = 2;
    pub const NONBLOCK: u16 = 4;
    pub const RSYNC: u16 = 8;
    pub const SYNC: u16 = 16;
    pub const ALL: u16 = 31;
}

/// What a descriptor takes of the host's memory, about: its record, its path, and the host's own record of an open file.
pub(crate) const DESCRIPTOR: usize = 1024;

/// An open descriptor.
pub(crate) struct Descriptor {
    pub object: Object,
    /// The `fdflags` with which it was opened, or that the guest has set.
    pub flags: u16,
    /// The operations that it allows.
    pub rights: u64,
    /// The maximum rights of files opened in it.
    pub inheriting: u64,
    pub origin: Origin,
}

/// Where a descriptor comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// The program began with it under this number.
    Granted(u32),
    /// The program has opened this.
    Opened(Box<str>),
}

/// The object of a descriptor. Those of the host are shared with calls that go on after the guest's call was dropped.
pub(crate) enum Object {
    /// A standard stream.
    Stream(Stream),
    /// A file of any type but directory.
    File(Arc<File>, FileType),
    /// A directory.
    Dir(Directory),
    /// A socket that connections are accepted from.
    Listener(Arc<OwnedFd>),
    /// A connected socket.
    Socket(Arc<OwnedFd>),
}

impl Descriptor {
    /// Creates a descriptor with all rights that apply to the object. A [`Table`] numbers those with which a program begins.
    pub fn new(object: Object) -> Descriptor {
        let (rights, inheriting) = object.natural_rights();
        Descriptor { object, flags: 0, rights, inheriting, origin: Origin::Granted(0) }
    }

    /// Checks that it has all of these rights. `ENOTCAPABLE` if not; `EBADF` if no descriptor of its type can have
    /// them.
    pub fn require(&self, rights: u64) -> Result<(), Errno> {
        if self.rights & rights == rights {
            Ok(())
        } else if self.object.natural_rights().0 & rights == rights {
            Err(Errno::Notcapable)
        } else {
            Err(Errno::Badf)
        }
    }

    /// Returns the file, for an operation that needs this right. Objects without a position give the error
    /// `no_position`.
    pub fn file(&self, right: u64, no_position: Errno) -> Result<&Arc<File>, Errno> {
        match &self.object {
            Object::File(file, _) => self.require(right).map(|()| file),
            Object::Dir(_) => Err(Errno::Isdir),
            Object::Stream(_) | Object::Listener(_) | Object::Socket(_) => Err(no_position),
        }
    }

    /// Returns how the host's object with this handle is read and written while the guest is suspended.
    pub fn source(&self, handle: Handle) -> Source {
        let waits = match &self.object {
            Object::File(_, host) => host.waits(),
            // An error is that of the operation which follows.
            Object::Stream(_) => file::file_type(&handle).is_ok_and(FileType::waits),
            Object::Listener(_) | Object::Socket(_) => true,
            Object::Dir(_) => false,
        };
        Source { handle, waits, nonblocking: self.flags & flags::NONBLOCK != 0 }
    }

    /// Returns the directory, for an operation that needs these rights.
    pub fn dir(&self, rights: u64) -> Result<&Directory, Errno> {
        match &self.object {
            Object::Dir(dir) => self.require(rights).map(|()| dir),
            _ => Err(Errno::Notdir),
        }
    }
}

impl Object {
    /// Returns the rights that apply to the object, and those that apply to files opened in it.
    pub fn natural_rights(&self) -> (u64, u64) {
        match self {
            Object::Stream(stream) if stream.readable() => (rights::STREAM | rights::FD_READ, 0),
            Object::Stream(_) => (rights::STREAM | rights::FD_WRITE, 0),
            Object::File(..) => (rights::FILE, 0),
            Object::Dir(_) => (rights::DIRECTORY, rights::ALL),
            Object::Listener(_) => (rights::LISTENER, rights::SOCKET),
            Object::Socket(_) => (rights::SOCKET, 0),
        }
    }

    /// Returns its `filetype`.
    pub fn file_type(&self) -> u8 {
        match self {
            // Libraries buffer output to a terminal by line.
            Object::Stream(stream) if stream.is_terminal() => CHARACTER_DEVICE,
            Object::Stream(_) => UNKNOWN,
            Object::File(_, host) => file_type(*host),
            Object::Dir(_) => DIRECTORY,
            Object::Listener(_) | Object::Socket(_) => SOCKET_STREAM,
        }
    }

    /// Returns what the host reads and writes, unless the object is a directory or a stream of the embedder.
    pub fn handle(&self) -> Option<Handle> {
        match self {
            Object::Stream(Stream::Host(stream)) => Some(Handle::Stream(stream.clone())),
            Object::File(file, _) => Some(Handle::File(Arc::clone(file))),
            Object::Listener(socket) | Object::Socket(socket) => Some(Handle::Socket(Arc::clone(socket))),
            Object::Stream(Stream::Input { .. } | Stream::Output { .. }) | Object::Dir(_) => None,
        }
    }

    /// Returns the host's descriptor of an object for which a call may have to wait.
    pub fn waited_for(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Object::Stream(Stream::Host(stream)) => Some(stream.as_fd()),
            Object::File(file, host) if host.waits() => Some(file.as_fd()),
            Object::Listener(socket) | Object::Socket(socket) => Some(socket.as_fd()),
            Object::Stream(Stream::Input { .. } | Stream::Output { .. }) | Object::File(..) | Object::Dir(_) => None,
        }
    }

    /// Returns the event for which `poll` waits so that the guest can read or write; `EBADF` if it never can.
    pub fn interest(&self, read: bool) -> Result<Interest, Errno> {
        let possible = match self {
            Object::Stream(stream) => stream.readable() == read,
            Object::Dir(_) => false,
            Object::Listener(_) => read,
            Object::File(..) | Object::Socket(_) => true,
        };
        match (possible, read) {
            (false, _) => Err(Errno::Badf),
            (true, true) => Ok(Interest::Read),
            (true, false) => Ok(Interest::Write),
        }
    }
}

/// The guest's descriptors by number.
#[derive(Default)]
pub(crate) struct Table {
    /// Never shortened; the host's limit on open files bounds it.
    slots: Vec<Option<Descriptor>>,
    /// The numbers of the empty slots.
    free: BTreeSet<u32>,
    /// The bytes of all listings of directories.
    listed: usize,
}

impl Table {
    pub fn get(&self, fd: u32) -> Result<&Descriptor, Errno> {
        self.slots.get(fd as usize).and_then(Option::as_ref).ok_or(Errno::Badf)
    }

    pub fn get_mut(&mut self, fd: u32) -> Result<&mut Descriptor, Errno> {
        self.slots.get_mut(fd as usize).and_then(Option::as_mut).ok_or(Errno::Badf)
    }

    /// Adds a descriptor with the highest number that was freed, or a new one, as wasmtime does. POSIX takes the lowest. But the
    /// compilers' library cannot duplicate descriptors, so programs that restore a redirected stdout only leave number 1 closed, and
    /// what they print afterwards must not go to the next file that they open.
    pub fn insert(&mut self, descriptor: Descriptor) -> Result<u32, Errno> {
        if let Some(fd) = self.free.pop_last() {
            self.slots[fd as usize] = Some(descriptor);
            return Ok(fd);
        }
        let fd = u32::try_from(self.slots.len()).map_err(|_| Errno::Mfile)?;
        self.slots.push(Some(descriptor));
        Ok(fd)
    }

    /// Makes `to`, which must be open, refer to the object of `from`, frees `from`, and returns what `to` was, which is to be closed.
    pub fn renumber(&mut self, from: u32, to: u32) -> Result<Option<Descriptor>, Errno> {
        self.get(from)?;
        self.get(to)?;
        if from == to {
            return Ok(None);
        }
        let descriptor = self.take(from)?;
        self.set_listing(to, Vec::new());
        Ok(self.slots[to as usize].replace(descriptor))
    }

    /// Returns the bytes that the descriptors take, about, those of listings included.
    pub fn held(&self) -> usize {
        self.slots.len() * DESCRIPTOR + self.listed
    }

    /// Replaces the listing of a directory.
    pub fn set_listing(&mut self, fd: u32, listing: Vec<Entry>) {
        if let Ok(Descriptor { object: Object::Dir(directory), .. }) = self.get_mut(fd) {
            let added = directory::bytes_of(&listing);
            let removed = directory::bytes_of(&std::mem::replace(&mut directory.listing, listing));
            self.listed = self.listed + added - removed;
        }
    }

    /// Returns the descriptors with which the program did not begin, or not under this number; with what they refer to.
    pub fn opened(&self) -> impl Iterator<Item = (u32, String)> {
        let open = (0..).zip(&self.slots).filter_map(|(fd, slot)| Some((fd, &slot.as_ref()?.origin)));
        open.filter_map(|(fd, origin)| match origin {
            Origin::Granted(first) if *first == fd => None,
            Origin::Granted(first) => Some((fd, format!("what descriptor {first} was"))),
            Origin::Opened(name) => Some((fd, name.to_string())),
        })
    }

    /// Returns the streams of the embedder among these descriptors, each once. There are at most three.
    pub fn given(&mut self, fds: &[u32]) -> impl Iterator<Item = (u32, &mut Stream)> {
        let given = (0..).zip(&mut self.slots).filter_map(|(fd, slot)| match &mut slot.as_mut()?.object {
            Object::Stream(Stream::Host(_)) => None,
            Object::Stream(stream) => Some((fd, stream)),
            Object::File(..) | Object::Dir(_) | Object::Listener(_) | Object::Socket(_) => None,
        });
        given.filter(|(fd, _)| fds.contains(fd))
    }

    /// Removes a descriptor and frees its number.
    pub fn take(&mut self, fd: u32) -> Result<Descriptor, Errno> {
        self.set_listing(fd, Vec::new());
        let descriptor = self.slots.get_mut(fd as usize).and_then(Option::take).ok_or(Errno::Badf)?;
        self.free.insert(fd);
        Ok(descriptor)
    }
}

impl FromIterator<Descriptor> for Table {
    /// Numbers the descriptors from 0.
    fn from_iter<I: IntoIterator<Item = Descriptor>>(descriptors: I) -> Table {
        let number = |(number, descriptor)| Some(Descriptor { origin: Origin::Granted(number), ..descriptor });
        Table { slots: (0..).zip(descriptors).map(number).collect(), ..Table::default() }
    }
}
