"""One download over a link."""

import json

from .curve import Curve
from .link import CONGESTION, RIGHT_ADDRESS, Link, end

INTERVAL_S = 0.1
# The first window of the proxy's connections: as in the published measurements.
FIRST_WINDOW = 100
SERVER_PORT = 18080
PROXY_PORT = 5251
IPERF3_PORT = 5201
# A server and a proxy that wait for a processor longer than this share of the time are held up by other programs.
WAITED_RATIO = 0.2
# What connecting, and the end, may take beside the download.
MARGIN_S = 60


def download(linerate, folder, row, seconds):
    """Runs one; its curve."""
    with Link(linerate, folder, row.link, row.loss_percent) as link:
        take = quic if row.protocol == "QUIC" else tcp
        curve = take(link, folder, row.is_proxied, seconds)
    is_punctual = link.report is not None and link.report["status"]["exit_code"] == 0
    curve.is_trusted = is_punctual and link.waited_s < WAITED_RATIO * seconds
    return curve


def quic(link, folder, is_proxied, seconds):
    """qperf over QUIC."""
    pem = str(make_identity(link, folder))
    server = [link.linerate, "qperf", "-s", "--cc", CONGESTION, "--listen-addr", "0.0.0.0",
              "--listen-port", str(SERVER_PORT), "--tls-cert", pem, "--tls-key", pem]
    link.start("right", server, "starting server")
    port = SERVER_PORT
    if is_proxied:
        port = PROXY_PORT
        words = [link.linerate, "proxy", f"{RIGHT_ADDRESS}:{SERVER_PORT}", "--port", str(port),
                 "--cert", pem, "--key", pem, "--iw", str(FIRST_WINDOW), "--buffer", "4Mi", "--quiet"]
        link.start("right", words, "proxy on")
    client = [link.linerate, "qperf", "-c", RIGHT_ADDRESS, "-p", str(port), "-t", str(seconds),
              "-i", str(INTERVAL_S), "--print-raw", "-q", "8M"]
    return Curve.of_qperf(link.run(client, seconds + MARGIN_S), INTERVAL_S)


def tcp(link, _folder, is_proxied, seconds):
    """iperf3 over TCP."""
    server = [link.linerate, "iperf3", "-s", "-p", str(IPERF3_PORT), "--forceflush"]
    link.start("right", server, "Server listening")
    port = IPERF3_PORT
    if is_proxied:
        port = PROXY_PORT
        link.set_first_window(FIRST_WINDOW)
        words = [link.linerate, "proxy", f"{RIGHT_ADDRESS}:{IPERF3_PORT}", "--tcp", "--port", str(port), "--quiet"]
        link.start("right", words, "proxy on")
    client = [link.linerate, "iperf3", "-c", RIGHT_ADDRESS, "-p", str(port), "-R", "-J",
              "-t", str(seconds), "-i", str(INTERVAL_S)]
    return Curve.of_iperf3(json.loads(link.run(client, seconds + MARGIN_S)), INTERVAL_S)


def make_identity(link, folder):
    """A certificate and its key in one file, as the proxy makes them at its first start."""
    path = folder / "server.pem"
    if not path.exists():
        words = [link.linerate, "proxy", "127.0.0.1:9", "--port", "0", "--identity", str(folder), "--quiet"]
        end(link.start("right", words, "proxy on"))
    return path
