#!/bin/sh
cd "$(dirname "$0")" && exec ../cc.py hello.c hello.wasm
