#!/bin/sh
# Serves the app on $PORT. Only $HOME and $TMPDIR are written; both are made where they are missing.
set -eu
cd "$(dirname "$0")/.."
mkdir -p "$HOME" "${TMPDIR:=/tmp}"
exec "${PYTHON:-python}" -m streamlit run app.py \
    --server.port "${PORT:-8501}" --server.address "${ADDRESS:-0.0.0.0}" --server.headless true
