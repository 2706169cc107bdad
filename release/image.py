"""The image, by buildah: `poe image`.

    python -m release.image [--base IMAGE] [--suite bookworm] [--python 3.11] [--tag headrace:VERSION]

Without `--base` it is made of Debian's packages by mmdebstrap, from nothing. headrace is taken from
`build/release`: the compiled wheel if there is one for that Python, else the plain one. Needs root, buildah
and mmdebstrap; everything is kept in `build/image`, with a storage of its own.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Final

from release import bill
from release.building import ROOT
from release.check import version_of
from release.pythons import Failed, run, uv

WORK: Final = ROOT / "build" / "image"
WHEELS: Final = ROOT / "build" / "release"
PLATFORMS: Final = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
DEBIAN_BASE: Final = "localhost/headrace-base"


STORAGE: Final = ("--storage-driver", "vfs", "--root", str(WORK / "storage"), "--runroot", str(WORK / "run"))


def buildah(*arguments: str) -> str:
    return run(["buildah", *STORAGE, *arguments]).strip()


def default_tag() -> str:
    return f"localhost/headrace:{version_of(ROOT)}"


def make_base(suite: str, options: list[str]) -> str:
    """Debian with Python and nothing that it does not need."""
    archive = WORK / "rootfs.tar"
    left_out = [f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("doc", "man", "locale", "info")]
    kept = "--dpkgopt=path-include=/usr/share/doc/*/copyright"
    packages = "--include=python3-minimal,python3,ca-certificates"
    run(["mmdebstrap", "--variant=essential", packages, *left_out, kept, *options, suite, str(archive)])
    container = buildah("from", "scratch")
    buildah("add", "--quiet", container, str(archive), "/")
    buildah("commit", "--quiet", "--rm", container, DEBIAN_BASE)
    archive.unlink()
    return DEBIAN_BASE


def gather(minor: str) -> Path:
    """What the build copies: no network inside, so what is installed is what was looked at outside."""
    context = WORK / "context"
    shutil.rmtree(context, ignore_errors=True)
    context.mkdir(parents=True)
    wheels = str(context / "wheels")
    platforms = [part for name in PLATFORMS for part in ("--platform", name)]
    download = [uv(), "tool", "run", "pip", "--quiet", "download", "--dest", wheels, "--only-binary", ":all:"]
    choice = ["--python-version", minor, "--implementation", "cp", *platforms]
    run([*download, "--no-index", "--find-links", str(WHEELS), "--no-deps", *choice, "headrace"])
    run([*download, "--find-links", wheels, *choice, "headrace", "pip"])
    for name in ("Containerfile", "server.properties"):
        shutil.copy(ROOT / "deploy" / "image" / name, context)
    bill.write(ROOT, context / "sbom")
    return context


def build(base: str, context: Path, tag: str) -> None:
    arguments = ["--isolation", "chroot", "--format", "docker", "--build-arg", f"BASE={base}"]
    buildah("bud", "--quiet", *arguments, "--tag", tag, str(context))


def main() -> int:
    parser = argparse.ArgumentParser(description="build the image of a broker")
    parser.add_argument("--base", help="an image with Python; default: one of Debian's packages")
    parser.add_argument("--suite", default="bookworm", help="of Debian, for the default base")
    parser.add_argument("--python", default="3.11", help="the minor version that the base has")
    parser.add_argument("--mmdebstrap", action="append", default=[], help="a further option for mmdebstrap")
    parser.add_argument("--tag", default=default_tag())
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    try:
        context = gather(options.python)
        base = options.base or make_base(options.suite, options.mmdebstrap)
        build(base, context, options.tag)
        archive = WORK / "headrace.tar"
        archive.unlink(missing_ok=True)
        buildah("push", "--quiet", options.tag, f"docker-archive:{archive}:{options.tag}")
    except Failed as failure:
        print(failure, file=sys.stderr)
        return 1
    (wheel,) = (context / "wheels").glob("headrace-*.whl")
    print(f"{options.tag} with {wheel.name}, {archive.stat().st_size / 1e6:.0f} MB as {archive}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
