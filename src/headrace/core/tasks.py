"""Background tasks: each fails alone and by its name.

A failure goes to the event loop's exception handler. A broker logs it there; a simulation fails, because a
mistake of ours is one even where nobody else has to suffer from it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from headrace.core.failures import add_reporter, report

T = TypeVar("T")


def spawn(
    name: str,
    coroutine: Coroutine[Any, Any, T],
    loop: asyncio.AbstractEventLoop | None = None,
    *,
    is_awaited: bool = False,
) -> asyncio.Task[T]:
    """The one way to start a task. If it raises, that is reported by name. `is_awaited`: it is not, because
    whoever started the task awaits it and hears of the failure. Keep the task: the event loop alone does not.
    """
    task = (asyncio.get_running_loop() if loop is None else loop).create_task(coroutine, name=name)
    if not is_awaited:
        task.add_done_callback(_on_done)
    return task


def _on_done(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        report(task.get_name(), error)


def _tell_loop(name: str, error: BaseException) -> bool:
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return False
    loop.call_exception_handler({"message": f"{name} failed: {error!r}", "exception": error})
    return True


add_reporter(_tell_loop)
