#!/bin/sh
cd "$(dirname "$0")" && exec ../cc.py sha256.c sha256.wasm
