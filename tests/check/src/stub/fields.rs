//! Offsets of the fields of contexts that stubs use.

use std::mem::offset_of;
use weir_contract::{Boundary, Dispatch, HostCtx, InstanceCtx, StackCtx, StoreCtx};

pub const STACK: i64 = offset_of!(InstanceCtx, stack) as i64;
pub const STORE: i64 = offset_of!(InstanceCtx, store) as i64;
pub const OWNER: i64 = offset_of!(InstanceCtx, owner) as i64;
pub const MEMORY0_BASE: i64 = offset_of!(InstanceCtx, memory0_base) as i64;
pub const HOST_CALL: i64 = offset_of!(HostCtx, call) as i64;
pub const FUEL: i64 = offset_of!(StoreCtx, fuel) as i64;
pub const EPOCH: i64 = offset_of!(StoreCtx, epoch) as i64;
pub const WAKE_FUEL: i64 = offset_of!(StoreCtx, wake_fuel) as i64;
pub const WAKE_EPOCH: i64 = offset_of!(StoreCtx, wake_epoch) as i64;
pub const TRAP_PC: i64 = offset_of!(StoreCtx, trap_pc) as i64;
pub const TRAP_FP: i64 = offset_of!(StoreCtx, trap_fp) as i64;
pub const OVERFLOW: i64 = offset_of!(StackCtx, overflow) as i64;
pub const VALUE_SP: i64 = offset_of!(StackCtx, value_sp) as i64;
pub const BOUNDARY: i64 = offset_of!(StackCtx, boundary) as i64;
pub const EXIT_FP: i64 = offset_of!(StackCtx, exit_fp) as i64;
pub const DISPATCH_CODE: i64 = (offset_of!(StackCtx, dispatch) + offset_of!(Dispatch, code)) as i64;
pub const DISPATCH_ARGS: i64 = (offset_of!(StackCtx, dispatch) + offset_of!(Dispatch, args)) as i64;
pub const DISPATCH_INSTANCE: i64 = (offset_of!(StackCtx, dispatch) + offset_of!(Dispatch, instance)) as i64;
pub const PREV: i64 = offset_of!(Boundary, prev) as i64;
pub const BOUNDARY_STACK: i64 = offset_of!(Boundary, stack) as i64;
pub const BOUNDARY_EXIT: i64 = offset_of!(Boundary, exit_fp) as i64;
