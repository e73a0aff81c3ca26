#!/bin/sh
cd "$(dirname "$0")" && exec ../cc.py nbody.c nbody.wasm
