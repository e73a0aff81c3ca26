#!/bin/sh
cd "$(dirname "$0")" && exec ../cc.py mandelbrot.c mandelbrot.wasm
