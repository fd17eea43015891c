"""A process of emulators: `python -m dae.envs.atari.server FD` does what it is asked for over a socket."""

import contextlib
import sys
from multiprocessing.connection import Connection

import cv2

from dae.envs.atari.games import Games


def _serve(connection: Connection) -> None:
    """Answer until no one asks any more."""
    games = Games(*connection.recv())
    while True:
        number, method, arguments = connection.recv()
        try:
            answer = getattr(games, method)(*arguments)
        except Exception as error:
            answer = error
        connection.send((number, answer))


if __name__ == "__main__":
    cv2.setNumThreads(1)
    with contextlib.suppress(EOFError, ConnectionError):  # the parent has ended
        _serve(Connection(int(sys.argv[1])))
