"""What may name a state."""

from __future__ import annotations

import enum

import numpy as np
import pytest

from quiltwork import InvalidInputError, MarkovChain
from quiltwork.beliefs.states import parse_label, parse_states, show_labels, sorted_labels


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


def test_without_labels_states_are_numbered_from_zero():
    assert parse_states(None, 3) == (0, 1, 2)


@pytest.mark.parametrize("label", ["rest", "", "läuft 🏃", 3, -1.5, True, None, ("a", (1, None))])
def test_every_documented_kind_of_label_is_kept_with_its_type(label):
    kept = parse_label(label, "State 1")
    assert kept == label
    assert type(kept) is type(label)


@pytest.mark.parametrize(
    ("label", "plain"),
    [
        (np.int8(3), 3),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (Colour.RED, "red"),
        (Level.LOW, 1),
    ],
)
def test_wrapped_labels_become_plain_python_values(label, plain):
    kept = parse_label(label, "State 1")
    assert (kept, type(kept)) == (plain, type(plain))


@pytest.mark.parametrize(
    "label", [float("nan"), [1], {"a"}, b"a", 1j, object(), "\ud800", (1, [2])]
)
def test_what_is_no_label_is_refused_by_its_place(label):
    with pytest.raises(InvalidInputError, match="State 2"):
        MarkovChain(np.eye(2), initial="any", states=["a", label])


@pytest.mark.parametrize("pair", [(1, True), (1, 1.0), (0.0, -0.0), ("a", "a"), ((1,), (True,))])
def test_labels_that_python_holds_equal_are_duplicates(pair):
    with pytest.raises(InvalidInputError, match="States 1 and 2 are the same label"):
        parse_states(pair, 2)


@pytest.mark.parametrize("states", ["ab", b"ab", {"a", "b"}, 2])
def test_states_need_an_order_and_one_entry_each(states):
    with pytest.raises(InvalidInputError, match="states must be a list"):
        parse_states(states, 2)


def test_the_number_of_labels_must_match():
    with pytest.raises(InvalidInputError, match="3 states for 2 rows"):
        parse_states(["a", "b", "c"], 2)


def test_labels_of_all_kinds_have_one_order():
    mixed = [("b",), "b", 2.5, None, "a", True, -1]
    assert sorted_labels(mixed) == (None, -1, True, 2.5, "a", "b", ("b",))


def test_messages_show_a_few_labels():
    assert show_labels((0, 1)) == "0, 1"
    assert show_labels(tuple(range(9))) == "0, 1, 2, 3, … (9 in all)"
