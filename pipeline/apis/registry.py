"""The table of all name-check APIs; register a new one here."""

from collections.abc import Mapping

import polars as pl

from pipeline.apis import ApiDeclaration, ReportDeclaration, cop, vop
from pipeline.sections import Server
from schemas.outcomes import ApiName

APIS: Mapping[ApiName, ApiDeclaration] = {
    ApiName.COP: cop.DECLARATION,
    ApiName.VOP_GATEWAY: vop.GATEWAY_DECLARATION,
    ApiName.VOP_STANDARD: vop.STANDARD_DECLARATION,
}
"""The APIs, in order of preference if several can check a payment."""
DECLARED: Mapping[ApiName, ApiDeclaration | ReportDeclaration] = {
    **APIS,
    ApiName.BANK_REPORT: vop.BANK_REPORT,
}
"""All sources of answers: the APIs and a bank's report."""
UK_APIS = tuple(name for name, declared in APIS.items() if declared.takes_uk)  # those for UK accounts


def about_uk_accounts(questions: pl.DataFrame) -> pl.DataFrame:
    """Return `check` and `account` of the questions about UK accounts."""
    return questions.select("check", "api", "account").filter(pl.col("api").is_in(UK_APIS)).drop("api")


SECTIONS: Mapping[str, Mapping[str, type[Server]]] = {
    key: {declared.form: declared.section for declared in APIS.values() if declared.key == key}
    for key in dict.fromkeys(declared.key for declared in APIS.values())
}
"""Key in a profile -> form -> the section of the API with this key and form."""

assert DECLARED.keys() == set(ApiName), "an API without a declaration"
assert sum(map(len, SECTIONS.values())) == len(APIS), "two APIs with the same section"
for _name, _declared in APIS.items():
    assert _declared.name is _name, f"{_name}: another API's declaration"
    _declared.check()
