# A container for nightly runs. Build: make wheel && docker build -t payee-precheck .
# Run: docs/operations.md, "A container". Nothing in it runs as root.
#
# The base has no digest here: none could be looked up and verified where this file was written, and one that
# stands in a file keeps out the fixes of Debian and of Python until somebody changes it. Look yours up, and pin it:
#   docker buildx imagetools inspect python:3.13-slim
#   docker build --build-arg PYTHON=python:3.13-slim@sha256:... -t payee-precheck .
ARG PYTHON=python:3.13-slim
FROM ${PYTHON} AS install
# For hosts that share a ledger (docs/many-machines.md): --build-arg CONSTRAINTS=constraints-many.txt
ARG CONSTRAINTS=constraints.txt
COPY ${CONSTRAINTS} dist/*.whl /source/
# All that is fetched is known by its hash; the wheel is ours, and nothing is built here.
RUN python -m venv /opt/precheck \
 && /opt/precheck/bin/python -m pip install --no-cache-dir --only-binary :all: --require-hashes \
    --requirement "/source/${CONSTRAINTS}" \
 && /opt/precheck/bin/python -m pip install --no-cache-dir --no-index --no-deps /source/*.whl

FROM ${PYTHON}
COPY --from=install /opt/precheck /opt/precheck
# Two folders: the payments, and the state with the daily cap, which must outlive the container. The group root
# lets a platform choose the user, as OpenShift does; precheck makes its own folders in them private.
RUN useradd --no-create-home --home-dir /state --uid 10001 --gid 0 precheck \
 && install --directory --owner precheck --group root --mode 0770 /payments /state
ENV PATH=/opt/precheck/bin:$PATH HOME=/state XDG_STATE_HOME=/state
USER 10001
WORKDIR /payments
VOLUME ["/state"]
# A signal goes to precheck itself, which keeps the answers in flight.
STOPSIGNAL SIGTERM
# -I: no module of the payments' folder or of a PYTHONPATH is taken for one of ours. -B: no compiled files.
ENTRYPOINT ["/opt/precheck/bin/python", "-IB", "-m", "payee_precheck"]
CMD ["--help"]
