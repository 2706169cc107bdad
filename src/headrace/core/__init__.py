"""Names, errors and ports that every other package may use; imports nothing of the project."""
