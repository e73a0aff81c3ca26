#!/bin/sh
cd "$(dirname "$0")" && exec ../compile.py unwind.cpp exnref
