//! What code may do to other parts of its module and to other instances, as validation sees it.

/// What the bodies of a module may do, all together. Bodies that are not validated yet may do everything.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Effects {
    /// Some tail call may leave the instance: `return_call` of an import, or any `return_call_indirect` or `return_call_ref`. A call of one of
    /// the module's own functions may then return with another instance's context in the pinned register.
    pub foreign_tail_calls: bool,
    /// The tables that some instruction writes or grows: bit `i` for table `i`, and the last bit for all others.
    pub written_tables: u64,
}

impl Effects {
    /// Those of unknown code.
    pub const ALL: Effects = Effects { foreign_tail_calls: true, written_tables: u64::MAX };

    /// Adds those of other bodies.
    pub fn add(&mut self, other: Effects) {
        self.foreign_tail_calls |= other.foreign_tail_calls;
        self.written_tables |= other.written_tables;
    }

    /// Adds a write of a table.
    pub fn write_table(&mut self, table: u32) {
        self.written_tables |= 1 << table.min(u64::BITS - 1);
    }

    /// Returns whether some instruction may write or grow the table.
    pub fn writes_table(&self, table: u32) -> bool {
        self.written_tables >> table.min(u64::BITS - 1) & 1 != 0
    }
}
