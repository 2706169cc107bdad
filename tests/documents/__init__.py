"""The examples of the documents, run: `poe docs-run`, `poe docs-run-spark`."""
