#!/bin/sh
cd "$(dirname "$0")" && exec ../cc.py sort.c sort.wasm
