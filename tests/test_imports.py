"""Who may import whom, and the three files that share a stem."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# lower layers know nothing of higher ones: a module imports its own layer and those before it
LAYERS = (
    {"chips", "model", "errors", "units", "finding", "gateway_url", "untrusted"},
    {
        "samples",
        "wire",
        "stats",
        "batches",
        "flock",
        "git",
        "thresholds",
        "yamlfile",
        "yamlvalue",
        "serial_url",
    },
    {"session", "gate", "store", "rack", "lease", "network", "virtual", "plan", "flash", "power", "build"}
    | {"environment", "firmware", "reference", "trace", "history", "dissect", "ledger"},
    {"peers", "ci", "doctor", "nightly", "baseline", "health"},
    {"cli"},
    {"__main__"},
)
LAYER_OF = {module: number for number, layer in enumerate(LAYERS) for module in layer}


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and module of every import in a file, those inside functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, node.module
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def sources(folder: str) -> list[Path]:
    found = sorted((ROOT / folder).rglob("*.py"))
    assert found, f"{folder} holds no module"
    return [path for path in found if "hil/benches/" not in str(path)]


def offences(folder: str, forbidden: set[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in sources(folder)
        for line, name in imports(path)
        if name.partition(".")[0] in forbidden
    ]


def test_hil_imports_neither_pytest_nor_what_is_above_it() -> None:
    """The library works without pytest, fixtures, reports and tests."""
    assert not offences("hil", {"pytest", "_pytest", "pytest_embedded", "fixtures", "reports", "tests"})


def test_reports_read_model_gate_and_store_only() -> None:
    """A report is computed from what is on disk; it starts, measures and builds nothing."""
    allowed = {"model", "gate", "store", "errors", "units", "stats", "metrics", "thresholds"}
    allowed.add("batches")  # a share has the gate's interval wherever it is shown
    allowed.add("gateway_url")  # what an address must look like: rack file and push agree on it
    allowed.add("flock")  # several runs of one host write one history
    allowed.add("ledger")  # a ledger has one wording, in the terminal and in reports
    allowed.add("trace")  # the picture of a trace is drawn from its events
    allowed.add("reference")  # the published tables that a run is set beside
    allowed.add("dissect")  # a symptom has one display filter and one meaning
    allowed |= {"history", "nightly", "baseline"}  # a trend: boot values over time, and change points
    allowed.add("untrusted")  # what a fork wrote is made harmless in one way, wherever it is shown
    allowed.add("health")  # a rack's health has one reckoning, on the terminal, the page and in metrics
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in sources("reports")
        for line, name in imports(path)
        if name.startswith("hil.") and name.split(".")[1] not in allowed
    ]
    assert not wrong
    assert not offences("reports", {"pytest", "fixtures", "tests"})


def test_lower_layers_do_not_import_higher_ones() -> None:
    """model, errors ← wire, stats, thresholds ← session, gate, store, rack, … ← cli."""
    wrong = []
    for path in sources("hil"):
        own = path.relative_to(ROOT / "hil").parts[0].removesuffix(".py")
        if own == "__init__":  # of hil itself
            continue
        for line, name in imports(path):
            parts = name.split(".")
            if parts[0] != "hil" or len(parts) < 2:
                continue
            if LAYER_OF[parts[1]] > LAYER_OF[own]:
                wrong.append(f"{path.relative_to(ROOT)}:{line} ({own}) imports {name}")
    assert not wrong


def test_every_module_of_hil_has_a_layer() -> None:
    """Nothing is in no layer, where it could import anything, and no layer names what is gone."""
    found = {path.relative_to(ROOT / "hil").parts[0].removesuffix(".py") for path in sources("hil")}
    assert found - {"__init__"} == set(LAYER_OF)


def test_pytest_embedded_is_known_in_one_place() -> None:
    """Only the package fixtures/board knows pytest-embedded, so another console needs one package."""
    found = offences("fixtures", {"pytest_embedded"})
    wrong = [word for word in found if not word.startswith("fixtures/board/")]
    assert not wrong


def test_reports_are_called_in_one_place() -> None:
    """Only fixtures/reporting.py calls reports."""
    wrong = [word for word in offences("fixtures", {"reports"}) if "fixtures/reporting.py:" not in word]
    assert not wrong


def test_a_bench_is_three_files_of_one_stem() -> None:
    """benches/<stem>.c, test_<stem>.py and thresholds/<stem>.yaml exist together or not at all."""
    firmware = {path.stem for path in (ROOT / "firmware/components/benches").glob("*.c")}
    tests = {path.stem.removeprefix("test_") for path in (ROOT / "hil/benches").glob("test_*.py")}
    thresholds = {path.stem for path in (ROOT / "thresholds").glob("*.yaml")}
    assert firmware
    assert firmware == tests == thresholds


def test_a_run_starts_without_what_only_its_end_needs() -> None:
    """Neither the reports nor scipy.stats, each half a second, are imported before the first board."""
    late = "('reports', 'scipy.stats', 'otava', 'perfetto')"
    code = f"""import importlib, sys, conftest
for plugin in conftest.pytest_plugins:
    importlib.import_module(plugin)
print(*(name for name in {late} if name in sys.modules))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert not done.stdout.split()
