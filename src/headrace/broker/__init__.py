"""The broker: composition of the layers below, the table of APIs, and one handler per API."""
