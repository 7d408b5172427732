#!/bin/sh
# Serves the app on $PORT. Only $HOME and $TMPDIR are written; both are made where they are missing.
set -eu
cd "$(dirname "$0")/.."
mkdir -p "$HOME" "${TMPDIR:=/tmp}"
# Pools of freed memory for all threads of a process. glibc makes eight a core; the server itself asks for two, but only
# once some of its threads have one.
export MALLOC_ARENA_MAX="${MALLOC_ARENA_MAX:-2}"
exec "${PYTHON:-python}" -m streamlit run app.py \
    --server.port "${PORT:-8501}" --server.address "${ADDRESS:-0.0.0.0}" --server.headless true
