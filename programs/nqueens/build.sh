#!/bin/sh
cd "$(dirname "$0")" && exec ../cc.py nqueens.c nqueens.wasm
