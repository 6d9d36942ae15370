"""Whom a client without a control connection tests against: discard, echo and chargen (RFC 863, 862,
864) over TCP and UDP, on three ports from the one that is given on."""

import socket
import sys
import threading

SERVICES = ("discard", "echo", "chargen")
BLOCK = b"x" * 65_536


def serve_connection(connection, service):
    """One client over TCP, to its end."""
    try:
        while True:
            if service == "chargen":
                connection.sendall(BLOCK)
                continue
            came = connection.recv(len(BLOCK))
            if not came:
                break
            if service == "echo":
                connection.sendall(came)
    except OSError:
        pass  # the client is gone
    connection.close()


def serve_stream(listener, service):
    """Everybody who comes over TCP."""
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve_connection, args=(connection, service), daemon=True).start()


def serve_datagrams(bound, service):
    """Every datagram."""
    while True:
        came, sender = bound.recvfrom(len(BLOCK))
        if service == "echo":
            bound.sendto(came, sender)


def main(first):
    """Serves until it is ended."""
    for number, service in enumerate(SERVICES):
        listener = socket.create_server(("", first + number), backlog=128)
        bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        bound.bind(("", first + number))
        threading.Thread(target=serve_stream, args=(listener, service), daemon=True).start()
        threading.Thread(target=serve_datagrams, args=(bound, service), daemon=True).start()
    threading.Event().wait()


if __name__ == "__main__":
    main(int(sys.argv[1]))
