"""The scripts at the root: ./mainstem makes its environment once, safely, and gets out of the way.

The environment under test has an empty lock file, so that nothing is downloaded.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout in a folder with a space in its name, whose command prints its arguments."""
    folder = tmp_path / "a checkout"
    (folder / "src" / "mainstem").mkdir(parents=True)
    (folder / "requirements").mkdir()
    shutil.copy(ROOT / "mainstem", folder)
    shutil.copy(ROOT / "requirements" / "environment.bash", folder / "requirements")
    for name in ("runtime.txt", "spark.txt", "dev.txt"):
        (folder / "requirements" / name).write_text("# nothing is needed\n")
    shutil.copy(ROOT / "src" / "mainstem-pyspark.pth", folder / "src")
    (folder / "src" / "mainstem" / "__init__.py").touch()
    (folder / "src" / "mainstem" / "__main__.py").write_text("import sys\nprint(sys.argv[1:])\n")
    return folder


def _run(*command: str | Path, cwd: Path | None = None) -> tuple[str, str]:
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=100, check=True)
    return result.stdout, result.stderr


def test_the_first_use_makes_the_environment_and_later_ones_only_use_it(
    checkout: Path, tmp_path: Path
) -> None:
    command = checkout / "mainstem"
    output, said = _run(command, "up", "a b")
    assert output == "['up', 'a b']\n"
    assert said.startswith("mainstem: making .venv from requirements/runtime.txt")
    assert _run(command, "again") == ("['again']\n", "")

    link = tmp_path / "link"
    link.symlink_to(command)
    assert _run(link, "through a link", cwd=Path("/")) == ("['through a link']\n", "")
    assert _run("bash", "mainstem", "by bash", cwd=checkout) == ("['by bash']\n", "")

    moved = checkout.rename(tmp_path / "moved")
    assert _run(moved / "mainstem", "moved") == ("['moved']\n", "")

    (moved / "requirements" / "runtime.txt").write_text("# the lock file changed\n")
    assert "making .venv" in _run(moved / "mainstem", "x")[1]
    assert _run(moved / "mainstem", "x")[1] == ""


def _java(folder: Path, version: str) -> dict[str, str]:
    """An environment in which Java is of that version."""
    java = folder / version / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    java.chmod(0o755)
    return {**os.environ, "JAVA_HOME": str(java.parent.parent)}


def test_only_commands_that_need_spark_add_it(checkout: Path, tmp_path: Path) -> None:
    command = checkout / "mainstem"
    assert "requirements/runtime.txt" in _run(command, "topics", "create", "demo")[1]
    java_17 = _java(tmp_path, "17.0.15")
    for first, arguments in enumerate(
        (("pipeline", "run", "x"), ("demo",), ("--verbose", "pipeline", "init"))
    ):
        result = subprocess.run(
            [command, *arguments], env=java_17, capture_output=True, text=True, check=True
        )
        assert result.stdout == f"{list(arguments)}\n"
        assert ("mainstem: adding Spark to .venv" in result.stderr) == (first == 0)
    assert _run(command, "up") == ("['up']\n", "")


def test_a_broken_off_addition_of_spark_leaves_the_rest_usable(checkout: Path) -> None:
    command = checkout / "mainstem"
    _run(command, "up")
    (checkout / "requirements" / "spark.txt").write_text("no-such-package==1 --hash=sha256:00\n")
    failed = subprocess.run([command, "pipeline", "init"], capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert "mainstem: could not install requirements/spark.txt" in failed.stderr
    assert _run(command, "up") == ("['up']\n", "")

    (checkout / "requirements" / "spark.txt").write_text("# nothing is needed\n")
    assert "adding Spark" in _run(command, "pipeline", "init")[1]
    assert _run(command, "pipeline", "init")[1] == ""


def test_an_old_java_is_refused_in_one_line_where_spark_would_start(checkout: Path, tmp_path: Path) -> None:
    command = checkout / "mainstem"
    _run(command, "pipeline", "validate")
    old = _java(tmp_path, "11.0.2")
    refused = subprocess.run([command, "demo"], env=old, capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("mainstem: Spark needs Java 17 or later, and JAVA_HOME")
    assert refused.stderr.count("\n") == 1
    subprocess.run([command, "pipeline", "validate"], env=old, capture_output=True, check=True)
    subprocess.run([command, "up"], env=old, capture_output=True, check=True)


def _debian_without_java(folder: Path, offered: str) -> dict[str, str]:
    """The commands of this machine, but no Java, and an apt of which root can install one package."""
    folder.mkdir()
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        for command in Path(place).iterdir() if Path(place).is_dir() else ():
            link = folder / command.name
            link.unlink(missing_ok=True)
            link.symlink_to(command)
    java = Path(_java(folder / "offered", "17.0.1")["JAVA_HOME"], "bin", "java")
    scripts = {
        "id": "echo 0",
        "apt-cache": "exit 0",
        "apt-get": f"""
            case "$*" in
                *--simulate*{offered}) ;;
                *install*{offered}) cp "{java}" "{folder}" ;;
                *) exit 100 ;;
            esac""",
    }
    for name in ("java", *scripts):
        (folder / name).unlink(missing_ok=True)
    for name, text in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    environment = {**os.environ, "PATH": str(folder)}
    environment.pop("JAVA_HOME", None)
    return environment


@pytest.mark.parametrize("offered", ["openjdk-21-jre-headless", "openjdk-17-jre-headless"])
def test_root_of_a_debian_machine_gets_the_java_that_apt_offers(
    checkout: Path, tmp_path: Path, offered: str
) -> None:
    environment = _debian_without_java(tmp_path / "bin", offered)
    done = subprocess.run(
        [checkout / "mainstem", "demo"], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "['demo']\n"
    assert f"mainstem: installing {offered}, which Spark runs on (once) ..." in done.stderr


def test_where_apt_offers_no_java_one_line_says_what_to_install(checkout: Path, tmp_path: Path) -> None:
    environment = _debian_without_java(tmp_path / "bin", "something-else")
    failed = subprocess.run(
        [checkout / "mainstem", "demo"], env=environment, capture_output=True, text=True, check=False
    )
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.splitlines()[-1].startswith(
        "mainstem: could not install Java 17 or later: install it"
    )


def test_several_uses_at_once_after_an_interrupted_set_up_make_one_environment(checkout: Path) -> None:
    (checkout / ".venv" / "bin").mkdir(parents=True)
    (checkout / ".venv" / "mainstem-unfinished").touch()
    (checkout / ".venv" / "half").touch()
    processes = [
        subprocess.Popen(
            [checkout / "mainstem", str(number)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for number in range(3)
    ]
    results = [process.communicate(timeout=100) for process in processes]
    assert [output for output, _ in results] == [f"['{number}']\n" for number in range(3)]
    assert sum("making .venv" in said for _, said in results) == 1
    assert not (checkout / ".venv" / "half").exists()


def test_without_python_one_line_says_what_to_install(checkout: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "readlink"):
        (programs / name).symlink_to(shutil.which(name) or "")
    result = subprocess.run(
        ["bash", checkout / "mainstem"],
        env={**os.environ, "PATH": str(programs)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 1
    assert result.stderr.startswith("mainstem: Python 3.11 or newer is needed")
    assert result.stderr.count("\n") == 1


def test_the_command_of_this_checkout_runs() -> None:
    assert _run(ROOT / "mainstem", "--version", cwd=Path("/"))[0].startswith("mainstem ")
