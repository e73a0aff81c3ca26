#!/bin/sh
cd "$(dirname "$0")" && exec ../compile.py sieve.c
