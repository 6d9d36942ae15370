"""Which program is which peer."""

import os
import tempfile
import unittest
from pathlib import Path
from unittest.mock import patch

from ..tools import Iperf3, Iperf3New
from ..tools.search import find_peers, version


class Iperf3s(unittest.TestCase):
    """Both kinds have one name: the flag decides, not the version."""

    def test_the_flag_tells_them_apart_and_the_version_is_told(self):
        with tempfile.TemporaryDirectory() as directory:
            for name, text in (("a", ""), ("b", "iperf 3.19 usage: --help"), ("c", "iperf 3.21 usage: --gsro")):
                program = Path(directory) / name / "iperf3"
                program.parent.mkdir()
                program.write_text(f"#!/bin/sh\necho '{text}'\n" if text else "#!/bin/sh\nexit 127\n",
                                   encoding="utf-8")
                program.chmod(0o755)
            with patch.object(os, "get_exec_path", return_value=[]):
                paths = find_peers([directory])
            self.assertEqual({kind: Path(path).parent.name for kind, path in paths.items()},
                             {Iperf3: "b", Iperf3New: "c"})
            self.assertEqual(version(Iperf3, paths[Iperf3]), "3.19")
