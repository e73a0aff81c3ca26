#!/bin/sh
cd "$(dirname "$0")" && exec ../cc.py picture.c picture.wasm
