"""The documents by name, for `precheck schema`."""

import json

import pytest

from schemas import catalogue


@pytest.mark.parametrize("name", catalogue.names())
def test_every_document_has_a_json_schema_with_its_wire_names(name):
    schema = json.loads(catalogue.json_schema(name))
    assert schema["type"] == ("array" if name == "approvals" else "object")
    if name in {"cop-request", "cop-response", "vop-gateway-request", "vop-standard-request", "vop-response"}:
        properties = [
            *schema["properties"],
            *(p for d in schema.get("$defs", {}).values() for p in d.get("properties", {})),
        ]
        assert not [member for member in properties if "_" in member]


def test_unknown_document_is_a_mistake_of_the_caller():
    with pytest.raises(KeyError):
        catalogue.json_schema("nothing")
