#!/bin/sh
# Keeps packages from starting their services while an image is built.
exit 101
