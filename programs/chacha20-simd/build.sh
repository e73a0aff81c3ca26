#!/bin/sh
cd "$(dirname "$0")" && exec ../compile.py chacha20-simd.c
