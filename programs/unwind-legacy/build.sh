#!/bin/sh
cd "$(dirname "$0")" && exec ../compile.py ../unwind/unwind.cpp legacy unwind-legacy.wasm
