#!/bin/sh
cd "$(dirname "$0")" && exec ../compile.py binary-trees.c
