#!/bin/sh
# Find a Python that can make the environment, and let it: sh tools/environment.sh VENV [PYTHON]
# A name on PATH may be a stub that fails, so every candidate is run before it is believed.
set -eu
venv=$1
asked=${2:-}
here=$(dirname "$0")

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
    [ "$verdict" = fits ] && exec "$1" "$here/environment.py" "$venv" ${2:+"$2"}
    wrong="$wrong
  $1 $verdict"
}

if [ -n "$asked" ]; then
    try "$asked" --this-python
else
    # An environment that stands is kept, whatever python3 means today.
    [ -x "$venv/bin/python" ] && try "$venv/bin/python"
    for name in python3 python3.11 python3.12 python3.13; do try "$name"; done
fi
cat >&2 <<MESSAGE
This book needs Python 3.11, 3.12 or 3.13 with its venv and ensurepip modules. Tried:$wrong
Install one, or name one: make book PYTHON=/path/to/python3.12
MESSAGE
exit 1
