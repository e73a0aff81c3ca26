#!/bin/sh
cd "$(dirname "$0")" && exec ../cc.py sieve.c sieve.wasm
