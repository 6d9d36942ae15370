"""What a run came to: from the client's document, judged, as text."""

MOST_BYTES_A_CONNECTION = 1024
# Where fewer connections are held, the memory of the program itself outweighs theirs.
JUDGED_FROM = 100_000


def of_document(document, bytes_each):
    """The counts of a run document."""
    reports = {report["role"]: report for report in document.get("reports", [])}
    client, server = reports.get("client", {}), reports.get("server", {})
    errors = {}
    for report in (client, server):
        for kind, count in report.get("errors", {}).items():
            errors[kind] = errors.get(kind, 0) + count
    moved = sum(_bytes(client, way) for way in ("sent", "received"))
    status = document.get("status", {})
    return {"outcome": status.get("outcome"), "message": status.get("message", ""),
            "completed": document.get("summary", {}).get("transactions", 0), "errors": errors,
            "moved_bytes": moved, "bytes_each": bytes_each}


def _bytes(report, way):
    """Payload of all flows of an end's report, those that aren't listed included."""
    flows = list(report.get("flows", []))
    flows += [one for one in report.get("unlisted", {}).values() if isinstance(one, dict)]
    return sum(flow.get(way, {}).get("bytes", 0) for flow in flows)


def failures(run, bytes_each):
    """What was asked for and not held; a run that ended for lack of memory is held to less."""
    connections, found = run["connections"], []
    if run["errors"]:
        told = ", ".join(f"{count} {kind}" for kind, count in sorted(run["errors"].items()))
        found.append(f"connections failed: {told}")
    if run["sockets_left"]:
        found.append(f"{run['sockets_left']} sockets were left over")
    if not run["server_runs"]:
        found.append("the server did not outlive the run")
    if run["stopped"]:
        return found
    if run["outcome"] != "complete" or run["exit_code"] != 0:
        found.append(f"the client ended as {run['outcome']} with exit code {run['exit_code']}: {run['message']}")
    if run["peak_sockets"] < 2 * connections:
        found.append(f"at most {run['peak_sockets']} of {2 * connections} sockets were there at once")
    if run["completed"] != connections:
        found.append(f"{run['completed']} of {connections} connections were completed")
    if run["moved_bytes"] < connections * bytes_each:
        found.append(f"{run['moved_bytes']} of {connections * bytes_each} bytes were moved")
    if connections >= JUDGED_FROM:
        for end in ("client", "server"):
            each = run[f"{end}_bytes"] / connections
            if each > MOST_BYTES_A_CONNECTION:
                found.append(f"the {end} had {each:.0f} bytes a connection, more than {MOST_BYTES_A_CONNECTION}")
    return found


def figures(run):
    """The figures that are printed and drawn."""
    connections, reached_s = run["connections"], max(run["reached_s"], 1e-9)
    return {"connections_per_s": connections / reached_s,
            "bytes_per_s": run["moved_bytes"] / reached_s,
            "client_each": run["client_bytes"] / connections,
            "server_each": run["server_bytes"] / connections,
            "kernel_each": run["kernel_bytes"] / connections / 2}


def render_run(run):
    """A run in some lines."""
    head = f"{run['connections']:,} connections"
    if "peak_sockets" not in run:
        return f"{head}: FAILED: {'; '.join(run['failures'])}"
    each = figures(run)
    lines = [
        f"{head}: {run['peak_sockets']:,} TCP sockets in use at the peak, after {run['reached_s']:.1f} s"
        f" ({each['connections_per_s']:,.0f} connections/s, {each['bytes_per_s'] / 1e6:,.0f} MB/s moved and verified)",
        f"  user memory: client {each['client_each']:.0f} bytes a connection in {run['client_threads']} threads"
        f" ({run['client_bytes'] >> 20} MiB, at most {run['client_most_bytes'] >> 20}),"
        f" server {each['server_each']:.0f} in {run['server_threads']}"
        f" ({run['server_bytes'] >> 20} MiB, at most {run['server_most_bytes'] >> 20})",
        f"  the kernel: {each['kernel_each']:.0f} bytes a socket; MemAvailable {run['available_bytes'] >> 20} MiB",
        f"  {run['completed']:,} completed, {sum(run['errors'].values()):,} failed,"
        f" {run['sockets_left']:,} sockets left; ended after {run['ended_s']:.1f} s, {run['cpu_s']:.1f} s of CPU",
    ]
    if run["stopped"]:
        lines.append(f"  stopped early: {run['stopped']}")
    lines.append(f"  FAILED: {'; '.join(run['failures'])}" if run["failures"] else "  held")
    return "\n".join(lines)


def render_table(runs):
    """All runs as a table of Markdown."""
    rows = ["| connections | sockets | client, bytes each | server, bytes each | kernel, bytes a socket"
            " | connections/s | MB/s |", "|" + "---:|" * 7]
    for run in runs:
        if "peak_sockets" in run:
            each = figures(run)
            rows.append(f"| {run['connections']:,} | {run['peak_sockets']:,} | {each['client_each']:,.0f}"
                        f" | {each['server_each']:,.0f} | {each['kernel_each']:,.0f}"
                        f" | {each['connections_per_s']:,.0f} | {each['bytes_per_s'] / 1e6:,.0f} |")
    return "\n".join(rows)
