"""Calls in a thread of their own, and what a signal handler does to those who wait for them."""

from __future__ import annotations

import functools
import os
import queue
import signal
import threading
import time

import pytest

from sightline.undisturbed import undisturbed


def test_results_and_errors_come_through() -> None:
    threads = threading.active_count()
    assert undisturbed(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        undisturbed(lambda: 1 / 0)
    thread = undisturbed(threading.current_thread)
    assert thread is not threading.main_thread()
    thread.join(timeout=60)  # it has returned, and may not yet have ended
    assert threading.active_count() == threads


def test_elsewhere_than_in_the_main_thread_nothing_is_started() -> None:
    found: list[bool] = []

    def work() -> None:
        here = threading.current_thread()
        found.append(undisturbed(threading.current_thread) is here)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [True]


def test_where_no_thread_can_be_started_it_is_called_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("_thread.start_new_thread", refused)
    assert undisturbed(threading.current_thread) is threading.main_thread()
    monkeypatch.undo()
    monkeypatch.setattr(threading.Thread, "start", refused)
    assert undisturbed(lambda: 7) == 7


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
        undisturbed(work)
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
        undisturbed(work, stop=functools.partial(stop.put, None))
    assert ended == [True]
