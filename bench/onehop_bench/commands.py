"""The commands of `onehop bench`, whose modules are imported only when they run or show their help."""

from __future__ import annotations

from onehop.cli.commands import Command

_ABOUT = {
    "messages": {
        "pingpong": "Send one message back and forth between two ranks; times are half a round trip.",
        "channel": "Send several messages at once in each direction between two ranks.",
        "poisson": "Run one iteration of the Poisson solver. Its computation alone is beside it.",
        "ring": "Send 64 bytes from every rank to the next one, also with more ranks than cores.",
        "codec": "Encode and decode on one core. A copy of the same numbers is beside it.",
    },
    "halo": {"halo": "Exchange the ghost layers of an array, including packing and unpacking."},
    "allreduce": {"allreduce": "Sum float32 arrays over all ranks, with the columns of nccl-tests."},
    "collective": {
        "collectives": "Reduce-scatter, all-gather, broadcast and all-to-all of float32, beside MPI and gloo."
    },
    "permutation": {"permutation": "Exchange up to three qubits of the rank number with local qubits."},
    "qspi": {"qspi": "Measure ping-pong and a 5-D halo exchange through the drop-in interface qspi."},
    "ddp": {"ddp": "Train GPT-like models with torch's DistributedDataParallel, with onehop and with gloo."},
    "overlap": {"overlap": "Start asynchronous all-reduces of torch and compute until they are done."},
    "circuits": {"circuits": "Run circuits on one rank with all its cores, and on reference simulators."},
    "gradients": {
        "gradients": "Differentiate 10 StronglyEntanglingLayers by all their angles, beside other simulators.",
        "bindings": "Run an ansatz with many values of its parameters, beside other simulators.",
    },
    "readout": {"readout": "Sample a state and evaluate Pauli strings in it, beside other simulators."},
    "scaling": {"scaling": "Run phase estimation and Ising models on 1, 2, 4 ... ranks."},
    "hopping": {
        "dslash": "Apply the HISQ hopping term to the sites of one parity.",
        "wilson": "Apply the Wilson hopping term to the sites of one parity.",
    },
    "solver": {"solver": "Solve with the HISQ operator in half, single and double precision."},
    "links": {
        "su3": "Multiply 3x3 matrices by vectors and matrices.",
        "smearing": "Compute the fat and long links of staggered quarks.",
    },
    "measurements": {
        "measurements": "Fix the gauge, smear, flow, and measure loops, hadrons and eigenvectors."
    },
    "papers_command": {
        "papers": "Compare figures of papers with those that onehop simulate predicts for the same schedules."
    },
    "predict": {"predict": "Compare measured times with those that onehop simulate predicts."},
    "figures": {
        "all": "Run every benchmark of `make bench` and write its result as JSON.",
        "figures": "Draw the figures of the documentation from the results of `make bench`.",
    },
}
COMMANDS = {
    name: Command(f"onehop_bench.{module}:bench_{name}", summary)
    for module, commands in _ABOUT.items()
    for name, summary in commands.items()
}
