#!/bin/sh
cd "$(dirname "$0")" && exec ../compile.py sha256.c
