"""Errors: one family, and no message that holds the password of a URL."""

from __future__ import annotations

import pickle

import pytest

from quiltwork import errors

URLS = [
    "postgresql://ana:s3cret@db/ledger",
    "postgresql://:s3cret@db/ledger",
    "postgresql://ana:s3@s3cret/s3cret:@db:5432/ledger?sslmode=require",
    "postgresql://db/ledger?user=ana&password=s3cret",
    "postgresql://db/ledger?sslpassword=s3cret&user=ana",
    "https://ana:s3cret@example.org/data.csv",
    "host=db user=ana password=s3cret",
    "host=db PASSWORD='s3cret too' user=ana",
]


@pytest.mark.parametrize("url", URLS)
def test_no_message_holds_a_password(url):
    for text in (url, f"Cannot read {url!r}: no such file.", f"There are {url} and {url}."):
        error = errors.InvalidInputError(text)
        assert "s3cret" not in str(error) + repr(error)
        assert b"s3cret" not in pickle.dumps(error)
        assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301  (our own bytes)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "There is no ledger at 'sqlite:////data/a:b@c.db'.",
        "There is no ledger at 'postgresql://ana@db:5432/ledger?sslmode=require'.",
        "Row 3 holds 'ana: 12@home', which is no number.",
    ],
)
def test_other_messages_stay_as_they_are(text):
    assert str(errors.StorageError(text)) == text
