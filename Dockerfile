# Glassformer for a server: `docker build -t glassformer .`, then as compose.yaml says. See docs/hosting.md.
# No model of others and no Chromium are in it; the root may be read-only, /data is the one place that is written.
# The base image by its exact version. To take it by its digest, which no one can exchange, too:
#   docker build --build-arg BASE=python@$(docker buildx imagetools inspect python:3.11.14-slim-bookworm --format '{{.Manifest.Digest}}') .
ARG BASE=python:3.11.14-slim-bookworm
FROM ${BASE}

ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1

# Before several servers (SERVERS=2): 6 MB.
RUN apt-get update && apt-get install -y --no-install-recommends nginx-light && rm -rf /var/lib/apt/lists/*

WORKDIR /app

# PyPI's torch brings 2 GB of CUDA: the same version from the index for processors, first.
COPY requirements.txt requirements.lock ./
RUN pip install --no-deps --index-url https://download.pytorch.org/whl/cpu "$(grep '^torch==' requirements.txt)" \
    && pip install -r requirements.lock

COPY . .
# The code is compiled now: nobody may write here later.
RUN python deploy/prepare.py \
    && useradd --uid 1000 --create-home --home-dir /data glassformer

USER 1000
ENV HOME=/data TMPDIR=/data/tmp XDG_CACHE_HOME=/data/cache TIKTOKEN_CACHE_DIR=/data/cache/tiktoken \
    PYTHONDONTWRITEBYTECODE=1 GLASSFORMER_PROFILE=hosted GLASSFORMER_LOG=json PORT=8501
VOLUME /data
EXPOSE 8501
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=4 CMD ["python", "deploy/healthy.py"]
CMD ["sh", "deploy/start.sh"]
