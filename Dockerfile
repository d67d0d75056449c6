# The service without embedded servers: every part is one command, configured by its environment.
#
#   docker build -t undivided .
#   docker run -e DATABASE_URL=... -e REDIS_URL=... undivided worker

FROM python:3.12-slim AS build
WORKDIR /src
RUN python -m venv /opt/undivided
COPY requirements.txt ./
RUN /opt/undivided/bin/pip install --no-cache-dir --require-hashes -r requirements.txt
COPY pyproject.toml README.md ./
COPY undivided ./undivided
RUN /opt/undivided/bin/pip install --no-cache-dir --no-deps --no-build-isolation --no-index .

FROM python:3.12-slim
RUN useradd --system --create-home undivided
COPY --from=build /opt/undivided /opt/undivided
ENV PATH=/opt/undivided/bin:$PATH PYTHONUNBUFFERED=1
USER undivided
WORKDIR /home/undivided
EXPOSE 8420
# A worker reaches its next yield point before it leaves, which takes up to 20 s.
STOPSIGNAL SIGTERM
ENTRYPOINT ["undivided"]
CMD ["api", "--host", "0.0.0.0"]
