# The image of both processes. Build: docker build -t REGISTRY/dragoon .
#
# Dependencies are installed from the lock file, each with its hash, and only wheels: no compiler is
# needed, and the same commit gives the same files. Bytecode is part of the image, since nothing can be
# written where it runs. hack/image builds the same without Docker; it reads the last stage of this file.
FROM python:3.13-slim AS build
COPY --from=ghcr.io/astral-sh/uv:0.9 /uv /usr/local/bin/uv
WORKDIR /src
COPY pyproject.toml uv.lock README.md LICENSE ./
RUN uv export --frozen --no-dev --no-emit-project --output-file /requirements.txt \
 && uv pip install --system --target /app --require-hashes --only-binary :all: -r /requirements.txt
COPY hack/imagebuild/unused.txt /
RUN cd /app && for pattern in $(grep -v '^#' /unused.txt); do rm $pattern; done
COPY driver driver
RUN uv pip install --system --target /app --no-deps . \
 && mv /app/bin/dragoon /usr/local/bin/dragoon && rm -r /app/bin \
 && PYTHONHASHSEED=0 python -m compileall -q --invalidation-mode unchecked-hash /app

FROM python:3.13-slim
LABEL org.opencontainers.image.title="dragoon" \
      org.opencontainers.image.description="A Kubernetes DRA driver for NVIDIA GPUs with a gang allocator" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN PYTHONHASHSEED=0 python -m compileall -q --invalidation-mode unchecked-hash /usr/local/lib/python3.13
COPY --from=build /usr/local/bin/dragoon /usr/local/bin/dragoon
COPY --from=build /app /app
ENV PYTHONPATH=/app PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# The plugin's pod overrides it: files of the kubelet and CDI specs are root's.
USER 65532:65532
ENTRYPOINT ["python", "-m", "dragoon"]
CMD ["--help"]
