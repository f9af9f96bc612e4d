"""What somebody sees who waits for a run: a bar on a terminal, a line for each case elsewhere."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from ps2stream_bench.figure import Case, Figure


class Bars:
    """Show a bar for each figure and tell of every case."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("{task.fields[figure]:20}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[case]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Bars:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def say(self, line: str) -> None:
        """Print a line above the bars."""
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def begins(self, figure: Figure, n_cases: int, n_kept: int) -> None:
        kept = f", {n_kept} measured before are kept" if n_kept else ""
        self.say(f"{figure.name}: {n_cases} to measure{kept}")
        self._task = self._progress.add_task("", total=n_cases, figure=figure.name, case="")

    def case_begins(self, figure: Figure, case: Case) -> None:
        assert self._task is not None
        self._progress.update(self._task, case=str(case))

    def case_ends(self, figure: Figure, case: Case, seconds: float, failure: str | None) -> None:
        assert self._task is not None
        self._progress.update(self._task, advance=1, case="")
        self.say(f"  {case}: {'FAILED, ' + failure if failure else f'{seconds:.1f} s'}")
