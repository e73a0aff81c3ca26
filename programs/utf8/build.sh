#!/bin/sh
cd "$(dirname "$0")" && exec ../compile.py utf8.zig
