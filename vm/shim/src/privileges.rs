//! The capabilities of a container.
//!
//! A native program gets its capabilities when it is executed. The kernel then takes all but the ambient ones from a user that is not
//! root. A guest is never executed, so that is done here.

use caps::CapSet;
use caps::errors::CapsError;
use oci_spec::runtime::{Capabilities, Capability, LinuxCapabilities, Spec};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use std::io;

/// Returns a set of the specification.
type Listed = fn(&LinuxCapabilities) -> &Option<Capabilities>;

/// Empties the sets of capabilities that the specification leaves out: containerd does so if all are dropped. libcontainer leaves such sets as
/// they were, so a container of root kept all of the machine's. To be called before any other thread exists.
///
/// # Errors
/// The system's error: the other sets do not permit it.
pub(crate) fn drop_unlisted(spec: &Spec) -> Result<(), CapsError> {
    let listed = spec.process().as_ref().and_then(|process| process.capabilities().as_ref());
    let sets: [(CapSet, Listed); 5] = [
        (CapSet::Bounding, LinuxCapabilities::bounding),
        (CapSet::Ambient, LinuxCapabilities::ambient),
        (CapSet::Inheritable, LinuxCapabilities::inheritable),
        (CapSet::Effective, LinuxCapabilities::effective),
        (CapSet::Permitted, LinuxCapabilities::permitted),
    ];
    for (set, list) in sets {
        if listed.is_none_or(|listed| list(listed).is_none()) {
            caps::clear(None, set)?;
        }
    }
    Ok(())
}

/// Takes the capabilities that a program of this user would not have. To be called before any other thread exists.
///
/// # Errors
/// The system's error.
pub(crate) fn drop(spec: &Spec) -> io::Result<()> {
    let Some(process) = spec.process().as_ref().filter(|process| process.user().uid() != 0) else { return Ok(()) };
    let ambient = process.capabilities().as_ref().and_then(|sets| sets.ambient().as_ref());
    let kept = ambient.into_iter().flatten().fold(CapabilitySet::empty(), |kept, capability| kept | bit(*capability));
    set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable: kept })?;
    Ok(())
}

/// The bit of a capability. Those that act on files are the ones that a guest can make use of.
fn bit(capability: Capability) -> CapabilitySet {
    match capability {
        Capability::Chown => CapabilitySet::CHOWN,
        Capability::DacOverride => CapabilitySet::DAC_OVERRIDE,
        Capability::DacReadSearch => CapabilitySet::DAC_READ_SEARCH,
        Capability::Fowner => CapabilitySet::FOWNER,
        Capability::Fsetid => CapabilitySet::FSETID,
        _ => CapabilitySet::empty(),
    }
}
