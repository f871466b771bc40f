"""The section `[notify]` of the configuration: how to notify people of a run that needs them."""

from pydantic import Field, model_validator

from pipeline.errors import WrongValueError
from pipeline.sections.values import FilePath, Section, VariableName, Words
from pipeline.wording import Sentence


class NotifySection(Section):
    """A command or a webhook; the address of a webhook is a secret."""

    command: list[Words] = Field(
        default_factory=list,
        description="Program and arguments, without a shell. It reads the notification on standard input.",
    )
    webhook_env: VariableName | None = Field(
        default=None,
        description="Environment variable with the https address to which the notification is posted.",
    )
    webhook_file: FilePath | None = Field(default=None, description="Or a file with the address (mode 0600).")
    webhook_ca_file: FilePath | None = Field(
        default=None, description="Private certificate authority of the webhook; no other is trusted."
    )

    @model_validator(mode="after")
    def _is_one(self) -> "NotifySection":
        given = [bool(self.command), self.webhook_env is not None, self.webhook_file is not None]
        if sum(given) != 1:
            raise WrongValueError(Sentence("config.notify_one"))
        return self
