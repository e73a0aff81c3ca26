#!/bin/sh
cd "$(dirname "$0")" && exec ../compile.py blake2s.rs
