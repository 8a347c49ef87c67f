"""Spark's Python processes start quickly where PySpark is installed as a package."""

import shutil
import subprocess
import sys
from pathlib import Path

_START_FILE = Path(__file__).parents[2] / "src" / "mainstem-pyspark.pth"


def _paths(site_packages: Path, *first: Path) -> list[str]:
    """Where a process would look for modules whose environment has these packages."""
    program = "import site, sys; site.addsitedir(sys.argv[1]); print(*sys.path, sep='\\n')"
    environment = {"PYTHONPATH": ":".join(map(str, first))}
    done = subprocess.run(
        [sys.executable, "-S", "-c", program, str(site_packages)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stderr
    return done.stdout.splitlines()


def test_pyspark_is_not_taken_from_the_zip_file_inside_its_own_package(tmp_path: Path) -> None:
    site_packages, elsewhere = tmp_path / "site-packages", tmp_path / "spark" / "python" / "lib"
    inside = site_packages / "pyspark" / "python" / "lib"
    inside.mkdir(parents=True)
    shutil.copy(_START_FILE, site_packages)
    zips = [inside / "pyspark.zip", inside / "py4j-1-src.zip", elsewhere / "pyspark.zip", inside / "other"]
    paths = _paths(site_packages, *zips)
    assert [str(path) in paths for path in zips] == [False, False, True, True]
    assert str(site_packages) in paths


def test_this_environment_has_the_file_that_sees_to_it() -> None:
    import pyspark

    zipped = Path(pyspark.__file__).parent / "python" / "lib" / "pyspark.zip"
    assert zipped.exists()
    told = subprocess.run(
        [sys.executable, "-c", "import pyspark; print(pyspark.__file__)"],
        env={"PYTHONPATH": str(zipped)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == pyspark.__file__
