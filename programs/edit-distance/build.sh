#!/bin/sh
cd "$(dirname "$0")" && exec ../compile.py edit-distance.c
