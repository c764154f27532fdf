"""Run one Python fuzz target: under Atheris with the options of libFuzzer, or over files without it.

drive.py TARGET [-OPTION...] CORPUS...     fuzz; Atheris must be installed
drive.py TARGET --replay FILE...           read each file once
"""

import os
import re
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

# Memory beyond a multiple of the input: the first use of a module, caches, blocks that the allocator keeps.
ALLOWANCE = 48 << 20
BYTES_PER_BYTE = 10


def _peak() -> int:
    # A program starts with the ru_maxrss of the process that started it; VmHWM is its own.
    if found := re.search(r"^VmHWM:\s*(\d+) kB$", Path("/proc/self/status").read_text(), re.M):
        return int(found[1]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def limited(read: Callable[[bytes, Path], object], folder: Path) -> Callable[[bytes], None]:
    """Return a reader that accepts what returns or raises BadInput, and that checks the memory."""
    from onehop import BadInput

    def run(data: bytes) -> None:
        before, peak = _resident(), _peak()
        try:
            read(data, folder)
        except BadInput as error:
            text = str(error)
            assert text.strip(), "BadInput without a message"
            assert len(text) < 8192, f"a message of {len(text)} characters"
            text.encode("utf-8", "surrogateescape")
        # The peak is that of the process. It says something about this input only if it has grown.
        if _peak() > peak and (taken := _peak() - before) > ALLOWANCE + BYTES_PER_BYTE * len(data):
            raise MemoryError(f"reading {len(data)} bytes took {taken} bytes of memory")

    return run


def _fork_readers(name: str, folder: Path) -> None:
    """Let forks of one process read HDF5 files, which takes a tenth of the time of starting a process for each."""
    if name not in ("state", "checkpoint", "hamlib", "measurements"):
        return
    import altered_files

    altered_files.SECONDS = 1  # of processor time, so that files that never end leave time for others
    altered_files.hdf5._run = altered_files.Readers(folder)  # type: ignore[assignment]


def _warm(name: str, run: Callable[[bytes], None], make: Callable[[Path], object], folder: Path) -> None:
    """Import everything that reading needs, so that the first input is not blamed for it."""
    from onehop import BadInput

    for data in make(folder):  # type: ignore[attr-defined]
        try:
            run(data)
        except (BadInput, MemoryError):
            continue


def main() -> None:
    """Run the target that the command line names."""
    name, *arguments = sys.argv[1:]
    folder = Path(tempfile.mkdtemp(prefix="onehop-fuzz-"))
    try:
        if arguments[:1] == ["--replay"]:
            from targets import TARGETS

            files = [Path(file).resolve() for file in arguments[1:]]  # targets may change the current folder
            run = limited(TARGETS[name].read, folder)
            _warm(name, run, TARGETS[name].samples, folder)
            for file in files:
                run(file.read_bytes())
            return
        import atheris

        with atheris.instrument_imports(include=["onehop"]):
            from targets import TARGETS

            target = TARGETS[name]
            run = limited(target.read, folder)
            _fork_readers(name, folder)
            _warm(name, run, target.samples, folder)
        atheris.Setup([sys.argv[0], *arguments], run)
        atheris.Fuzz()
    finally:
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
