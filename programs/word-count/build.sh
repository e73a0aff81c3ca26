#!/bin/sh
cd "$(dirname "$0")" && exec ../compile.py word-count.c
