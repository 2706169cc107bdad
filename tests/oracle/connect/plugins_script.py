"""What a worker says of itself, of its plugins and of configurations that it does not run."""

from __future__ import annotations

from tests.oracle.connect.dialogue import Dialogue

VALIDATE = "/connector-plugins/FileStreamSource/config/validate"
VALIDATE_SINK = "/connector-plugins/FileStreamSink/config/validate"


def run(with_worker: Dialogue) -> None:
    ask = with_worker.ask
    file = with_worker.file("validated.txt")
    ask("root", "GET", "/")
    ask("health", "GET", "/health")
    ask("no connectors", "GET", "/connectors")
    ask("no connectors, expanded", "GET", "/connectors?expand=status&expand=info")
    ask("plugins", "GET", "/connector-plugins")
    ask("all plugins", "GET", "/connector-plugins?connectorsOnly=false")
    ask("settings of a source", "GET", "/connector-plugins/FileStreamSource/config")
    ask("settings of a sink", "GET", "/connector-plugins/FileStreamSink/config")
    ask("settings of an unknown class", "GET", "/connector-plugins/NoSuchThing/config")
    good = {"name": "v", **with_worker.source("validated", file)}
    ask("valid source", "PUT", VALIDATE, good)
    ask("valid sink", "PUT", VALIDATE_SINK, {"name": "v", **with_worker.sink("validated", file)})
    ask("without a name", "PUT", VALIDATE, with_worker.source("validated", file))
    ask("without a topic", "PUT", VALIDATE, {k: v for k, v in good.items() if k != "topic"})
    ask("empty topic", "PUT", VALIDATE, {**good, "topic": ""})
    ask("tasks.max not a number", "PUT", VALIDATE, {**good, "tasks.max": "many"})
    ask("tasks.max too small", "PUT", VALIDATE, {**good, "tasks.max": "0"})
    ask("an unknown setting", "PUT", VALIDATE, {**good, "no.such.setting": "1"})
    ask("null as a value", "PUT", VALIDATE, {**good, "batch.size": None})
    ask("a number as a value", "PUT", VALIDATE, {**good, "tasks.max": 1})
    ask("class of another plugin", "PUT", VALIDATE_SINK, good)
    ask("without a class", "PUT", VALIDATE, {k: v for k, v in good.items() if k != "connector.class"})
    ask("unknown class", "PUT", "/connector-plugins/NoSuchThing/config/validate", good)
    ask("sink without topics", "PUT", VALIDATE_SINK, {"name": "v", "connector.class": "FileStreamSink"})
    both = {"name": "v", **with_worker.sink("validated", file), "topics.regex": "v.*"}
    ask("sink with topics and topics.regex", "PUT", VALIDATE_SINK, both)
    ask("validate: a list", "PUT", VALIDATE, "[1]")
    ask("validate: not JSON", "PUT", VALIDATE, "{")
    ask("validate: no body", "PUT", VALIDATE)
