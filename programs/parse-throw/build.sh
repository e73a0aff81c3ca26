#!/bin/sh
cd "$(dirname "$0")" && exec ../compile.py parse-throw.cpp exnref
