"""Calls in a separate thread, and the effect of signal handlers on the thread that waits."""

from __future__ import annotations

import functools
import os
import queue
import signal
import threading
import time

import pytest

from sightline.signals import call_uninterrupted


def test_results_and_errors_come_through() -> None:
    threads = threading.active_count()
    assert call_uninterrupted(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        call_uninterrupted(lambda: 1 / 0)
    thread = call_uninterrupted(threading.current_thread)
    assert thread is not threading.main_thread()
    thread.join(timeout=60)  # it has returned, and may not yet have ended
    assert threading.active_count() == threads


def test_elsewhere_than_in_the_main_thread_nothing_is_started() -> None:
    found: list[bool] = []

    def work() -> None:
        here = threading.current_thread()
        found.append(call_uninterrupted(threading.current_thread) is here)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [True]


def test_where_no_thread_can_be_started_it_is_called_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("_thread.start_new_thread", refused)
    assert call_uninterrupted(threading.current_thread) is threading.main_thread()
    monkeypatch.undo()
    monkeypatch.setattr(threading.Thread, "start", refused)
    assert call_uninterrupted(lambda: 7) == 7


def interrupted() -> None:
    time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_comes_out_at_once_and_the_call_goes_on() -> None:
    go_on, ended = threading.Event(), threading.Event()

    def work() -> None:
        interrupted()
        go_on.wait()
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        call_uninterrupted(work)
    assert not ended.is_set()
    go_on.set()
    assert ended.wait(10.0)


def test_an_interrupt_stops_the_call_and_waits_for_its_end() -> None:
    stop: queue.SimpleQueue[None] = queue.SimpleQueue()
    ended = []

    def work() -> None:
        interrupted()
        stop.get()
        time.sleep(0.05)
        ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        call_uninterrupted(work, stop=functools.partial(stop.put, None))
    assert ended == [True]
