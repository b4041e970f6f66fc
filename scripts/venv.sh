# Sourced by the programs at the top of the tree: sets PYTHON to a virtual environment with msc and EXTRAS installed.
# The environment (VENV, by default .venv) is made on the first use and again when pyproject.toml changes.
set -eu
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
VENV=${VENV:-$ROOT/.venv}
PYTHON=$VENV/bin/python
stamp=$VENV/installed-$(echo "$EXTRAS" | cksum | cut -d" " -f1)
wanted=$(cksum <"$ROOT/pyproject.toml")

if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    base=${PYTHON3:-python3}
    "$base" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
        echo "msc needs Python 3.11 or later; name one: PYTHON3=/path/to/python3.11 $0" >&2
        exit 1
    }
    command -v "${CC:-cc}" >/dev/null || {
        echo "msc needs a C compiler: sudo apt-get install gcc" >&2
        exit 1
    }
    echo "installing msc into $VENV (once; half a minute or so) ..." >&2
    [ -x "$PYTHON" ] || "$base" -m venv "$VENV"
    "$PYTHON" -m pip install --quiet --disable-pip-version-check --editable "$ROOT$EXTRAS"
    echo "$wanted" >"$stamp"
fi
