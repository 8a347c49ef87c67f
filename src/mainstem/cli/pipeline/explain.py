"""`mainstem pipeline explain`: a diagram of the pipeline, and with Spark the columns and plan of each
view."""

from __future__ import annotations

from typing import Annotated

import typer

from mainstem.cli.errors import CommandError
from mainstem.cli.output.rendering import examples
from mainstem.cli.pipeline.files import DEFAULT_FILE, File, Overrides, mistakes, show, usable
from mainstem.cli.streams import say

EXAMPLES = examples(
    "mainstem pipeline explain orders.yaml",
    "mainstem pipeline explain orders.yaml --plans  [dim]# Spark's logical plans too[/dim]",
    "mainstem pipeline explain orders.yaml --no-spark",
)


def explain(
    file: File = DEFAULT_FILE,
    spark: Annotated[
        bool, typer.Option("--spark/--no-spark", help="Let Spark check it and tell the columns of each view.")
    ] = True,
    plans: Annotated[bool, typer.Option("--plans", metavar="", help="Show Spark's logical plans.")] = False,
    bootstrap: Overrides = None,
) -> None:
    """Show how a pipeline hangs together; Spark checks columns and functions, but nothing runs."""
    document = usable(file)
    pipeline = document.pipeline
    assert pipeline is not None
    from mainstem.spark.pipeline.diagram import draw

    print(draw(pipeline, document.folder))
    if not spark:
        return
    from mainstem.spark.pipeline.checking.spark_parser import NoParser, java
    from mainstem.spark.pipeline.places import Places
    from mainstem.spark.pipeline.problems import PipelineError
    from mainstem.spark.pipeline.running.explain import explained
    from mainstem.wire import WireError

    try:
        java()
        places = Places(pipeline, document.folder, bootstrap=bootstrap)
        for view in explained(document, places):
            print(f"\n{view.name}")
            for column in view.columns:
                print(f"  {column}")
            if plans:
                print("\n".join(f"  | {line}" for line in view.plan.splitlines()))
    except NoParser as error:
        say(f"not checked by Spark: {error}")
    except WireError as error:
        raise CommandError(str(error), "only a schema that is inferred needs the broker here") from None
    except PipelineError as error:
        show(document, error.problems)
        raise mistakes(document, error.problems) from None
