from __future__ import annotations

import pytest

from suffice import errors
from suffice.errors import (
    EngineError,
    InputError,
    MissingExtraError,
    NotReadyError,
    SufficeError,
    did_you_mean,
)


def test_every_error_has_a_code_an_exit_code_and_a_place_in_the_drawn_tree() -> None:
    kinds = [getattr(errors, name) for name in errors.__all__ if name.endswith("Error")]
    assert len({kind.code for kind in kinds}) == len(kinds)
    for kind in kinds:
        assert issubclass(kind, SufficeError)
        assert kind.__name__ in (errors.__doc__ or "")
        assert kind.exit_code in (1, 2)


def test_errors_are_also_standard_exceptions() -> None:
    with pytest.raises(ValueError, match="wrong"):
        raise InputError("wrong")
    with pytest.raises(ImportError):
        raise MissingExtraError("plots", extra="report")


def test_a_missing_extra_hints_at_the_pip_command() -> None:
    assert MissingExtraError("plots", extra="report").hint == "pip install 'suffice[report]'"


def test_an_engine_error_says_if_it_is_retryable() -> None:
    assert EngineError("busy", retryable=True).retryable
    assert not EngineError("gone").retryable


def test_the_nearest_name_is_offered_whatever_its_case() -> None:
    assert did_you_mean("tf-idf", ["tfidf", "bm25"]) == "did you mean 'tfidf'?"
    assert "The Verge" in did_you_mean("THE VERGE", ["The Verge", "Wired"])
    assert did_you_mean("zzz", ["a", "b"]) == "known: a, b"
    assert did_you_mean("zzz", []) == "none is known"


def test_an_error_says_which_name_was_probably_meant() -> None:
    error = InputError("no retriever is named 'hybird'", hint=did_you_mean("hybird", ["hybrid"]))
    assert str(error) == "no retriever is named 'hybird' (did you mean 'hybrid'?)"
    assert error.message == "no retriever is named 'hybird'"
    assert str(InputError(f"line 3: {error}", hint=error.hint)).count("did you mean") == 1


def test_a_hint_is_kept() -> None:
    assert NotReadyError("no library", hint="suffice build").hint == "suffice build"
