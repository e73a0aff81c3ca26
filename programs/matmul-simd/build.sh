#!/bin/sh
cd "$(dirname "$0")" && exec ../compile.py matmul-simd.c
