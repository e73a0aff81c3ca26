#!/bin/sh
cd "$(dirname "$0")" && exec ../compile.py ../parse-throw/parse-throw.cpp legacy parse-throw-legacy.wasm
