"""Functions that kernels call: typed and lowered, but not finished.

numba finishes every function by itself: it optimises it, makes machine code of it and a way to call it from
Python, and then does most of that again in every caller, whose code it becomes a part of. Only what Python
calls needs it. A part is left as its caller's optimiser wants it: as code to be inlined. That holds for the
kernels that a kernel calls and for what numba itself adds (``np.empty``, ``np.sort``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typed_passes import NopythonTypeInference


class _PartLibrary(JITCodeLibrary):  # type: ignore[misc]  # numba has no types
    """Code that is linked into others and never run by itself."""

    def finalize(self) -> None:
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0  # there is none: nothing of it is machine code

    @property
    def codegen(self) -> Any:
        return _NoEnvironments()

    def _optimize_functions(self, module: Any) -> None:
        # As numba does it, but with one set of passes, and without those for what is only declared.
        module.data_layout = self._codegen._data_layout
        passes, builder = self._codegen._function_pass_manager()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)


class _NoEnvironments:
    """What is never run has no use for the objects that its code refers to; the whole kernel enters them."""

    def set_env(self, name: str, environment: Any) -> None:
        """Leave it."""


@contextlib.contextmanager
def _parts_unfinished(codegen: Any) -> Iterator[None]:
    """Leave unfinished all that is compiled meanwhile, but for what :class:`WholeCompiler` compiles."""
    with global_compiler_lock:
        before = codegen._library_class
        codegen._library_class = _PartLibrary
        try:
            yield
        finally:
            codegen._library_class = before


@register_pass(mutates_CFG=False, analysis_only=False)
class _FinishIt(FunctionPass):  # type: ignore[misc]
    """Give the lowering a library that will be finished."""

    _name = "ps2stream_whole"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        state.library = JITCodeLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return True


class WholeCompiler(Compiler):  # type: ignore[misc]
    """Compile what Python calls; all that it needs is compiled on the way, as parts."""

    def compile_extra(self, function: Any) -> Any:
        with _parts_unfinished(self.state.targetctx.codegen()):
            return super().compile_extra(function)

    def define_pipelines(self) -> Any:
        pipelines = super().define_pipelines()
        for pipeline in pipelines:
            pipeline.add_pass_after(_FinishIt, NopythonTypeInference)
            pipeline.finalize()
        return pipelines
