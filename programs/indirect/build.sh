#!/bin/sh
cd "$(dirname "$0")" && exec ../cc.py indirect.c indirect.wasm
