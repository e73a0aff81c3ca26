#!/bin/sh
cd "$(dirname "$0")" && exec ../cc.py fib.c fib.wasm
