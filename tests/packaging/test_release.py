"""Recipes agree with the project, and the checklist of a release refuses what is not ready."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ranks import completed

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli")

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
VERSION = re.search(r"project\(onehop VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]  # type: ignore[index]
SPACK_ROOT = ROOT / "packaging/spack/spack_repo/onehop"
SPACK = sorted((SPACK_ROOT / "packages").glob("*/package.py"))


def requirements() -> dict[str, str]:
    """Return the least version of each package that onehop needs at run time."""
    found = [re.match(r"([\w-]+)>=([\d.]+)", one) for one in PROJECT["project"]["dependencies"]]
    return {one[1]: one[2] for one in found if one}


def test_spack_finds_the_repository() -> None:
    """With api v2 the root lies below `spack_repo`, and the namespace is the path from there."""
    text = (SPACK_ROOT / "repo.yaml").read_text()
    stated = dict(re.findall(r"^  (\w+): (\S+)$", text, re.M))
    assert stated["api"] == "v2.0"
    assert stated["namespace"] == str(SPACK_ROOT.relative_to(ROOT / "packaging/spack/spack_repo")).replace(
        "/", "."
    )
    assert [file.parent.name for file in SPACK] == ["onehop", "py_onehop"]
    told = (ROOT / "packaging/README.md").read_text()
    assert f"spack repo add {SPACK_ROOT.relative_to(ROOT)} " in told


@pytest.mark.parametrize("file", SPACK, ids=lambda file: file.parent.name)
def test_spack_recipe(file: Path) -> None:
    tree = ast.parse(file.read_text())
    calls = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    versions = [one for one in calls if one.func.id == "version"]  # type: ignore[attr-defined]
    assert [one.args[0].value for one in versions] == [VERSION]  # type: ignore[attr-defined]
    assert [word.value.value for word in versions[0].keywords] == [f"v{VERSION}"]  # type: ignore[attr-defined]
    assert "resolve().parents[6]" in file.read_text()
    assert file.resolve().parents[6] == ROOT  # where the recipe fetches the tag from
    if file.parent.name == "py_onehop":
        stated = {one.args[0].value for one in calls if one.func.id == "depends_on"}  # type: ignore[attr-defined]
        assert {f"py-{name}@{least}:" for name, least in requirements().items()} <= stated
    else:
        options = set(re.findall(r"ONEHOP_\w+", file.read_text()))
        text = "".join(
            one.read_text() for one in [ROOT / "CMakeLists.txt", *(ROOT / "cmake").glob("*.cmake")]
        )
        assert all(f"option({one} " in text for one in options)


def test_conda_recipe() -> None:
    text = (ROOT / "packaging/conda/recipe.yaml").read_text()
    assert f'version: "{VERSION}"' in text
    for name, least in requirements().items():
        assert re.search(rf"\b{name} >={re.escape(least)}$", text, re.M), name
    assert f"onehop = {PROJECT['project']['scripts']['onehop']}" in text
    yaml = pytest.importorskip("yaml", reason="PyYAML reads the recipe")
    assert yaml.safe_load(text)["about"]["license"] == PROJECT["project"]["license"]["text"]


@pytest.mark.parametrize("platform", ["linux-64", "linux-aarch64"])
def test_rattler_build_renders_the_conda_recipe(platform: str) -> None:
    """Its own tool reads the recipe, with the variants that lie beside it, for the oldest and a newer Python."""
    tool = pytest.importorskip("rattler_build", reason="`pip install py-rattler-build` renders the recipe")
    recipe = tool.Stage0Recipe.from_yaml((ROOT / "packaging/conda/recipe.yaml").read_text())
    variants = tool.VariantConfig.from_file(ROOT / "packaging/conda/variants.yaml")
    where = tool.PlatformConfig(target_platform=platform, build_platform=platform)
    made = [one.recipe.to_dict() for one in recipe.render(variants, tool.RenderConfig(platform=where))]
    assert [one["package"]["version"] for one in made] == [VERSION] * 2
    for one in made:
        stated = one["requirements"]
        assert f"gxx_{platform}" in stated["build"]
        always = {f"{name} >={least}" for name, least in requirements().items()} - {"tomli >=2"}
        assert always <= {*stated["run"]}
    assert sum("tomli >=2" in one["requirements"]["run"] for one in made) == 1  # for Python 3.10


def test_the_bare_system_expects_what_is_said_without_torch() -> None:
    program = """if True:
        import sys
        class Without:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] == "torch":
                    raise ModuleNotFoundError("No module named 'torch'")
        sys.meta_path.insert(0, Without())
        import onehop.torch
    """
    done = completed([sys.executable, "-c", program], cwd=ROOT / "python")
    script = (ROOT / "tests/packaging/installed.sh").read_text()
    expected = re.search(r'^refused "(ImportError: .*)" \\$', script, re.M)[1]  # type: ignore[index]
    assert done.stderr.splitlines()[-1].startswith(expected.replace(r"\`", "`"))


INTERFACES = {"cirq": "cirq-core", "pennylane": "pennylane", "pytket": "pytket", "qiskit": "qiskit"}


def test_interfaces_without_their_packages_name_the_remedy() -> None:
    program = f"""if True:
        import importlib, sys
        class Without:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] in {[*INTERFACES]}:
                    raise ModuleNotFoundError("No module named " + name)
        sys.meta_path.insert(0, Without())
        for name in {[*INTERFACES]}:
            try:
                importlib.import_module("onehop." + name)
            except ImportError as error:
                print(error)
    """
    done = completed([sys.executable, "-c", program], cwd=ROOT / "python")
    for line, (name, package) in zip(done.stdout.splitlines(), INTERFACES.items(), strict=True):
        assert line.startswith(f"onehop.{name} needs "), line
        assert f": `pip install {package}`" in line, line


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository that is ready for its release."""
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    for name in ("CMakeLists.txt", "tools/release.sh", "packaging/conda/recipe.yaml", *map(str, SPACK)):
        file = ROOT / name
        target = tmp_path / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    (tmp_path / "CHANGELOG.md").write_text(
        f"## [Unreleased]\n\n## [{VERSION}] - 2030-01-02\n\n- All of it.\n"
    )
    (tmp_path / ".gitignore").write_text("/build/\n")
    settings = ["-c", "user.name=x", "-c", "user.email=x@y", "-c", "commit.gpgsign=false"]
    for line in (["init", "-q", "-b", "main"], ["add", "-A"], [*settings, "commit", "-qm", "x"]):
        subprocess.run(["git", *line], cwd=tmp_path, check=True)
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    (tmp_path / "build/wheels/dist").mkdir(parents=True)
    for what in ("x86_64", "aarch64", "sdist"):
        (tmp_path / f"build/wheels/dist/commit-{what}").write_text(commit.stdout)
    return tmp_path


def checked(folder: Path, *arguments: str) -> tuple[int, str]:
    done = completed(["bash", "tools/release.sh", *arguments], cwd=folder)
    return done.returncode, done.stderr


def test_a_ready_tree_is_released(repository: Path) -> None:
    assert checked(repository) == (0, "")


def test_what_is_not_ready_is_named(repository: Path) -> None:
    (repository / "more").touch()
    assert "changes that are not committed" in checked(repository)[1]
    (repository / "more").unlink()
    assert f"states version {VERSION}" in checked(repository, "7.0.0")[1]
    assert "expected a version X.Y.Z" in checked(repository, "7")[1]
    (repository / "build/wheels/dist/commit-aarch64").write_text("changed\n")
    assert "aarch64 was not built from this commit" in checked(repository)[1]
    subprocess.run(["git", "tag", f"v{VERSION}"], cwd=repository, check=True)
    assert "exists already" in checked(repository)[1]
    (repository / "CHANGELOG.md").write_text("## [Unreleased]\n\n- More.\n")
    code, said = checked(repository)
    assert code == 1
    assert "entries under Unreleased" in said
    assert "has no line" in said
