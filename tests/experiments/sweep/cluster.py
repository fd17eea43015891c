"""Two Ray nodes on this machine. A program of their own starts them, so that Ray stays out of the tests' process.

It says where the cluster is; a line to it kills the second node, and the end of its input ends the cluster.
"""

import json
import os
import select
import subprocess
import sys
from typing import Any, Self

from tests.processes import kill_with_descendants


class TwoNodes:
    """While in force, there is a Ray cluster of two nodes with one CPU each."""

    def __init__(self) -> None:
        self._program = subprocess.Popen(
            [sys.executable, "-m", "tests.experiments.sweep.cluster"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"RAY_USAGE_STATS_ENABLED": "0"},
            text=True,
        )
        try:
            told = json.loads(self._answer())
        except BaseException:
            self.__exit__()
            raise
        self.address: str = told["address"]
        self.raylets: list[int] = told["raylets"]  # of each node: the process that starts its workers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        try:
            self._program.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            kill_with_descendants(self._program.pid)
            self._program.communicate()

    def kill_second(self) -> None:
        """Kill the second node without a warning. (The first keeps the state of the cluster.)"""
        assert self._program.stdin is not None
        print(file=self._program.stdin, flush=True)
        assert self._answer() == "killed\n"

    def _answer(self, seconds: float = 120) -> str:
        assert self._program.stdout is not None
        assert select.select([self._program.stdout], [], [], seconds)[0], f"no answer within {seconds:g} s"
        return self._program.stdout.readline()


def serve() -> None:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        second = cluster.add_node(num_cpus=1)
        raylets = [node.all_processes["raylet"][0].process.pid for node in (cluster.head_node, second)]
        print(json.dumps({"address": cluster.address, "raylets": raylets}), flush=True)
        if sys.stdin.readline():
            cluster.remove_node(second, allow_graceful=False)
            print("killed", flush=True)
            sys.stdin.read()
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    serve()
