//! What libcontainer calls in the first process of a container, which has the container's root, namespaces and user.

use crate::cgroup::{Levels, MemoryLimit, MemoryUse, ProcessorLimit};
use crate::code_cache::Stored;
use crate::entry::Entry;
use crate::guest::{ABORTED, Guest, Limits, Source};
use crate::inherited::{self, Inherited};
use crate::pid_file::PidFile;
use crate::signals::{self, Ending};
use crate::{message, privileges};
use libcontainer::workload::default::DefaultExecutor;
use libcontainer::workload::{Executor, ExecutorError, ExecutorSetEnvsError, ExecutorValidationError};
use oci_spec::runtime::Spec;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{PipeWriter, Write};
use std::rc::Rc;

/// Loads the container's module when the container is created, and runs it when it is started. A native program is executed instead:
/// every pod has one.
#[derive(Clone)]
pub(crate) struct WeirExecutor(Rc<RefCell<State>>);

struct State {
    inherited: Inherited,
    groups: Groups,
    code: Code,
    /// Where a refusal is written for the shim: libcontainer would shorten it.
    refusal: Option<PipeWriter>,
    pid_file: Option<PidFile>,
    guest: Option<(Guest, Ending)>,
}

/// The container's control groups. They are closed before the module is read.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    pub memory: Option<Levels>,
    pub processors: Option<Levels>,
}

/// What the shim gets if a module was loaded, but not from the node's code for it.
pub(crate) const CODE_REFUSED: &[u8] = b"code refused";

/// What was opened for the guest outside of its root.
#[derive(Debug, Default)]
pub(crate) struct Code {
    /// The module, if it is a layer and no file of the image.
    pub layer: Option<File>,
    /// The module's code, if the node has it.
    pub stored: Option<Stored>,
}

impl WeirExecutor {
    /// Creates the executor of a container, in the process that creates it. The guest loses what this process has inherited.
    pub fn new(inherited: Inherited, groups: Groups, code: Code, refusal: PipeWriter, pid_file: PidFile) -> WeirExecutor {
        let state = State { inherited, groups, code, refusal: Some(refusal), pid_file: Some(pid_file), guest: None };
        WeirExecutor(Rc::new(RefCell::new(state)))
    }

    /// Loads what the specification names. `None` if it is a native program.
    fn load(&self, spec: &Spec) -> Result<Option<(Guest, Ending)>, String> {
        privileges::drop_unlisted(spec).map_err(|error| format!("capabilities cannot be dropped: {error}"))?;
        let groups = std::mem::take(&mut self.0.borrow_mut().groups);
        let Code { layer, stored } = std::mem::take(&mut self.0.borrow_mut().code);
        let entry = if layer.is_some() { Entry::of_layer(spec) } else { Entry::of(spec)? };
        if layer.is_none() && entry.is_native() {
            return Ok(None);
        }
        // SAFETY: libcontainer has forked this process from the zygote that listed them and waits for this one. Their owners are the
        // zygote's loop, to which this process does not return, and the log, which is off then.
        unsafe { self.0.borrow().inherited.close() };
        // SAFETY: libcontainer's connection is that of the process from which this one was forked.
        unsafe { inherited::close_connections() };
        privileges::drop(spec).map_err(|error| format!("capabilities cannot be dropped: {error}"))?;
        let ending = Ending::block().map_err(|error| format!("signals cannot be blocked: {error}"))?;
        let limits = Limits {
            memory: groups.memory.as_ref().map(MemoryLimit::of),
            used: groups.memory.as_ref().map(MemoryUse::of),
            processors: groups.processors.as_ref().map(ProcessorLimit::of),
        };
        // Directories outside of the root would lead out of it.
        drop(groups);
        let source = Source { entry, layer, stored };
        Ok(Some((Guest::load(spec, source, limits)?, ending)))
    }
}

impl Executor for WeirExecutor {
    fn validate(&self, spec: &Spec) -> Result<(), ExecutorValidationError> {
        let loaded = self.load(spec);
        let refusal = self.0.borrow_mut().refusal.take();
        match loaded {
            Ok(Some((guest, ending))) => {
                if guest.refused_code {
                    let _ = refusal.map(|mut refusal| refusal.write_all(CODE_REFUSED));
                }
                self.0.borrow_mut().guest = Some((guest, ending));
            }
            Ok(None) => (),
            Err(message) => {
                let message = message::refusal(&message);
                // The container's own standard error may be closed.
                let _ = writeln!(std::io::stderr(), "weir: {message}");
                let _ = refusal.map(|mut refusal| refusal.write_all(message.as_bytes()));
                return Err(ExecutorValidationError::ArgValidationError(message));
            }
        }
        // After this, libcontainer reports that the process is ready.
        let pid_file = self.0.borrow_mut().pid_file.take();
        let created = pid_file.map_or(Ok(()), PidFile::wait);
        created.map_err(|_| ExecutorValidationError::ArgValidationError("the container's creator has ended".into()))
    }

    fn setup_envs(&self, variables: HashMap<String, String>) -> Result<(), ExecutorSetEnvsError> {
        // A guest's environment is made from the specification.
        if self.0.borrow().guest.is_some() { Ok(()) } else { DefaultExecutor {}.setup_envs(variables) }
    }

    fn exec(&self, spec: &Spec) -> Result<(), ExecutorError> {
        let guest = self.0.borrow_mut().guest.take();
        let Some((guest, ending)) = guest else {
            signals::restore_pipe().map_err(|error| ExecutorError::Other(error.to_string()))?;
            return DefaultExecutor {}.exec(spec);
        };
        // Otherwise tools show libcontainer's name for the process.
        let _ = rustix::thread::set_name(c"weir");
        if let Err(error) = guest.start() {
            eprintln!("weir: the guest's thread cannot start: {error}");
            std::process::exit(ABORTED);
        }
        std::process::exit(ending.wait().unwrap_or(ABORTED));
    }
}
