#!/bin/sh
# Install Sightline with its service into a directory that is never changed afterwards: the contents of
# the container image.  The Dockerfile calls this script, and so does tests/test_image.py, which needs
# no container engine.
#
#     release/image.sh TARGET [WHEELS]
#
# Packages of this project come from the directory WHEELS if they are there, else from the package
# index.  SIGHTLINE_EXTRAS are the extras to install: "service,fast" has compiled kernels, "service"
# leaves them to the first use.
set -eu

target=$1
wheels=${2:-}
extras=${SIGHTLINE_EXTRAS-service,fast}
source=$(dirname "$(dirname "$(realpath "$0")")")
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$source/src/sightline/version.py")

"${PYTHON:-python3}" -m venv "$target"
"$target/bin/python" -m pip install --quiet --no-cache-dir --disable-pip-version-check \
    --constraint "$source/constraints.txt" ${wheels:+--find-links "$wheels"} \
    "sightline[$extras]==$version"
"$target/bin/python" -m pip uninstall --quiet --yes pip  # nothing is installed later
"$target/bin/sightline" --version
chmod -R a-w,a+rX "$target"
