//! Collections of a store's heap: when they run, and the roots.
//!
//! A collection runs only at a *safepoint*, where the stack can be walked and every frame has a root map: in the code of the embedder,
//! which the guest has called or which runs no guest, and at the beginning of a throw. The callback at a deadline is none: code that polls
//! has references in registers. There the heap grows instead, and is collected at the next safepoint.
//!
//! The roots are the references in
//! - frames, also of stopped guests: of the interpreter and of baseline code, by [`RootMaps`](super::root_maps::RootMaps); in frames of optimised code, by the tables
//!   that the allocator made ([`weir_contract::code::Roots`]); in the values of the evaluator of SSA. The arguments of a call belong to the
//!   callee: a host function has its own as scoped roots.
//! - globals, tables and element segments;
//! - [`Roots`](super::roots::Roots), which the embedder holds;
//! - the exception that is thrown, with or without an object, and the pending one.

use crate::records::attention::Attention;
use crate::records::engines::NativeSite;
use crate::records::exceptions::ExnRecord;
use crate::records::heap::Collection;
use crate::records::instance::{InstanceRecord, Owner, instance_of};
use crate::records::module::ModuleRecord;
use crate::records::pc::Pc;
use crate::records::store::StoreRecord;
#[cfg(feature = "async")]
use crate::records::walk::{ALL_FRAMES, segments_from};
use crate::records::walk::{EvaluatorActivation, InterpFrame, Segment, all_segments, walk_activation};
use std::ops::ControlFlow;
use std::ptr;
use weir_contract::{FRAME_HEADER, LANDING_FP};

/// Collects, if that is possible here. `arguments` are slots that hold references and are in no frame. Returns whether it did.
///
/// # Safety
/// This thread is at a safepoint of the live store, and no reference into the store's records is held.
pub(crate) unsafe fn collect(store: *mut StoreRecord, arguments: &[*mut u64]) -> bool {
    // SAFETY: the caller's promise. The collection borrows the heap alone, and the roots are elsewhere.
    unsafe {
        let heap = &raw mut (*store).heap;
        if (*heap).blocked > 0 || !(*heap).has_objects() {
            return false;
        }
        (*store).roots.trim();
        let Ok(mut collection) = (*heap).begin() else { return false };
        let depth = visit_frames(store, &mut collection);
        visit_records(store, &mut collection);
        arguments.iter().for_each(|&slot| collection.visit(slot));
        (*store).roots.places().for_each(|place| collection.visit(place));
        let in_flight = &raw mut (*store).in_flight;
        if !(*in_flight).object.is_null() {
            collection.visit_exception(&raw mut (*in_flight).object);
        } else if let Some(tag) = (*in_flight).tag.as_ref() {
            tag.references((*(*store).stack).ctx.overflow, |slot| collection.visit(slot));
        }
        collection.visit_exception(&raw mut (*store).pending);
        collection.finish(depth);
        if (*heap).has_dead() {
            (*store).attention.set(Attention::HEAP, true);
        }
        true
    }
}

/// Collects if there should be a collection before an object of this many words is allocated.
///
/// # Safety
/// As for [`collect`].
pub(crate) unsafe fn make_room(store: *mut StoreRecord, words: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if (*store).heap.is_due(words) || (*store).ask_for_objects(words).is_err() {
            collect(store, &[]);
        }
    }
}

/// Makes room for the object of the exception that is about to be thrown: when it is made, frames may have been left, and nothing can be
/// collected.
///
/// # Safety
/// As for [`collect`]; the exception is in flight.
#[inline]
pub(crate) unsafe fn collect_before_throw(store: *mut StoreRecord) {
    // SAFETY: the caller's promise.
    unsafe {
        let in_flight = &(*store).in_flight;
        // A store without references is not asked for memory.
        if (*store).heap.has_objects() && in_flight.object.is_null() {
            make_room(store, ExnRecord::words(in_flight.tag));
        } else if (*store).heap.stress {
            collect(store, &[]);
        }
    }
}

/// Visits the roots in frames. Returns the number of frames.
///
/// # Safety
/// As for [`collect`].
unsafe fn visit_frames(store: *mut StoreRecord, collection: &mut Collection<'_>) -> usize {
    let mut depth = 0;
    // SAFETY: the caller's promise: the frames are as their maps say. Those of stopped guests do not run.
    unsafe {
        let mut visit = |segment: Segment<'_>| {
            visit_segment(store, segment, collection, &mut depth);
            ControlFlow::Continue(())
        };
        all_segments(store, &mut visit);
        #[cfg(feature = "async")]
        for stopped in &(*store).stopped {
            let _ = segments_from(&raw const (*(*store).stack).ctx, stopped.links, ALL_FRAMES, &mut visit);
        }
    }
    depth
}

/// Visits the roots in the frames of a part of a stack, and adds their number to `depth`.
///
/// # Safety
/// As for [`visit_frames`]; there is such a part.
unsafe fn visit_segment(store: *mut StoreRecord, segment: Segment<'_>, collection: &mut Collection<'_>, depth: &mut usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match segment {
            Segment::Native { exit_fp, .. } => {
                // The functions that are inlined in a frame share it, and its roots.
                let mut last = 0;
                (*store).engine.record().engines.native_frames(exit_fp, &mut |site| {
                    *depth += 1;
                    if std::mem::replace(&mut last, site.fp) != site.fp {
                        visit_native(store, collection, &site);
                    }
                    ControlFlow::Continue(())
                });
            }
            Segment::Activation { activation, position } if position.fp.is_null() => {
                *depth += 1;
                (*activation.cast::<EvaluatorActivation>()).roots(|slot| collection.visit(slot));
            }
            Segment::Activation { position, .. } | Segment::Immediate { position, .. } => {
                let _ = walk_activation(position, |InterpFrame { pc, fp, body, scope }| {
                    *depth += 1;
                    let module = instance_of((*scope).ctx).module.record();
                    visit_slots(store, collection, (module, (*body).func, pc), fp);
                    ControlFlow::Continue(())
                });
            }
        }
    }
}

/// Visits the roots in a native frame.
///
/// # Safety
/// There is such a frame.
unsafe fn visit_native(store: *mut StoreRecord, collection: &mut Collection<'_>, site: &NativeSite) {
    // SAFETY: the caller's promise. Modules live while their code is on a stack.
    unsafe {
        if site.layout.value_sp == 0 {
            return (*site.tables).roots(site.call).for_each(|word| collection.visit(site.word(word).cast_mut().cast()));
        }
        let module = &*ptr::with_exposed_provenance::<ModuleRecord>(site.module);
        if !module.bytecode.has_collected && site.landings.is_empty() {
            // All roots are null. The body of stored code may not have been read.
            return;
        }
        let fp = site.word((-LANDING_FP / 8) as u16).cast::<*mut u64>().read();
        visit_slots(store, collection, (module, site.func, Pc::At(site.pc)), fp);
    }
}

/// Visits the roots in the slots of a frame at `fp`.
///
/// # Safety
/// There is such a frame, at that call or throw.
unsafe fn visit_slots(
    store: *mut StoreRecord,
    collection: &mut Collection<'_>,
    (module, func, pc): (&ModuleRecord, u32, Pc),
    fp: *mut u64,
) {
    let body = module.body(func).expect("a function with a frame has a body");
    let (locals, words) = (body.locals.len(), body.words());
    let end = match pc {
        Pc::At(pc) => pc + 1,
        Pc::Before(pc) => pc,
    };
    // SAFETY: the caller's promise. The header of the frame is after the locals.
    unsafe {
        for &index in (*store).root_maps.at(module, func, end) {
            let header = if (index as usize) < locals { 0 } else { FRAME_HEADER as usize };
            collection.visit(fp.add(index as usize * words + header));
        }
    }
}

/// Visits the roots in globals, tables and element segments.
///
/// # Safety
/// As for [`collect`].
unsafe fn visit_records(store: *mut StoreRecord, collection: &mut Collection<'_>) {
    // SAFETY: the caller's promise: the store owns the records.
    unsafe {
        let owned = &(*store).owned;
        for &global in owned.globals.iter().filter(|&&global| (*global).is_collected) {
            collection.visit((&raw mut (*global).slot).cast());
        }
        for &table in owned.tables.iter().filter(|&&table| (*table).ty.element.heap.is_collected()) {
            (*table).references(|slot| collection.visit(slot));
        }
        for &owner in &owned.owners {
            if let Owner::Instance(instance) = &*owner {
                visit_instance(instance, collection);
            }
        }
    }
}

/// Visits the roots that an instance owns.
///
/// # Safety
/// As for [`collect`].
unsafe fn visit_instance(instance: &InstanceRecord, collection: &mut Collection<'_>) {
    let bytecode = instance.module.bytecode();
    let own = (0..).zip(&bytecode.globals).skip(bytecode.imported_globals as usize);
    // SAFETY: the caller's promise: the slots of globals have values of their types, or zeros until they are initialised.
    unsafe {
        own.filter(|(_, global)| global.value.is_collected()).for_each(|(i, _)| collection.visit(instance.global(i)));
        let segments = bytecode.elems.iter().zip(instance.elems.get().into_iter().flatten());
        for (_, references) in segments.filter(|(segment, _)| segment.ty.heap.is_collected()) {
            references.iter().for_each(|reference| collection.visit(reference.as_ptr()));
        }
    }
}
