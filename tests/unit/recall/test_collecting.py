"""The garbage collector during bulk writes: its setting is the caller's before and after."""

from __future__ import annotations

import gc
import threading

import pytest

import rankblend as rb
from rankblend.errors import InvalidArgumentError
from rankblend.recall._write import collecting_seldom

USUAL = (700, 7, 5)


@pytest.fixture(autouse=True)
def usual():
    before = gc.get_threshold()
    gc.set_threshold(*USUAL)
    yield
    gc.set_threshold(*before)


def test_collecting_in_a_block_then_seldom_and_after_it_as_before():
    with collecting_seldom():
        assert gc.get_threshold()[0] > 100_000
        assert gc.get_threshold()[1:] == USUAL[1:]
        assert gc.isenabled()
    assert gc.get_threshold() == USUAL


def test_collecting_when_the_block_raises_then_as_before():
    with pytest.raises(KeyboardInterrupt), collecting_seldom():
        raise KeyboardInterrupt
    assert gc.get_threshold() == USUAL


@pytest.mark.parametrize("given", [0, 2_000_000_000], ids=["never", "more seldom"])
def test_collecting_when_set_to_be_more_seldom_then_stays_so(given):
    gc.set_threshold(given)
    with collecting_seldom():
        assert gc.get_threshold()[0] == given
    assert gc.get_threshold()[0] == given


def test_collecting_when_blocks_of_threads_overlap_then_the_last_restores_it():
    entered, leave = threading.Event(), threading.Event()

    def longer():
        with collecting_seldom():
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=longer)
    with collecting_seldom():
        thread.start()
        assert entered.wait(60)
    within = gc.get_threshold()
    leave.set()
    thread.join()
    assert within[0] > USUAL[0]
    assert gc.get_threshold() == USUAL


def test_remember_many_when_read_then_collects_seldom_and_restores_it():
    seen = []

    def tokenizer(text):
        seen.append(gc.get_threshold()[0])
        return text.split()

    with rb.Memory.open(":memory:", tokenizer=tokenizer) as memory:
        seen.clear()
        memory.remember_many([{"text": "tea is at four", "scope": "user:7"}])
        assert seen
        assert min(seen) > USUAL[0]
        assert gc.get_threshold() == USUAL
        with pytest.raises(InvalidArgumentError):
            memory.remember_many([{"text": "", "scope": "user:7"}])
    assert gc.get_threshold() == USUAL
