"""Write what the pages of the Python and the C++ API include: a section for each module and each public header."""

from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
GENERATED = ROOT / "build" / "generated"

# The modules of each page in reference/python, below `onehop`.
MODULES = {
    "core": "group channel schedule patterns plan codec lossless collectives array_movement messages permutation "
    "poisson error device",
    "lattice": "lattice.geometry lattice.gauge lattice.hmc lattice.smearing lattice.flow lattice.staggered "
    "lattice.wilson lattice.operators lattice.conventions lattice.mesons lattice.sources lattice.contractions "
    "lattice.statistics lattice.field lattice.files",
    "launch": "launch qiskit.backend qiskit.primitives qiskit.job",
    "machine": "machine machine.rails predict topology",
    "quantum": "quantum.circuit quantum.simulator quantum.circuit_plan quantum.parameters quantum.compiled "
    "quantum.gradients quantum.evolution quantum.state quantum.observables quantum.generators quantum.io.qasm "
    "quantum.io.from_qiskit quantum.io.hamlib quantum.noise.channel quantum.noise.model quantum.noise.noisy "
    "quantum.noise.density_matrix cirq pytket pennylane",
    "torch": "torch.process_group torch.gradients torch.compressed torch.sharded torch.lossless "
    "torch.monitored_barrier torch.store quickreduce",
}
# Modules of which a page shows another choice of names than those that they define.
OPTIONS = {
    "cirq": ":members: OnehopSimulator",
    "device": ":imported-members:",
    "lattice.operators": ":members: QuarkSolve",
    "machine": ":imported-members:",
    "machine.rails": ":exclude-members: RailAssignment",
    "pennylane": ":members: OnehopQubit",
    "predict": ":imported-members:",
    "pytket": ":members: OnehopBackend\n   :no-index:",
    "quantum.circuit": ":inherited-members: Circuit, object",
    "quantum.noise.density_matrix": ":inherited-members:",
    "quantum.noise.model": ":members: NoiseModel",
    "quantum.state": ":inherited-members:",
    "topology": ":imported-members:",
    "torch.monitored_barrier": ":members: monitored_barrier",
}

HEADERS = ROOT / "include" / "onehop"
# What a page shows of a header. Without it Breathe lists what the header includes, too.
SECTIONS = (
    "briefdescription detaileddescription innernamespace innerclass enum typedef func var user-defined "
    "public-type public-func public-static-func public-attrib public-static-attrib"
)


def section(name: str, directive: str, option: str) -> str:
    """Return a section with one directive of reStructuredText."""
    return f"## `{name}`\n\n```{{eval-rst}}\n.. {directive}\n   {option}\n```\n"


def write(folder: str, page: str, sections: list[str]) -> None:
    """Write the sections that a page of a folder in reference includes."""
    (GENERATED / folder).mkdir(parents=True, exist_ok=True)
    (GENERATED / folder / f"{page}.md").write_text("\n".join(sections))


def write_modules(_app: Any) -> None:
    """Write the sections of the Python modules."""
    for page, modules in MODULES.items():
        names = modules.split()
        write(
            "python",
            page,
            [section(f"onehop.{n}", f"automodule:: onehop.{n}", OPTIONS.get(n, ":members:")) for n in names],
        )


def write_headers(_app: Any) -> None:
    """Write the sections of the headers: those of the core, and those of each folder."""
    for page in (ROOT / "docs/reference/cpp").glob("*.md"):
        folder = HEADERS if page.stem == "core" else HEADERS / page.stem
        headers = sorted(folder.glob("*.h"))
        write(
            "cpp",
            page.stem,
            [
                section(
                    str(header.relative_to(HEADERS.parent)),
                    f"doxygenfile:: {header.name}",
                    f":sections: {SECTIONS}",
                )
                for header in headers
            ],
        )


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", write_modules)
    app.connect("builder-inited", write_headers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
