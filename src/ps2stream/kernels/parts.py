"""Kernels that other kernels call: typed and lowered, but not finished.

numba finishes every function by itself: it optimises it, makes machine code of it and a way to call it from
Python, and does most of that again in every caller, whose code it becomes a part of. Only what Python calls
needs it. A part is left as the caller's optimiser wants it: as code to be inlined.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
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


class _NoEnvironments:
    """What is never run has no use for the objects that its code refers to; the whole kernel enters them."""

    def set_env(self, name: str, environment: Any) -> None:
        """Leave it."""


@register_pass(mutates_CFG=False, analysis_only=False)
class _LeaveUnfinished(FunctionPass):  # type: ignore[misc]
    """Give the lowering a library that is not finished."""

    _name = "ps2stream_part"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return True


class PartCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler, but for the library that the code goes to."""

    def define_pipelines(self) -> Any:
        pipelines = super().define_pipelines()
        for pipeline in pipelines:
            pipeline.add_pass_after(_LeaveUnfinished, NopythonTypeInference)
            pipeline.finalize()
        return pipelines
