"""Memory and rate over the number of connections, as a drawing."""

from comparison.plot import write_panels

from .report import figures


def write(path, runs):
    """Draws runs as an SVG file."""
    runs = sorted(runs, key=lambda run: run["connections"])
    across = [run["connections"] for run in runs]
    told = [figures(run) for run in runs]
    memory = {"client": [each["client_each"] for each in told],
              "server": [each["server_each"] for each in told]}
    rate = {"connections": [each["connections_per_s"] for each in told]}
    write_panels(path, "connections open at once", across,
                 [("User memory, bytes a connection", memory), ("Connections begun per second", rate)])
