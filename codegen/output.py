"""The generated files: what they should be, how they are written and how they are compared."""

from __future__ import annotations

from pathlib import Path

from codegen.api_keys import write_api_keys
from codegen.definitions import read_jar
from codegen.jars import STORED_JARS, WIRE_JARS
from codegen.python_writer import HEADER, write_module

PROTOCOL = Path(__file__).parent.parent / "src" / "headrace" / "protocol"
API_KEYS = PROTOCOL / "api_keys.py"
FOLDERS = {"messages": WIRE_JARS, "stored": STORED_JARS}


def generate(jars: Path) -> dict[Path, str]:
    """The text of every generated file, by path."""
    files: dict[Path, str] = {}
    for folder, names in FOLDERS.items():
        files[PROTOCOL / folder / "__init__.py"] = ""
        for name in names:
            definitions = read_jar(jars / name)
            if definitions.apis:
                files[API_KEYS] = write_api_keys(definitions.apis, HEADER)
            for message in definitions.messages:
                path = PROTOCOL / folder / f"{message.module}.py"
                if path in files:
                    raise ValueError(f"two messages want to be {path.name}")
                files[path] = write_module(message)
    return files


def existing() -> set[Path]:
    modules = {path for folder in FOLDERS for path in (PROTOCOL / folder).glob("*.py")}
    return modules | ({API_KEYS} if API_KEYS.exists() else set())


def write(files: dict[Path, str]) -> None:
    for path in existing() - files.keys():
        path.unlink()
    for path, text in files.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def differences(files: dict[Path, str]) -> list[str]:
    """Names of the files that are missing, superfluous or not what would be generated now."""
    present = existing()
    wrong = set(files) ^ present
    wrong |= {path for path in present & set(files) if path.read_text() != files[path]}
    return sorted(str(path.relative_to(PROTOCOL)) for path in wrong)
