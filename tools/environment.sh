#!/bin/sh
# Make the environment with a Python that fits, or bring it up to date: sh tools/environment.sh VENV [PYTHON]
# A name on PATH may be a stub that fails, so every candidate is run before it is believed. The environment is a
# stamped step: nothing is done while the interpreter, pyproject.toml, the pins and the places are the same.
set -eu
case $1 in /*) venv=$1 ;; *) venv=$PWD/$1 ;; esac
asked=${2:-}
cd "$(dirname "$0")/.."

if [ "$asked" = --install ]; then # stamps.py calls this when something is to be done; the Python is in FOUND
    trap 'case $? in 0 | 130) ;; *) echo "environment: a command failed; its own message is above" >&2 ;; esac' EXIT
    quiet=--quiet
    if [ "$FOUND" != "$venv/bin/python" ]; then
        [ ! -e "$venv" ] || [ -f "$venv/pyvenv.cfg" ] || rmdir "$venv" 2>/dev/null ||
            { echo "$venv: expected a virtual environment or nothing, found other files" >&2; exit 1; }
        echo "environment: making $venv with $("$FOUND" -V) (minutes)"
        "$FOUND" -m venv --clear "$venv"
        quiet= # where it takes minutes, all that pip says is shown
    fi
    set -- "$venv/bin/python" -m pip install --disable-pip-version-check -c constraints.txt
    "$@" --quiet setuptools # the build backend comes from the pins as well, hence no build isolation
    "$@" $quiet --no-build-isolation -e ".[torch,train,book,test]"
    exit
fi
# Prints "fits", or what is wrong with the Python that runs it.
probe='
import importlib.util as u, sys
v = sys.version_info[:2]
lacks = [m for m in ("venv", "ensurepip") if u.find_spec(m) is None]
if not (3, 11) <= v <= (3, 13): print("is Python %d.%d" % v)
elif lacks: print("lacks %s (on Debian and Ubuntu: apt-get install python%d.%d-venv)" % (" and ".join(lacks), *v))
else: print("fits")
'
wrong=""
try() {
    verdict=$("$1" -c "$probe" 2>/dev/null) || verdict="is not there, or does not run"
    export FOUND="$1"
    [ "$verdict" = fits ] && exec "$1" tools/stamps.py environment --inputs pyproject.toml setup.py code/attnmath/pyproject.toml code/linewise/pyproject.toml constraints.txt \
        --output "$venv/bin/python" --stamp "$venv/installed.stamp" -- sh "$PWD/tools/environment.sh" "$venv" --install
    wrong="$wrong
  $1 $verdict"
}
# An environment that stands is kept, whatever python3 means today, unless another Python is asked for.
if [ -x "$venv/bin/python" ]; then
    [ -n "$asked" ] && [ "$("$asked" -V 2>&1)" != "$("$venv/bin/python" -V 2>&1)" ] || try "$venv/bin/python"
fi
if [ -n "$asked" ]; then try "$asked"; else for name in python3 python3.11 python3.12 python3.13; do try "$name"; done; fi
cat >&2 <<MESSAGE
This book needs Python 3.11, 3.12 or 3.13 with its venv and ensurepip modules. Tried:$wrong
Install one, or name one: make book PYTHON=/path/to/python3.12
MESSAGE
exit 1
