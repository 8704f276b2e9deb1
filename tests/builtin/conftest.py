"""Conversations of tests speak with servers on loopback, without TLS: their clients read one certificate, not all of a bundle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

END = "-----END CERTIFICATE-----\n"


@pytest.fixture(scope="package", autouse=True)
def one_certificate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A client reads a bundle of 150 certificates up to three times, which takes as long as all else of a conversation."""
    certifi = pytest.importorskip("certifi")
    path = tmp_path_factory.mktemp("certificates") / "one.pem"
    path.write_text(Path(certifi.where()).read_text().partition(END)[0] + END)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(path))
        yield
