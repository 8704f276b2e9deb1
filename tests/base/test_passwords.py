"""Secrets that only a sentence tells."""

from __future__ import annotations

import pytest

from harness.base import passwords, redaction

TOLD = {
    "the staging password is Tr0ub4dor&3": "Tr0ub4dor&3",
    "la password del database è Zefiro77x": "Zefiro77x",
    "mysql -u root -p s3cr3tdb1 shop": "s3cr3tdb1",
}
HONEST = ("passwords are hashed with bcrypt, cost 12", "the login form validates the password length", "see docs/a.md")


@pytest.mark.parametrize(("text", "secret"), TOLD.items())
def test_a_sentence_tells_a_password(text: str, secret: str) -> None:
    """It is masked in prose, and elsewhere left to the rules of forms."""
    assert passwords.find(text) == secret
    assert redaction.mask(text, prose=True) == text.replace(secret, "[masked: password]")
    assert redaction.found(text, prose=True)[-1:] == ["password"]


@pytest.mark.parametrize("text", HONEST)
def test_what_only_speaks_of_passwords_stays(text: str) -> None:
    """Nothing is masked."""
    assert redaction.mask(text, prose=True) == text
