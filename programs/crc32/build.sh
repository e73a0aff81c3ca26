#!/bin/sh
cd "$(dirname "$0")" && exec ../compile.py crc32.c
