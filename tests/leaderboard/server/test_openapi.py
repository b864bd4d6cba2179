"""Whatever the OpenAPI document allows to be asked: no answer is a server's error."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

CASES = 25


@schemathesis.serializer("application/zip", "application/octet-stream")
def as_it_is(context, value) -> bytes:
    """Bytes that are no zip file, mostly."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


def operations(site) -> list:
    schema = schemathesis.openapi.from_url(f"{site.url}/api/v1/openapi.json")
    return [result.ok() for result in schema.get_all_operations()]


def ask(site, operation) -> None:
    """Send what the document allows an operation to be sent."""

    @settings(
        max_examples=CASES,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.data())
    def asked(data):
        case = data.draw(operation.as_strategy())
        answer = case.call(base_url=site.url)
        assert answer.status_code < 500, (case.method, case.formatted_path, answer.text)

    asked()


@pytest.mark.slow
def test_no_request_that_the_document_allows_breaks_the_server(site):
    site.until(lambda: site.get("readyz").status_code == 200)
    every = operations(site)
    assert len(every) >= 10
    for operation in every:
        ask(site, operation)
