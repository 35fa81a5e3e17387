"""The processor's time of a process holds that of its children, also of those that have ended."""

import subprocess
import sys

from bench.measures.production import processor_seconds

#: One child burns a fifth of a second and ends, another one burns as much and lives.
PARENT = """\
import subprocess, sys
burn = "import time\\nwhile time.process_time() < 0.2: pass\\n"
subprocess.run([sys.executable, "-c", burn])
child = subprocess.Popen([sys.executable, "-c", burn + "print(flush=True); input()"], stdin=subprocess.PIPE)
input()
child.communicate()
"""


def test_children_count() -> None:
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert processor_seconds(process.pid) >= 0.38
        process.communicate(b"\n")
