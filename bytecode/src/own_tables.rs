//! Private tables: what calls through them can reach is known before instantiation.

use crate::module::{ConstExpr, ConstOp, ElemItems, ElemMode, ExternIndex, Module, Table};

impl Module {
    /// The number of elements of a private table; `None` for other tables. A table is private if it is defined here and not exported, no
    /// instruction writes or grows it, and its initial elements are functions that are defined here, or null. Each of its functions is
    /// one of the instance that has the table.
    pub fn own_elements(&self, table: u32) -> Option<u64> {
        let own = self.own_tables.get_or_init(|| self.find_own_tables());
        own[table as usize].then(|| self.tables[table as usize].ty.limits.min)
    }

    fn find_own_tables(&self) -> Box<[bool]> {
        // The value of a global may have been imported.
        let is_own_op =
            |op: &ConstOp| *op == ConstOp::RefNull || matches!(*op, ConstOp::RefFunc(func) if func >= self.imported_funcs);
        let is_own = |expr: &ConstExpr| expr.0.iter().all(is_own_op);
        let is_kept = |(table, Table { init, .. }): (u32, &Table)| {
            table >= self.imported_tables && !self.effects.writes_table(table) && init.as_ref().is_none_or(is_own)
        };
        let mut own: Box<[bool]> = (0..).zip(&self.tables).map(is_kept).collect();
        for export in &self.exports {
            if let ExternIndex::Table(table) = export.item {
                own[table as usize] = false;
            }
        }
        for segment in &self.elems {
            if let ElemMode::Active { table, .. } = segment.mode {
                own[table as usize] &= match &segment.items {
                    ElemItems::Funcs(funcs) => funcs.iter().all(|&func| func >= self.imported_funcs),
                    ElemItems::Exprs(exprs) => exprs.iter().all(is_own),
                };
            }
        }
        own
    }

    /// The index of a function in a private table: all calls of it through the table have this index. `None` if it may have none or several, or
    /// if instantiation can fail between the elements. Cost: O(elements of the module).
    pub fn own_index(&self, table: u32, func: u32) -> Option<u64> {
        self.own_elements(table)?;
        let is_null = |init: &ConstExpr| init.0[..] == [ConstOp::RefNull];
        if !self.tables[table as usize].init.as_ref().is_none_or(is_null) {
            return None;
        }
        let (mut found, mut end) = (None, 0);
        for segment in &self.elems {
            let ElemMode::Active { table: to, offset } = &segment.mode else { continue };
            let start = match offset.0[..] {
                [ConstOp::I32(start)] => u64::from(start as u32),
                [ConstOp::I64(start)] => start as u64,
                _ => return None,
            };
            // A function may already be in an imported table when the next segment does not fit.
            let fits = |end: u64| end <= self.tables[*to as usize].ty.limits.min;
            let segment_end = start.checked_add(segment.items.len() as u64).filter(|&end| fits(end))?;
            if *to != table {
                continue;
            }
            if start < end {
                return None;
            }
            end = segment_end;
            if let Some(index) = segment.items.only_index(func)?
                && found.replace(start + index as u64).is_some()
            {
                return None;
            }
        }
        found
    }

    /// The number of elements in all segments.
    pub fn num_elements(&self) -> usize {
        self.elems.iter().map(|segment| segment.items.len()).sum()
    }

    /// The functions of type `ty` in a private table: those that a call through it with this type may reach, in the order of the elements. A function
    /// may be there several times. `None` if the table is not private, and a call may reach any function. Cost: O(elements of the module).
    pub fn own_callees(&self, table: u32, ty: u32) -> Option<impl Iterator<Item = u32>> {
        self.own_elements(table)?;
        let ty = &self.types[ty as usize];
        let segments =
            self.elems.iter().filter(move |segment| matches!(segment.mode, ElemMode::Active { table: to, .. } if to == table));
        let initial = self.tables[table as usize].init.iter().flat_map(function);
        let all = initial.chain(segments.flat_map(|segment| segment.items.functions()));
        Some(all.filter(move |&func| self.func_type(func) == ty))
    }

    /// The only function that a call with type `ty` through a private table may reach. Cost: O(elements of the module), less if there are several.
    pub fn only_callee(&self, table: u32, ty: u32) -> Option<u32> {
        let mut callees = self.own_callees(table, ty)?;
        let first = callees.next()?;
        callees.all(|other| other == first).then_some(first)
    }
}

impl ElemItems {
    /// The index of the element that is this function, if there is one; `None` if several are.
    fn only_index(&self, func: u32) -> Option<Option<usize>> {
        let is_func = |expr: &ConstExpr| expr.0[..] == [ConstOp::RefFunc(func)];
        let (count, index) = match self {
            // A loop that does not end early is vectorised.
            ElemItems::Funcs(funcs) => match funcs.iter().filter(|&&other| other == func).count() {
                0 => (0, None),
                count => (count, funcs.iter().position(|&other| other == func)),
            },
            ElemItems::Exprs(exprs) => (exprs.iter().filter(|expr| is_func(expr)).count(), exprs.iter().position(is_func)),
        };
        (count <= 1).then_some(index)
    }

    /// The functions among the elements of a private table.
    fn functions(&self) -> impl Iterator<Item = u32> {
        let (funcs, exprs) = match self {
            ElemItems::Funcs(funcs) => (&funcs[..], &[][..]),
            ElemItems::Exprs(exprs) => (&[][..], &exprs[..]),
        };
        funcs.iter().copied().chain(exprs.iter().flat_map(function))
    }
}

/// The function to which an element of a private table refers; `None` for null.
fn function(expr: &ConstExpr) -> Option<u32> {
    expr.0.iter().find_map(|op| if let ConstOp::RefFunc(func) = *op { Some(func) } else { None })
}
