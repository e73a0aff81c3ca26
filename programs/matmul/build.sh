#!/bin/sh
cd "$(dirname "$0")" && exec ../cc.py matmul.c matmul.wasm
