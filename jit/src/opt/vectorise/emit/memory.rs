//! Loads of a number for each lane, and stores of the numbers of all lanes.
//!
//! A part of each element is taken from rows of 16 bytes by shuffles, and elements of several parts are put together likewise.

use super::{Carried, Emit};
use crate::ir::{Op, Type, Value};
use crate::opt::vectorise::work::{Narrow, VECTOR, VectorLoad, VectorStore};
use weir_bytecode::Opcode;

impl Emit<'_, '_> {
    /// The bytes in memory of the elements of a vector.
    pub(super) fn bytes(&self, group: usize) -> u64 {
        self.plan.layout.lanes() * self.plan.groups[group].element
    }

    /// A load of a number for each lane, widened.
    pub(super) fn load(&mut self, at: &Carried, load: &VectorLoad, which: u64) -> Value {
        let all = self.plan.layout.lanes() * load.width;
        if load.is_joined(self.plan.layout) {
            let halves = [0, load.width].map(|half| self.row(at, load, load.at + which * all + half, load.width));
            return self.inst(Op::Join, Type::V256, 0, &halves);
        }
        let mut vector = if load.width == self.plan.groups[load.group].element {
            self.row(at, load, load.at + which * all, all)
        } else {
            let chunks: Vec<Value> = (0..all.div_ceil(16)).map(|chunk| self.gather(at, load, which, chunk)).collect();
            if let [low, high] = chunks[..] { self.inst(Op::Join, Type::V256, 0, &[low, high]) } else { chunks[0] }
        };
        for (i, &widen) in load.widen.iter().enumerate() {
            let ty = if i + 1 == load.widen.len() { Type::V256 } else { Type::V128 };
            vector = self.vector(widen, ty, 0, &[vector]);
        }
        vector
    }

    /// A load of some consecutive bytes, made once in a round.
    fn row(&mut self, at: &Carried, load: &VectorLoad, distance: u64, bytes: u64) -> Value {
        if let Some(&known) = self.rows.get(&(load.group, distance, bytes)) {
            return known;
        }
        let address = at.addresses[load.group].expect("its address moves");
        let (op, ty) = match bytes {
            VECTOR => (Op::Load, Type::V256),
            16 => (Op::Load, Type::V128),
            8 => (Op::Load64U, Type::V128),
            _ => (Op::Load32U, Type::V128),
        };
        let inst = self.func.inst(load.load);
        let (pc, aux) = (inst.pc, inst.aux);
        let row = self.func.create(op, ty, pc, aux, distance, &[address]);
        self.out.push(row);
        self.rows.insert((load.group, distance, bytes), row);
        row
    }

    /// The `chunk`th 16 bytes of the parts of elements.
    fn gather(&mut self, at: &Carried, load: &VectorLoad, which: u64, chunk: u64) -> Value {
        let element = self.plan.groups[load.group].element;
        let start = load.at + which * self.bytes(load.group);
        let lanes = self.plan.layout.lanes().min(16 / load.width);
        let bytes = (0..lanes * load.width).map(|byte| {
            let from = (chunk * lanes + byte / load.width) * element + load.part + byte % load.width;
            (from / 16, (from % 16) as u8)
        });
        let bytes: Vec<(u64, u8)> = bytes.collect();
        let (used, bytes) = by_place(&bytes);
        let rows: Vec<Value> = used.into_iter().map(|row| self.row(at, load, start + 16 * row, 16)).collect();
        self.shuffled(&rows, &bytes)
    }

    /// A store of all lanes, narrowed.
    pub(super) fn store(&mut self, at: &Carried, store: &VectorStore, vectors: &[Value], which: u64) {
        let address = at.addresses[store.group].expect("stores are not to one address");
        let bytes = self.bytes(store.group);
        let narrowed: Vec<Value> = store.parts.iter().map(|&part| self.narrowed(vectors[part], store)).collect();
        let rows = if narrowed.len() > 1 { self.interleaved(&narrowed, store.width, bytes) } else { narrowed };
        let of_row = bytes / rows.len() as u64;
        for (row, i) in rows.into_iter().zip(0..) {
            let stored = match of_row {
                8 => self.vector(Opcode::I64x2ExtractLane, Type::I64, 0, &[row]),
                4 => self.vector(Opcode::I32x4ExtractLane, Type::I32, 0, &[row]),
                _ => row,
            };
            let inst = self.func.inst(store.store);
            let (pc, aux) = (inst.pc, inst.aux);
            let distance = store.at + which * bytes + i * of_row;
            let value = self.func.create(Op::Store, Type::Void, pc, aux, distance, &[address, stored]);
            self.out.push(value);
        }
    }

    /// Rows of 16 bytes, together `bytes`, of elements of these parts, each of `width` bytes.
    fn interleaved(&mut self, parts: &[Value], width: u64, bytes: u64) -> Vec<Value> {
        let mut chunks: Vec<Value> = Vec::new();
        let in_one = self.func.ty(parts[0]) == Type::V128;
        for &part in parts {
            if in_one { chunks.push(part) } else { chunks.extend(self.halves(part)) }
        }
        let element = width * parts.len() as u64;
        let of_row = |row: u64| {
            (0..bytes.min(16)).map(move |byte| {
                let to = 16 * row + byte;
                let (part, from) = (to % element / width, to / element * width + to % width);
                (if in_one { part } else { 2 * part + from / 16 }, (from % 16) as u8)
            })
        };
        let mut rows = Vec::new();
        for row in 0..bytes.div_ceil(16) {
            let bytes: Vec<(u64, u8)> = of_row(row).collect();
            let (used, bytes) = by_place(&bytes);
            let used: Vec<Value> = used.into_iter().map(|chunk| chunks[chunk as usize]).collect();
            rows.push(self.shuffled(&used, &bytes));
        }
        rows
    }

    /// A vector of these bytes, given by the index of a vector and of a byte in it. Its other bytes are any.
    fn shuffled(&mut self, vectors: &[Value], bytes: &[(usize, u8)]) -> Value {
        let mut result = vectors[0];
        // A shuffle takes the bytes of one more vector, and leaves those that later shuffles will replace in their places.
        for second in 1..vectors.len().max(2) {
            let lanes: Vec<u8> = (0..16)
                .map(|i| match bytes.get(usize::from(i)) {
                    Some(&(of, byte)) if of == second => 16 + byte,
                    Some(&(0, byte)) if second == 1 => byte,
                    _ => i,
                })
                .collect();
            let half = |bytes: &[u8]| bytes.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte));
            let halves = [half(&lanes[..8]), half(&lanes[8..])].map(|bits| self.number(Type::I64, bits));
            let lanes = self.vector(Opcode::V128Const, Type::V128, 0, &halves);
            let other = vectors.get(second).copied().unwrap_or(result);
            result = self.vector(Opcode::I8x16Shuffle, Type::V128, 0, &[result, other, lanes]);
        }
        result
    }

    pub(super) fn halves(&mut self, vector: Value) -> [Value; 2] {
        [0, 1].map(|half| self.inst(Op::Half, Type::V128, half, &[vector]))
    }

    /// Words of four bytes of two vectors.
    pub(super) fn words(&mut self, low: Value, high: Value, words: [u8; 4]) -> Value {
        let bytes = words.into_iter().flat_map(|word| (0..4).map(move |byte| (usize::from(word / 4), word % 4 * 4 + byte)));
        self.shuffled(&[low, high], &bytes.collect::<Vec<_>>())
    }

    /// The numbers that lanes become in memory, in the first bytes of the result.
    fn narrowed(&mut self, vector: Value, store: &VectorStore) -> Value {
        let mut lane = self.plan.layout.lane;
        if store.width == lane {
            return vector;
        }
        let mut vector = vector;
        let [mut low, mut high] = self.halves(vector);
        if let Narrow::Lane(lane) = store.narrow {
            let words =
                if store.width == 4 { [lane, 4 + lane, lane, 4 + lane] } else { [0, 1, 4, 5].map(|word| word + 2 * lane) };
            return self.words(low, high, words);
        }
        if store.narrow == Narrow::Demote {
            let [low, high] = [low, high].map(|half| self.vector(Opcode::F32x4DemoteF64x2Zero, Type::V128, 0, &[half]));
            return self.words(low, high, [0, 1, 4, 5]);
        }
        while lane > store.width {
            vector = match lane {
                // The lower four bytes of each eight.
                8 => self.words(low, high, [0, 2, 4, 6]),
                4 => self.vector(Opcode::I16x8NarrowI32x4U, Type::V128, 0, &[low, high]),
                _ => self.vector(Opcode::I8x16NarrowI16x8U, Type::V128, 0, &[low, high]),
            };
            (low, high) = (vector, vector);
            lane /= 2;
        }
        vector
    }
}

/// The vectors of which bytes are used, ascending, and the bytes with the place of their vector among these.
fn by_place(bytes: &[(u64, u8)]) -> (Vec<u64>, Vec<(usize, u8)>) {
    let mut used: Vec<u64> = bytes.iter().map(|byte| byte.0).collect();
    used.sort_unstable();
    used.dedup();
    let place = |vector: u64| used.partition_point(|&other| other < vector);
    let bytes = bytes.iter().map(|&(vector, byte)| (place(vector), byte)).collect();
    (used, bytes)
}
