# A container for nightly runs. Build: docker build -t payee-precheck .
# Run: docs/operations.md, "A container". Nothing in it runs as root.
FROM python:3.13-slim AS build
COPY . /source
RUN python -m venv /opt/precheck \
 && /opt/precheck/bin/python -m pip install --no-cache-dir --constraint /source/constraints.txt /source

FROM python:3.13-slim
COPY --from=build /opt/precheck /opt/precheck
# Two folders of the user's: the payments, and the state with the daily cap, which must outlive the container.
RUN useradd --create-home --uid 10001 precheck \
 && install --directory --owner precheck --mode 0700 /payments /state
ENV PATH=/opt/precheck/bin:$PATH XDG_STATE_HOME=/state
USER 10001
WORKDIR /payments
VOLUME ["/state"]
# A signal goes to precheck itself, which keeps the answers in flight.
STOPSIGNAL SIGTERM
# -I: no module of the payments' folder or of a PYTHONPATH is taken for one of ours. -B: no compiled files.
ENTRYPOINT ["/opt/precheck/bin/python", "-IB", "-m", "payee_precheck"]
CMD ["--help"]
