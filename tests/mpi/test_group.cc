// Groups made from MPI: the choice of the library, the bootstrap, splitting.
#include <gtest/gtest.h>
#include <algorithm>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <variant>

#include "onehop/error.h"
#include "src/mpi/api.h"
#include "src/mpi/mpi.h"
#include "src/mpi/mpi_bootstrap.h"
#include "tests/mpi/world.h"

namespace onehop {
namespace {

using testing::message;
using testing::world;

TEST(MpiLibrary, IsTheOneThatBelongsToTheLauncher) {
  const detail::MpiLibraryInfo info = detail::mpi_library_info();
  const bool open_mpi = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
  const bool standard = std::getenv("ONEHOP_MPI") != nullptr;
  EXPECT_EQ(info.abi, open_mpi   ? "Open MPI"
                      : standard ? "standard"
                                 : "MPICH")
      << info.path << " (" << info.version << ")";
  EXPECT_TRUE(detail::mpi_is_running());
}

TEST(MpiWorld, HasTheRanksThatTheLauncherSaid) {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  const char* size = std::getenv("OMPI_COMM_WORLD_SIZE");
  if (rank == nullptr) rank = std::getenv("PMI_RANK");
  if (size == nullptr) size = std::getenv("PMI_SIZE");
  ASSERT_TRUE(rank != nullptr && size != nullptr);
  EXPECT_EQ(world().rank(), std::atoi(rank));
  EXPECT_EQ(world().size(), std::atoi(size));
  EXPECT_EQ(world().origin(), "mpi");
}

TEST(MpiBootstrap, GathersDifferentLengths) {
  for (const std::int64_t unit : {0L, 1L, 1000L, 1000000L}) {
    const Gathered all = world().allgather(message(world().rank(), 0, world().rank() * unit));
    ASSERT_EQ(all.size(), static_cast<std::size_t>(world().size()));
    for (std::size_t r = 0; r < all.size(); ++r) {
      EXPECT_TRUE(std::ranges::equal(all[r], message(static_cast<int>(r), 0, static_cast<std::int64_t>(r) * unit)))
          << "from rank " << r;
    }
  }
}

// Contributions longer than one MPI call can count are sent in portions, which are short here.
TEST(MpiBootstrap, GathersInPortions) {
  std::visit(
      []<class Abi>(const detail::MpiApi<Abi>* api) {
        for (const std::int64_t portion : {1, 64, 1000}) {
          detail::MpiBootstrap<Abi> bootstrap(*api, api->duplicate(api->handles.comm_world), portion);
          const auto length = [](int rank) { return std::int64_t{700} * ((rank + 1) % 3) + rank; };
          const Gathered all = bootstrap.allgather(message(bootstrap.rank(), 0, length(bootstrap.rank())));
          for (int r = 0; r < bootstrap.size(); ++r) {
            EXPECT_TRUE(std::ranges::equal(all[static_cast<std::size_t>(r)], message(r, 0, length(r))))
                << "portions of " << portion;
          }
        }
      },
      detail::running_mpi());
}

TEST(MpiBootstrap, RunsOutOfTime) {
  // A separate group, because a rank cannot use a group any more after an interrupted step.
  const Group group = world().split(0, world().rank());
  if (group.rank() == 0) {
    group.set_timeout(0.2);
    EXPECT_THROW(group.barrier(), Timeout);
    EXPECT_THROW(group.barrier(), Error);
    world().barrier();
  } else {
    // The others enter only after rank 0 has timed out. It took part, so their barrier ends.
    world().barrier();
    group.barrier();
  }
  world().barrier();
}

TEST(MpiGroup, Splits) {
  const int rank = world().rank(), size = world().size();
  const Group part = world().split(rank % 2, -rank);
  ASSERT_TRUE(part.valid());
  EXPECT_EQ(part.size(), (size + 1 - rank % 2) / 2);
  // The highest old rank comes first.
  const Gathered olds = part.allgather(std::as_bytes(std::span<const int, 1>(&rank, 1)));
  int last = size;
  for (const auto& bytes : olds) {
    int old = 0;
    std::memcpy(&old, bytes.data(), sizeof old);
    EXPECT_EQ(old % 2, rank % 2);
    EXPECT_LT(old, last);
    last = old;
  }
}

TEST(MpiGroup, LeavesOutRanksWithoutColor) {
  const Group part = world().split(world().rank() == 0 ? -1 : 0, 0);
  EXPECT_EQ(part.valid(), world().rank() != 0);
  if (part.valid()) {
    EXPECT_EQ(part.size(), world().size() - 1);
    part.barrier();
  }
}

TEST(MpiGroup, IsMadeFromACommunicator) {
  std::visit(
      []<class Abi>(const detail::MpiApi<Abi>* api) {
        const typename Abi::Comm comm = api->handles.comm_world;
        const Group group = Group::from_mpi(static_cast<const void*>(&comm));
        EXPECT_EQ(group.rank(), world().rank());
        EXPECT_EQ(group.size(), world().size());
        group.barrier();
      },
      detail::running_mpi());
  EXPECT_THROW(static_cast<void>(Group::from_mpi(nullptr)), BadInput);
}

TEST(MpiGroup, IsNotMadeFromAHandleThatIsNoCommunicator) {
  std::visit(
      []<class Abi>(const detail::MpiApi<Abi>* api) {
        auto freed = api->duplicate(api->handles.comm_world);
        const auto copy = freed;
        api->free_quietly(freed);
        for (const auto& comm : {api->handles.comm_null, copy}) {
          try {
            static_cast<void>(Group::from_mpi(static_cast<const void*>(&comm)));
            ADD_FAILURE() << "a group was made";
          } catch (const BadInput& error) {
            EXPECT_NE(std::string(error.what()).find("expected a communicator"), std::string::npos) << error.what();
          }
        }
      },
      detail::running_mpi());
  world().barrier();
}

// Many groups one after the other: communicators are freed.
TEST(MpiGroup, CanBeMadeAgainAndAgain) {
  if (world().size() > 2)
    GTEST_SKIP() << "takes minutes where more ranks than cores wait for each other without giving way";
  // More than a library has; on a busy machine, as many as time permits, which rank 0 decides.
  constexpr int rounds = 300, splits = 10;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(15);
  for (int i = 0; i < rounds; ++i) {
    const auto made = detail::mpi_world();
    for (int k = 0; k < splits; ++k) static_cast<void>(made.bootstrap->split({}));
    const auto late = static_cast<std::byte>(std::chrono::steady_clock::now() > end);
    if (made.bootstrap->allgather({&late, 1}).front().front() != std::byte{0}) break;
  }
}

TEST(MpiError, IsAnExceptionInMpisOwnWords) {
  std::visit(
      []<class Abi>(const detail::MpiApi<Abi>* api) {
        auto comm = api->duplicate(api->handles.comm_world);
        auto request = api->handles.request_null;
        try {
          api->call("MPI_Isend", api->isend, static_cast<const void*>(nullptr), 0, api->handles.byte, 1 << 20, 0, comm,
                    &request);
          ADD_FAILURE() << "a message to a rank that does not exist was accepted";
        } catch (const Error& error) {
          EXPECT_NE(std::string(error.what()).find("MPI_Isend failed: "), std::string::npos) << error.what();
          EXPECT_NE(std::string(error.what()).find("rank"), std::string::npos) << error.what();
        }
        api->free_quietly(comm);
      },
      detail::running_mpi());
}

}  // namespace
}  // namespace onehop
