#!/bin/sh
# Serves the app on $PORT, from $SERVERS processes (deploy/servers.py; one unless it says so). Only $HOME, $TMPDIR and $XDG_CACHE_HOME are written; they are made where they are missing.
set -eu
cd "$(dirname "$0")/.."
for folder in "$HOME" "${TMPDIR:=/tmp}" "${XDG_CACHE_HOME:-$HOME}"; do
    if ! mkdir -p "$folder" 2>/dev/null || [ ! -w "$folder" ]; then
        echo "User $(id -u) may not write to $folder, where runs and keys are kept: it has to be theirs (chown -R), and not read-only." >&2
        exit 1
    fi
done
# Pools of freed memory for all threads of a process. glibc makes eight a core; the server itself asks for two, but only
# once some of its threads have one.
export MALLOC_ARENA_MAX="${MALLOC_ARENA_MAX:-2}"
# A Hugging Face Space stands in a frame of its site.
if [ -n "${SPACE_ID:-}" ]; then
    export GLASSFORMER_FRAME_ANCESTORS="${GLASSFORMER_FRAME_ANCESTORS:-https://huggingface.co}"
fi
# Every view and scene is drawn and measured before anybody asks, while the server is calm; `no` for one that waits.
export GLASSFORMER_WARM="${GLASSFORMER_WARM:-1}"
# Each open tab takes four descriptors: as many as the system gives, not the few that it gives unasked.
ulimit -n "$(ulimit -Hn)" 2>/dev/null || true
if [ "${SERVERS:-1}" != 1 ]; then
    exec "${PYTHON:-python}" -m deploy.servers
fi
# Without its greeting: Streamlit 1.67 would ask a server in the world for this one's address first, and where nobody
# answers it serves nobody for twenty seconds.
exec "${PYTHON:-python}" -m streamlit run app.py \
    --server.port "${PORT:-8501}" --server.address "${ADDRESS:-0.0.0.0}" --server.headless true \
    --logger.hideWelcomeMessage true
