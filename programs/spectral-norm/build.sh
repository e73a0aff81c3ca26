#!/bin/sh
cd "$(dirname "$0")" && exec ../cc.py spectral-norm.c spectral-norm.wasm
