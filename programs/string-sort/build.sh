#!/bin/sh
cd "$(dirname "$0")" && exec ../compile.py string-sort.rs
