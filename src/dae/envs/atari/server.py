"""A process of emulators: `python -m dae.envs.atari.server FD` does what it is asked for over a socket."""

import signal
import sys
from multiprocessing.connection import Connection

import cv2

from dae.envs.atari.games import Games


def _serve(connection: Connection) -> None:
    """Answer until no one asks any more."""
    games = Games(*connection.recv())
    while True:
        method, arguments = connection.recv()
        try:
            answer = getattr(games, method)(*arguments)
        except Exception as error:
            answer = error
        connection.send(answer)


if __name__ == "__main__":
    # Ctrl-C reaches all processes of a terminal; this one ends when its parent does, which still needs it to save.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    cv2.setNumThreads(1)
    try:
        _serve(Connection(int(sys.argv[1])))
    except (EOFError, ConnectionError):
        sys.exit()  # the parent has ended, or needs the games no longer
