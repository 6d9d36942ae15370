"""Several networks with a server each, which run tests beside each other."""

import contextlib
import os
import queue
from concurrent.futures import ThreadPoolExecutor

from trustbench.network import Network, Tests


class Pool:
    """Networks by number, each used by one job at a time."""

    def __init__(self, linerate, home, size):
        self.linerate, self.home, self.size = linerate, home, size
        self.free = queue.Queue()
        self.made = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as made:
            for number in range(self.size):
                network = made.enter_context(Network(number))
                home = os.path.join(self.home, str(number))
                self.free.put(made.enter_context(Tests(network, self.linerate, home)))
            self.made = made.pop_all()
        return self

    def __exit__(self, *_):
        self.made.close()

    def map(self, work, jobs):
        """What `work` returns for each job, in the order of the jobs. It gets a network's tests and the job."""

        def one(job):
            tests = self.free.get()
            try:
                return work(tests, job)
            finally:
                self.free.put(tests)

        with ThreadPoolExecutor(self.size) as threads:
            return list(threads.map(one, jobs))
