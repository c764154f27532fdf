// Group::world: finds out which launcher started this program, and connects its ranks.
#include <stdlib.h>
#include <unistd.h>

#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/env.h"
#include "src/base/text.h"
#include "src/group/control_memory.h"
#include "src/group/group_state.h"
#include "src/group/leaving.h"
#include "src/group/rendezvous.h"
#include "src/mpi/mpi.h"
#include "src/pmix/pmix.h"

namespace onehop {
namespace {

// A process with only some of the launcher's variables must not continue as a run of a single rank.
void check_variables_of_launcher() {
  std::string given;
  std::string missing;
  for (const char* name : {"ONEHOP_RANK", "ONEHOP_RANKS", "ONEHOP_CONTROL"}) {
    std::string& names = env::text(name) ? given : missing;
    names += (names.empty() ? "" : " and ") + std::string(name);
  }
  if (given.empty() || missing.empty()) return;
  throw BadInput("expected " + missing + " in the environment beside " + given +
                 ", as `onehop launch` sets them: unset " + given + ", or start the program with `onehop launch`");
}

Group from_launcher(const std::string& control) {
  const auto rank = env::rank_number("ONEHOP_RANK");
  const auto ranks = env::rank_number("ONEHOP_RANKS");
  const int launcher = static_cast<int>(env::number("ONEHOP_LAUNCHER_PID").value_or(0));
  if (const auto space = env::number("ONEHOP_LAUNCHER_SPACE")) {
    detail::check_space(*rank, launcher, static_cast<std::uint64_t>(*space));
  }
  return Group(
      detail::make_group(*rank, *ranks, "launcher", detail::join_control_memory(control, *rank, *ranks, launcher)));
}

// The facts about this process that a foreign launcher passes in environment variables.
struct LaunchInfo {
  std::string launcher;
  std::optional<int> rank;  // MPI may know it even if the environment does not
  int ranks = 1;
  bool all_here = false;  // all ranks are on this machine
  std::string key;        // known only to the ranks of this launch

  // "mpiexec (MPICH) started this program as rank 1 of 4"
  [[nodiscard]] std::string text() const {
    return launcher + " started this program as " + (rank ? "rank " + std::to_string(*rank) : "one rank") + " of " +
           std::to_string(ranks);
  }
};

std::optional<LaunchInfo> info_of_mpi_launcher() {
  struct Names {
    const char* launcher;
    const char* rank;
    const char* ranks;
    const char* local_ranks;
    const char* key;
  };
  static constexpr Names all[] = {
      {"mpiexec (Open MPI)", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
       "PMIX_NAMESPACE"},
      {"mpiexec (MPICH)", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "PMI_FD"},
      {"mpirun_rsh (MVAPICH)", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE", "MPIRUN_ID"},
      {"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_TASKS_PER_NODE", "SLURM_STEP_ID"},
  };
  for (const Names& names : all) {
    // A batch script under Slurm has SLURM_NTASKS, but only a step that srun started has a step.
    if (std::string(names.launcher) == "srun" && !env::text("SLURM_STEP_ID")) continue;
    const auto rank = env::rank_number(names.rank);
    const auto ranks = env::rank_number(names.ranks);
    // A rank of several whose number is missing must not continue as a run of a single rank.
    if (!ranks || (!rank && *ranks == 1)) continue;
    LaunchInfo launch{names.launcher, rank, *ranks, false,
                      env::text("SLURM_JOB_ID").value_or("") + "." + env::text(names.key).value_or("")};
    launch.all_here = env::text(names.local_ranks) == std::to_string(*ranks);
    return launch;
  }
  return std::nullopt;
}

std::optional<LaunchInfo> info_of_torchrun() {
  const auto rank = env::rank_number("RANK");
  const auto ranks = env::rank_number("WORLD_SIZE");
  const auto local_ranks = env::rank_number("LOCAL_WORLD_SIZE");
  const auto address = env::text("MASTER_ADDR");
  const auto port = env::text("MASTER_PORT");
  if (!rank || !ranks || !address || !port) return std::nullopt;
  return LaunchInfo{"torchrun", rank, *ranks, local_ranks && *local_ranks == *ranks,
                    *address + ":" + *port + "." + env::text("TORCHELASTIC_RUN_ID").value_or("") + "." +
                        env::text("TORCHELASTIC_RESTART_COUNT").value_or("")};
}

// `onehop launch` takes torchrun's mark off its ranks, so a process with both has a torchrun between it and the launch.
void refuse_torchrun_inside() {
  const auto torchrun = info_of_torchrun();
  if (!torchrun || torchrun->ranks == 1 || !env::text("TORCHELASTIC_RUN_ID")) return;
  throw Error(torchrun->text() + ", but inside `onehop launch` (process " +
              env::text("ONEHOP_LAUNCHER_PID").value_or("unknown") + ", rank " + env::text("ONEHOP_RANK").value_or("") +
              " of " + env::text("ONEHOP_RANKS").value_or("") +
              "), whose ranks the workers of torchrun are not: start the program with one of the two launchers");
}

Group join_mpi(detail::MpiRanks made) {
  return Group(detail::make_group(made.rank, made.size, "mpi", std::move(made.bootstrap)));
}

Group join_pmix() {
  detail::PmixRanks made = detail::pmix_world();
  return Group(detail::make_group(made.rank, made.size, "pmix", std::move(made.bootstrap)));
}

Group from_mpi_launcher(const LaunchInfo& launch) {
  const std::string start_with_pmix = launch.launcher == "srun" ? "start it with `srun --mpi=pmix`, " : "";
  const detail::MpiLibraryInfo library = detail::mpi_library_info();
  if (!library.path.empty()) {
    detail::MpiRanks world = detail::mpi_world();
    if (world.size == launch.ranks) return join_mpi(std::move(world));
    throw Error(launch.text() + ", but the MPI library " + library.path + " sees " + base::counted(world.size, "rank") +
                ": library and launcher do not belong together; " + start_with_pmix +
                "use that library's own mpiexec, or set ONEHOP_MPI to the libmpi of this launcher");
  }
  if (detail::is_pmix_offered()) return join_pmix();
  if (launch.all_here && launch.rank && launch.launcher == "srun") {
    return Group(
        detail::make_group(*launch.rank, launch.ranks, "srun", detail::meet(launch.key, *launch.rank, launch.ranks)));
  }
  throw Error(launch.text() + ", but no MPI library was found, so this rank is alone; " + start_with_pmix +
              "set ONEHOP_MPI to the path of its libmpi, or use `onehop launch -n " + std::to_string(launch.ranks) +
              "` on one machine (`onehop doctor` lists the places that were searched)");
}

}  // namespace

namespace {

Group make_world() {
  check_variables_of_launcher();
  if (const auto control = env::text("ONEHOP_CONTROL")) {
    refuse_torchrun_inside();
    return from_launcher(*control);
  }
  if (const auto launch = info_of_mpi_launcher()) return from_mpi_launcher(*launch);
  if (const auto launch = info_of_torchrun(); launch && launch->ranks > 1) {
    if (!launch->all_here) {
      throw Error("torchrun started " + base::counted(launch->ranks, "rank") +
                  " on several machines; make the group from torch's store (Group.from_store in Python), or use MPI");
    }
    return Group(detail::make_group(*launch->rank, launch->ranks, "torchrun",
                                    detail::meet(launch->key, *launch->rank, launch->ranks)));
  }
  // A program that initialised MPI itself, for example with mpi4py, under an unknown launcher.
  if (detail::mpi_is_running()) return join_mpi(detail::mpi_world());
  if (detail::is_pmix_offered()) return join_pmix();  // prterun, or another launcher that sets no variables of MPI
  return Group::alone();
}

// The world of this process, made once: joining a launch is collective and can be done only once.
struct World {
  std::mutex mutex;
  Group group;
  pid_t process = 0;              // the process that made `group`
  std::vector<Group> of_parents;  // kept, because a forked child must neither use nor close its parent's group
};

World& the_world() {
  static World* const world = new World;  // never destroyed: objects that are destroyed at exit may still use it
  return *world;
}

// A program that exits with status 0 closes its group. The peers of a program that fails see it as lost.
void leave_at_exit(int status, void* /*argument*/) {
  if (status == 0) Group::close_world();
}

}  // namespace

Group Group::world() {
  World& world = the_world();
  const std::lock_guard guard(world.mutex);
  if (world.group.valid() && world.process != getpid() && world.group.size() > 1) {
    world.group.state()->check_process();  // a launch has one rank of this number, and that is the parent
  }
  if (!world.group.valid() || world.process != getpid()) {
    Group made = make_world();
    if (world.group.valid()) world.of_parents.push_back(std::move(world.group));
    world.group = std::move(made);
    world.process = getpid();
    ::on_exit(&leave_at_exit, nullptr);
  }
  return world.group;
}

void Group::close_world() noexcept {
  World& world = the_world();
  Group last;  // destroyed after the lock is released
  const std::lock_guard guard(world.mutex);
  if (world.process == getpid()) std::swap(last, world.group);
}

void Group::process_is_ending() noexcept { detail::process_is_ending(); }

Group Group::from_mpi(const void* comm) { return join_mpi(detail::mpi_from_communicator(comm)); }

}  // namespace onehop
