#!/bin/sh
cd "$(dirname "$0")" && exec ../compile.py base64.c
