#!/bin/sh
# Serves the app on $PORT. Only $HOME and $TMPDIR are written; both are made where they are missing.
set -eu
cd "$(dirname "$0")/.."
mkdir -p "$HOME" "${TMPDIR:=/tmp}"
# Pools of freed memory for all threads of a process. glibc makes eight a core; the server itself asks for two, but only
# once some of its threads have one.
export MALLOC_ARENA_MAX="${MALLOC_ARENA_MAX:-2}"
# A Hugging Face Space stands in a frame of its site.
if [ -n "${SPACE_ID:-}" ]; then
    export GLASSFORMER_FRAME_ANCESTORS="${GLASSFORMER_FRAME_ANCESTORS:-https://huggingface.co}"
fi
# Each open tab takes four descriptors: as many as the system gives, not the few that it gives unasked.
ulimit -n "$(ulimit -Hn)" 2>/dev/null || true
exec "${PYTHON:-python}" -m streamlit run app.py \
    --server.port "${PORT:-8501}" --server.address "${ADDRESS:-0.0.0.0}" --server.headless true
