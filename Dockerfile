# The server in a container; docs/server.md says how to run it.
FROM python:3.12-slim
COPY pyproject.toml constraints.txt README.md LICENSE /build/
COPY src /build/src
RUN pip install --no-cache-dir --constraint /build/constraints.txt /build && rm -r /build
ENV NANOCLAW_HOME=/memory
VOLUME /memory
EXPOSE 7717
CMD ["sh", "-c", "ncm init && exec ncm serve --bind 0.0.0.0 --port ${PORT:-7717}"]
