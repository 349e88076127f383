# The service, with compiled kernels.  After `make dist` with the same minor version of Python:
#
#     docker build --tag sightline .
#
# Without wheels of kernels: `--build-arg EXTRAS=service`.  Policies are then compiled at their first
# use, once per volume.
ARG PYTHON=3.13.9-slim-bookworm

FROM python:${PYTHON} AS build
ARG EXTRAS=service,fast
COPY constraints.txt /build/
COPY release/image.sh /build/release/
COPY src/sightline/version.py /build/src/sightline/
COPY dist/ /build/dist/
RUN SIGHTLINE_EXTRAS="${EXTRAS}" /build/release/image.sh /opt/sightline /build/dist

FROM python:${PYTHON}
RUN groupadd --gid 10001 sightline \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/sightline sightline \
    && install --directory --owner 10001 --group 10001 --mode 700 /var/lib/sightline
COPY --from=build /opt/sightline /opt/sightline

# Everything that the service writes is in /var/lib/sightline; /tmp may be a file system in memory.
ENV PATH=/opt/sightline/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    NUMBA_CACHE_DIR=/var/lib/sightline/cache \
    MPLCONFIGDIR=/tmp \
    SIGHTLINE_DATABASE=sqlite:////var/lib/sightline/experiments.db
WORKDIR /var/lib/sightline
VOLUME /var/lib/sightline
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/v1/health', timeout=4)"]
ENTRYPOINT ["sightline"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8000"]
