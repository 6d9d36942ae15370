"""Starts OpenSearch or Elasticsearch on loopback, writes its address to a file, and serves until SIGTERM or SIGINT.

Jars come from the Java package registry (44 MB) and are kept in --work. Needs java, javac and mvn. Exits with 75 where
the registry doesn't give them.
"""

import argparse
import contextlib
import os
import signal
import sys
import tempfile

from .server import KINDS, WORK, Failed, Server, Unreachable, get_jars


def stop(_signal, _frame):
    sys.exit(0)


def remove(path):
    """Removes a file that need not be there."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(path)


def main():
    parser = argparse.ArgumentParser(prog="searchserver", description=__doc__)
    parser.add_argument("--work", default=WORK)
    parser.add_argument("--server", choices=KINDS, default="opensearch")
    parser.add_argument("--announce", required=True, help="the file that gets the address, and is there while the server answers")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    # Whoever waits for the file must not find that of a server before.
    remove(args.announce)
    with tempfile.TemporaryDirectory() as place:
        try:
            kind = KINDS[args.server]
            server = Server(kind, get_jars(kind, args.work), place)
        except Unreachable as unreachable:
            print(unreachable, file=sys.stderr)
            sys.exit(os.EX_TEMPFAIL)
        except Failed as failed:
            sys.exit(str(failed))
        try:
            print(server.ready, flush=True)
            whole = args.announce + ".new"
            with open(whole, "w", encoding="utf-8") as file:
                file.write(server.url + "\n")
            os.rename(whole, args.announce)
            while True:
                signal.pause()
        finally:
            remove(args.announce)
            server.close()


if __name__ == "__main__":
    main()
