"""The values of options, numbers and truths among them, as the text that libraries take."""

from mainstem.spark.pipeline.model import Options


def as_text(options: Options) -> dict[str, str]:
    """The options with their values as text: `true`, as everybody but Python writes it."""
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()
    }
