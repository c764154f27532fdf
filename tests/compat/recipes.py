#!/usr/bin/env python3
"""Run the commands of the pages of drop-in interfaces: `recipes.py PAGE FOLDER_OF_LIBRARIES`.

The programs for which the pages are written are not here. Small ones, with the same names and build files of the same
kind, take their places. Ends with 77 and the reason where something that a page needs is not installed.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

QMP = """
#include <qmp.h>
#include <stdio.h>
int main(int argc, char** argv) {
  QMP_thread_level_t level;
  QMP_init_msg_passing(&argc, &argv, QMP_THREAD_SINGLE, &level);
  char line[80] = "";
  const int nodes = QMP_get_number_of_nodes(), me = QMP_get_node_number();
  if (argc == 1) while (me == 0 && fgets(line, sizeof line, stdin) != NULL && line[0] != 'e');
  int sum = me;
  QMP_sum_int(&sum);
  if (sum == nodes * (nodes - 1) / 2 && (argc > 1 || me > 0 || line[0] == 'e')) {
    fprintf(stderr, "rank %d of %d is right\\n", me, nodes);
  }
  QMP_finalize_msg_passing();
}
"""

QSPI = """
#include <qspi.h>
#include <stdio.h>
#include <stdlib.h>
int main() {
  const int me = atoi(getenv("ONEHOP_RANK")), ranks = 4;
  int in = -1, out = me;
  qspi_msg_t msgs[2] = {qspi_create_msg(), qspi_create_msg()};
  qspi_init();
  qspi_set_recv((me + 1) % ranks, &in, sizeof in, msgs[0]);
  qspi_set_send((me + 3) % ranks, &out, sizeof out, msgs[1]);
  qspi_prepare(msgs, 2);
  for (int i = 0; i < 2; ++i) qspi_start(msgs[i]);
  for (int i = 0; i < 2; ++i) qspi_wait(msgs[i]);
  if (in == (me + 1) % ranks) fprintf(stderr, "rank %d of %d is right\\n", me, ranks);
  qspi_finalize();
}
"""

QWS = """
#include <mpi.h>
#include <stdio.h>
#include <rdma_comlib.h>
int main(int argc, char** argv) {
  int me, zero = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  const int peer = 1 - me;
  const size_t size = sizeof(int);
  rdma_comlib_data path;
  rdma_comlib_init();
  rdma_comlib_new(&path, &zero, &peer, &peer, &size);
  path.sbuff[0] = me;
  rdma_comlib_isendrecv(&path);
  rdma_comlib_irecv_check(&path);
  if (path.rbuff[0] == peer) fprintf(stderr, "rank %d of 2 is right\\n", me);
  rdma_comlib_delete(&path);
  rdma_comlib_finalize();
  MPI_Finalize();
}
"""

QUEST = """
#include "tests/compat/quest/stand_in.h"
#include <cstdio>
int main() {
  comm_init();
  qreal sum = comm_getRank();
  comm_reduceReal(&sum);
  const int ranks = comm_getNumNodes();
  if (sum == ranks * (ranks - 1) / 2) std::fprintf(stderr, "rank %d of %d is right\\n", comm_getRank(), ranks);
  comm_end();
}
"""

MILC_MAKEFILE = """
CC = mpicc
LD = ${CC}
OPT = -O3
ifeq ($(strip ${WANTQMP}),true)
  LIBQMP = -L${QMPPAR}/lib -lqmp
  INCQMP = -I${QMPPAR}/include
endif
su3_rhmd_hisq:
\t${CC} -c ${OPT} ${INCQMP} control.c
\t${LD} -o $@ ${LDFLAGS} control.o ${LIBQMP} -lm
"""

QWS_MAKEFILE = """
main: main.c
\tmpicc $(CFLAGS) -I$(ONEHOP_SOURCE)/compat main.c -o main $(SYSLIBS)
"""

QUEST_PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(QuEST LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
set(HEADERS "${CMAKE_CURRENT_BINARY_DIR}/headers")
include_directories("${HEADERS}" "$ENV{ONEHOP_SOURCE}")
foreach(header comm/comm_config comm/comm_indices comm/comm_routines core/errors gpu/gpu_config)
  file(WRITE "${HEADERS}/quest/src/${header}.hpp" "#include \\"tests/compat/quest/stand_in.h\\"\\n")
endforeach()
add_library(QuEST SHARED comm_config.cpp comm_routines.cpp "$ENV{ONEHOP_SOURCE}/tests/compat/quest/errors.cc")
add_executable(min_example min_example.cpp)
target_link_libraries(min_example PRIVATE QuEST)
"""

#: Of each page: its blocks of commands that are run, by the first words of each, with changes that make them short; the
#: folder, below that of all files, in which they are run; the files; and the number of ranks that must be right.
PAGES = {
    "compat_qmp": [
        ("gcc", {}, "examples", {"examples/QMP_qcd_test.c": QMP, "include/qmp.h": "compat/qmp.h"}, 4),
        (
            "export QMP",
            {},
            ".",
            {
                "Makefile": MILC_MAKEFILE,
                "ks_imp_rhmc/control.c": QMP,
                "ks_imp_rhmc/test/su3_rhmd_hisq.2.sample-in": "prompt 0\n",
            },
            2,
        ),
    ],
    "compat_qspi": [("gcc", {}, ".", {"program.c": QSPI}, 4)],
    "compat_rdma_comlib": [
        ("FLAGS=", {}, ".", {"main.c": QWS, "makefile": QWS_MAKEFILE}, 2),
    ],
    "compat_quest": [
        (
            "cmake",
            {},
            ".",
            {
                "QuEST/CMakeLists.txt": QUEST_PROJECT,
                "QuEST/comm_config.cpp": "#error replaced\n",
                "QuEST/comm_routines.cpp": "#error replaced\n",
                "QuEST/min_example.cpp": QUEST,
            },
            4,
        )
    ],
}


def block_of(page: str, first_words: str) -> str:
    """Return the block of commands of a page that begins with these words."""
    text = (ROOT / "docs/howto" / f"{page}.md").read_text()
    found = [block for block in re.findall(r"```sh\n(.*?)```", text, re.S) if block.startswith(first_words)]
    assert len(found) == 1, f"{page}: expected one block that begins with '{first_words}', found {len(found)}"
    return found[0]


def write(folder: Path, files: dict[str, str]) -> None:
    """Write files, or make links to those of the repository that have the given name."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if "\n" in content:
            (folder / name).write_text(content)
        else:
            (folder / name).symlink_to(ROOT / content)


def run(folder: Path, commands: str, ranks: int, environment: dict[str, str]) -> str | None:
    """Run commands; return what is wrong, or None."""
    done = subprocess.run(
        ["bash", "-euc", commands], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    right = sorted(re.findall(r"rank \d+ of \d+ is right", done.stderr))
    if done.returncode == 0 and right == [f"rank {rank} of {ranks} is right" for rank in range(ranks)]:
        return None
    return f"{commands}ended with {done.returncode}:\n{done.stdout}{done.stderr}"


def main(page: str, libraries: str) -> int:
    """Run the commands of a page and return an exit code."""
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(ROOT / ".venv/bin"), os.environ["PATH"]]),
        "ONEHOP": libraries,
        "ONEHOP_SOURCE": str(ROOT),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    for tool in ("onehop", "gcc", "make", "mpicc"):
        if shutil.which(tool, path=environment["PATH"]) is None:
            print(f"skipped: no {tool} found")
            return 77
    for first_words, changes, where, files, ranks in PAGES[page]:
        commands = block_of(page, first_words)
        for old, new in changes.items():
            assert old in commands, f"{page}: expected '{old}' in the commands"
            commands = commands.replace(old, new)
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), files)
            wrong = run(Path(folder) / where, commands, ranks, environment)
        if wrong is not None:
            print(wrong)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
