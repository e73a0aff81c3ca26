#!/bin/sh
# The test `programs` checks that euclid.wasm is what euclid.wat says, and writes it when blessed.
cd "$(dirname "$0")" && WEIR_BLESS=1 exec cargo test -p weir-tests --test programs text_programs
