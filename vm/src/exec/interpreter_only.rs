//! The engine that only interprets.

use crate::records::config::Config;
use crate::records::engines::{Engines, Next};
use crate::records::func_code::Enter;
use crate::records::instance::instance_of;
use crate::records::stats::Stats;
use std::any::Any;
use std::sync::atomic::AtomicU32;
use weir_contract::InstanceCtx;
use weir_contract::profile::CounterCounts;

/// Makes no code. Begins the profiles of functions if the settings require them.
#[derive(Debug)]
pub(super) struct InterpreterOnly {
    profiles: bool,
}

impl InterpreterOnly {
    /// Creates the engine for these settings.
    pub fn new(config: &Config) -> InterpreterOnly {
        InterpreterOnly { profiles: config.profiles() }
    }
}

impl Engines for InterpreterOnly {
    fn module_state(&self) -> Box<dyn Any + Send + Sync> {
        Box::new(())
    }

    fn first_ticks(&self, _bytes: u32) -> i32 {
        if self.profiles { 0 } else { i32::MAX }
    }

    #[cold]
    unsafe fn tier_up(&self, instance: *mut InstanceCtx, func: u32, _at: Option<u32>) -> Next {
        // SAFETY: the caller's promise.
        let module = unsafe { instance_of(instance) }.module.record();
        let code = module.func_code(func);
        if let Some(body) = module.bytecode.body(func)
            && self.profiles
        {
            // Without room it is not counted.
            let _ = code.begin_profile(&module.bytecode.account, CounterCounts::of(body), |_| None::<Box<[AtomicU32]>>);
        }
        code.reset_ticks(i32::MAX);
        Next::Interpret
    }

    unsafe fn enter_osr(&self, _instance: *mut InstanceCtx, _func: u32) -> Enter {
        unreachable!("there is no code")
    }

    fn report(&self, _module: Option<&(dyn Any + Send + Sync)>, _stats: &mut Stats) {}
}
