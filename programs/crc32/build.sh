#!/bin/sh
cd "$(dirname "$0")" && exec ../cc.py crc32.c crc32.wasm
