// Collectives on 1 to 8 ranks, compared with results that are computed here one element at a time.
#include "onehop/collectives/collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "collectives/exchange.h"
#include "onehop/count.h"
#include "onehop/tuning.h"
#include "tests/support/ranks.h"
#include "tests/support/reductions.h"

namespace onehop::collectives {
namespace {

using onehop::testing::on_ranks;
using onehop::testing::on_threads;
using namespace testing;  // NOLINT

TEST(Collectives, AllReduceOfEveryTypeAndOperation) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    on_threads(ranks, [&](const Group& group) {
      const Collectives collectives(group, {.slots = 2, .slot_bytes = 4096});
      for (const ElementType type : types) {
        for (const ReduceOp op : ops) {
          if (!makes_sense(type, op)) continue;
          const std::int64_t elements = 3000 + ranks;
          const auto sources = random_sources(type, elements, ranks, 1);
          const Bytes wanted = expected(type, op, sources);
          for (const auto algorithm : {ReduceAlgorithm::one_shot, ReduceAlgorithm::two_shot}) {
            Bytes result(wanted.size());
            collectives.allreduce({elements, type, op, Codec::raw, algorithm}).run(of_rank(sources, group), result);
            ASSERT_EQ(result, wanted) << to_string(type) << " " << to_string(op) << " " << to_string(algorithm);
          }
        }
      }
    });
  }
}

// Lengths around all thresholds, odd addresses, all chunk sizes, in place and not: always the same bits.
TEST(Collectives, AllReduceOfEveryLengthAndCut) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    on_threads(ranks, [&](const Group& group) {
      const Collectives collectives(group, {.slots = 3, .slot_bytes = 2048});
      for (const std::int64_t elements : {0, 1, 2, 9, 10, 11, 63, 64, 65, 127, 128, 129, 500, 512, 1024, 5000}) {
        const auto sources = random_sources(ElementType::float32, elements, ranks, 2);
        const Bytes wanted = expected(ElementType::float32, ReduceOp::sum, sources);
        for (const auto algorithm : {ReduceAlgorithm::one_shot, ReduceAlgorithm::two_shot}) {
          for (const std::int64_t chunk : {std::int64_t{256}, std::int64_t{1024}, std::int64_t{0}}) {
            Collective operation =
                collectives.allreduce({elements, ElementType::float32, ReduceOp::sum, Codec::raw, algorithm, chunk});
            const Bytes& source = of_rank(sources, group);
            Bytes moved(wanted.size() + 3);
            std::copy(source.begin(), source.end(), moved.begin() + 3);
            const std::span<std::byte> odd(moved.data() + 3, wanted.size());
            Bytes result(wanted.size());
            operation.run(odd, result);
            ASSERT_EQ(result, wanted) << elements << " elements on " << ranks << ", chunks of " << chunk;
            operation.run(odd, odd);
            ASSERT_TRUE(std::equal(odd.begin(), odd.end(), wanted.begin())) << elements << " in place on " << ranks;
          }
        }
      }
    });
  }
}

TEST(Collectives, SeveralArraysAreOne) {
  for (const int ranks : {1, 2, 3}) {
    on_threads(ranks, [&](const Group& group) {
      const Collectives collectives(group, {.slots = 2, .slot_bytes = 1024});
      const std::vector<std::vector<std::int64_t>> lists = {{3, 4}, {100, 0, 1, 700, 33}, {1}, {0, 0}, {600, 600}};
      for (const auto& lengths : lists) {
        std::int64_t elements = 0;
        for (const std::int64_t length : lengths) elements += length;
        const auto sources = random_sources(ElementType::float64, elements, ranks, 3);
        const Bytes wanted = expected(ElementType::float64, ReduceOp::max, sources);
        for (const auto algorithm : {ReduceAlgorithm::one_shot, ReduceAlgorithm::two_shot}) {
          std::vector<Bytes> mine;
          std::vector<Bytes> results;
          std::vector<Part> parts;
          std::ptrdiff_t begin = 0;
          for (const std::int64_t length : lengths) {
            const auto first = of_rank(sources, group).begin() + begin;
            mine.emplace_back(first, first + length * 8);
            results.emplace_back(static_cast<std::size_t>(length) * 8);
            begin += length * 8;
          }
          for (std::size_t i = 0; i < lengths.size(); ++i)
            parts.push_back({mine[i].data(), results[i].data(), lengths[i]});
          Collective operation =
              collectives.allreduce({elements, ElementType::float64, ReduceOp::max, Codec::raw, algorithm});
          for (int run = 0; run < 3; ++run) {
            operation.start(parts);
            operation.finish();
          }
          Bytes found;
          for (const Bytes& result : results) found.insert(found.end(), result.begin(), result.end());
          ASSERT_EQ(found, wanted);
        }
      }
    });
  }
}

TEST(Collectives, ScatterGatherBroadcastAllToAllAndBarrier) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    on_threads(ranks, [&](const Group& group) {
      const Collectives collectives(group, {.slots = 2, .slot_bytes = 1024});
      const auto rank = static_cast<std::size_t>(group.rank());
      for (const std::int64_t elements : {0, 1, 64, 1000}) {
        const auto block = static_cast<std::size_t>(elements) * 4;
        const auto begin = static_cast<std::ptrdiff_t>(rank * block);
        const auto end = begin + static_cast<std::ptrdiff_t>(block);
        // Reduce-scatter, also into this rank's block of the source.
        const auto sources = random_sources(ElementType::int32, elements * ranks, ranks, 4);
        const Bytes all = expected(ElementType::int32, ReduceOp::sum, sources);
        const Bytes wanted(all.begin() + begin, all.begin() + end);
        Collective scatter = collectives.reduce_scatter({elements, ElementType::int32, ReduceOp::sum});
        Bytes result(block);
        scatter.run(sources[rank], result);
        ASSERT_EQ(result, wanted);
        Bytes whole = sources[rank];
        const std::span<std::byte> own(whole.data() + begin, block);
        scatter.run(whole, own);
        ASSERT_EQ(Bytes(own.begin(), own.end()), wanted);
        // All-gather of the results.
        Bytes gathered(all.size());
        Collective gather = collectives.allgather(elements * 4);
        gather.run(wanted, gathered);
        ASSERT_EQ(gathered, all);
        gather.run(own, whole);
        ASSERT_EQ(whole, all);
        for (const int root : {0, ranks - 1}) {
          Bytes data = sources[rank];
          collectives.broadcast(static_cast<std::int64_t>(data.size()), root).run(data, data);
          ASSERT_EQ(data, sources[static_cast<std::size_t>(root)]);
        }
        // Rank a sends (a + 2 b + 1) * elements bytes, each with the value a * 16 + b, to rank b.
        std::vector<std::int64_t> to;
        std::vector<std::int64_t> from;
        Bytes out;
        Bytes in;
        for (int other = 0; other < ranks; ++other) {
          to.push_back((group.rank() + 2 * other + 1) * elements);
          from.push_back((other + 2 * group.rank() + 1) * elements);
          out.insert(out.end(), static_cast<std::size_t>(to.back()), std::byte(group.rank() * 16 + other));
          in.insert(in.end(), static_cast<std::size_t>(from.back()), std::byte(other * 16 + group.rank()));
        }
        Bytes found(in.size());
        collectives.all_to_all(to, from).run(out, found);
        ASSERT_EQ(found, in);
        collectives.barrier();
      }
    });
  }
}

// Often enough that every kind of stores is tried, after 4 operations and after 16 more.
TEST(Collectives, ResultsStayRightWhileStoresAreTried) {
  for (const int ranks : {2, 3}) {
    on_threads(ranks, [&](const Group& group) {
      const Collectives collectives(group);
      constexpr std::int64_t block = 8192;
      const auto n = static_cast<std::size_t>(ranks);
      const std::vector<std::int64_t> each(n, block);
      const std::int64_t numbers = block / 4;
      Collective gather = collectives.allgather(each);
      Collective exchange = collectives.all_to_all(each, each);
      Collective scatter = collectives.reduce_scatter({.elements = numbers});
      for (int run = 0; run < 40; ++run) {
        const auto value = [run](int from, int to) { return static_cast<float>(100 * run + 10 * from + to); };
        std::vector<float> source;
        for (int to = 0; to < ranks; ++to) source.insert(source.end(), numbers, value(group.rank(), to));
        std::vector<float> result(source.size());
        std::vector<float> gathered;
        std::vector<float> exchanged;
        float sum = 0;
        for (int from = 0; from < ranks; ++from) {
          gathered.insert(gathered.end(), numbers, value(from, 0));
          exchanged.insert(exchanged.end(), numbers, value(from, group.rank()));
          sum += value(from, group.rank());
        }
        const std::span<const float> whole(source);
        gather.run(std::as_bytes(whole.first(numbers)), std::as_writable_bytes(std::span(result)));
        ASSERT_EQ(result, gathered) << "run " << run;
        exchange.run(std::as_bytes(whole), std::as_writable_bytes(std::span(result)));
        ASSERT_EQ(result, exchanged) << "run " << run;
        std::vector<float> part(static_cast<std::size_t>(numbers));
        scatter.run(std::as_bytes(whole), std::as_writable_bytes(std::span(part)));
        ASSERT_EQ(part, std::vector<float>(part.size(), sum)) << "run " << run;
      }
    });
  }
}

TEST(Collectives, BlocksOfDifferentLengths) {
  on_threads(3, [](const Group& group) {
    const Collectives collectives(group);
    const std::vector<std::int64_t> lengths = {5, 0, 70000};
    Bytes result(70005);
    const Bytes mine(static_cast<std::size_t>(lengths[static_cast<std::size_t>(group.rank())]),
                     std::byte(group.rank() + 1));
    collectives.allgather(lengths).run(mine, result);
    Bytes wanted(5, std::byte{1});
    wanted.resize(70005, std::byte{3});
    ASSERT_EQ(result, wanted);
  });
}

// Many operations of different shapes in sequence, on processes: slots are reused in every order, ranks run ahead.
TEST(Collectives, ManyInARowOnProcesses) {
  for (const int ranks : {2, 3, 4}) {
    on_ranks(ranks, [&](const Group& group) {
      const Collectives collectives(group, {.slots = 2, .slot_bytes = 8192});
      std::mt19937 random(9);
      for (int run = 0; run < 300; ++run) {
        const std::int64_t elements =
            run % 3 == 0 ? static_cast<std::int64_t>(random() % 11) : static_cast<std::int64_t>(random() % 20000);
        const auto algorithm = random() % 2 == 0 ? ReduceAlgorithm::one_shot : ReduceAlgorithm::two_shot;
        std::vector<std::int64_t> values(static_cast<std::size_t>(elements));
        for (std::size_t i = 0; i < values.size(); ++i) {
          values[i] = static_cast<std::int64_t>(i) * (group.rank() + 1) + run;
        }
        const auto bytes = std::as_writable_bytes(std::span(values));
        collectives.allreduce({elements, ElementType::int64, ReduceOp::sum, Codec::raw, algorithm}).run(bytes, bytes);
        for (std::size_t i = 0; i < values.size(); ++i) {
          ASSERT_EQ(values[i], static_cast<std::int64_t>(i) * (ranks * (ranks + 1) / 2) + run * ranks);
        }
      }
    });
  }
}

// Whatever kind of stores the tuning names, others are tried from 4 KiB to each rank on, and the results are the same.
TEST(Collectives, OtherStoresAreTriedWithEveryTuning) {
  const Tuning before = tuning();
  for (const StoreKind usual : {StoreKind::plain, StoreKind::prefetch, StoreKind::nontemporal}) {
    Tuning changed = before;
    changed.rules = {{1 << 20, 4096, usual}};
    set_tuning(changed);
    on_threads(2, [&](const Group& group) {
      const auto exchange = std::make_shared<detail::Exchange>(group, CollectivesOptions{});
      detail::Operation operation;
      operation.header.kind = detail::Header::Kind::allgather;
      operation.stores = usual;
      EXPECT_EQ(exchange->choice_for(operation, 4095), -1);
      const int choice = exchange->choice_for(operation, 4096);
      ASSERT_EQ(choice, 0);
      detail::StoreChoice& made = exchange->choices.front();
      EXPECT_EQ(made.now, usual == StoreKind::nontemporal ? StoreKind::plain : usual);
      bool tried = false;
      for (int i = 0; i < 8; ++i) tried = tried || made.decision.next() != made.now;
      EXPECT_TRUE(tried);
      const Collectives collectives(group);
      std::vector<float> numbers(2048);
      Collective sum = collectives.allreduce({.elements = 2048});
      for (int run = 1; run <= 40; ++run) {
        std::fill(numbers.begin(), numbers.end(), static_cast<float>(run));
        sum.run(std::as_bytes(std::span(numbers)), std::as_writable_bytes(std::span(numbers)));
        ASSERT_EQ(numbers, std::vector<float>(numbers.size(), static_cast<float>(2 * run)));
      }
    });
  }
  set_tuning(before);
}

// Ranks that share what they send to all others: any order of roots and lengths, with slots of the ranks' own number,
// so that chunks of the areas and messages of the paths are out of step.
TEST(Collectives, SharedChunksOfRanksWithDifferentSlots) {
  for (const int ranks : {3, 4}) {
    on_ranks(ranks, [&](const Group& group) {
      const Collectives collectives(group, {.slots = 2 + group.rank(), .slot_bytes = 4096});
      std::mt19937 random(4);
      for (int run = 0; run < 300; ++run) {
        const int root = static_cast<int>(random() % static_cast<unsigned>(ranks));
        const auto bytes = static_cast<std::size_t>(random() % 40000);
        Bytes array(bytes, std::byte(group.rank() == root ? run : 255));
        collectives.broadcast(static_cast<std::int64_t>(bytes), root).run(array, array);
        ASSERT_EQ(array, Bytes(bytes, std::byte(run))) << run;
        const auto block = static_cast<std::int64_t>(random() % 20000);
        const std::vector<std::int64_t> each(static_cast<std::size_t>(ranks), block);
        const Bytes mine(static_cast<std::size_t>(block), std::byte(group.rank() + run));
        Bytes all(static_cast<std::size_t>(block * ranks));
        Bytes wanted;
        for (int r = 0; r < ranks; ++r) wanted.insert(wanted.end(), mine.size(), std::byte(r + run));
        collectives.allgather(block).run(mine, all);
        ASSERT_EQ(all, wanted) << run;
        if (run % 3 == 0) collectives.all_to_all(each, each).run(Bytes(all.size()), all);  // uses the slots themselves
      }
    });
  }
}

TEST(Collectives, MovesWhatTheScheduleCounts) {
  on_threads(3, [](const Group& group) {
    for (const auto algorithm : {ReduceAlgorithm::one_shot, ReduceAlgorithm::two_shot}) {
      const Collectives collectives(group);
      for (const std::int64_t elements : {5, 1000, 30000}) {
        const Count counted = count(allreduce({3, elements, ElementType::float32, Combine::add, algorithm}));
        const CollectivesCounters before = collectives.counters();
        Bytes array(static_cast<std::size_t>(elements) * 4);
        collectives.allreduce({elements, ElementType::float32, ReduceOp::sum, Codec::raw, algorithm}).run(array, array);
        const RankCount& mine = counted.ranks[static_cast<std::size_t>(group.rank())];
        EXPECT_EQ(collectives.counters().bytes_sent - before.bytes_sent, mine.bytes_sent);
        EXPECT_EQ(collectives.counters().bytes_received - before.bytes_received, mine.bytes_received);
      }
    }
  });
}

// Results larger than any cache are stored non-temporally, also with odd addresses and lists of arrays.
TEST(Collectives, LongResultsAreStreamed) {
  on_threads(3, [](const Group& group) {
    const Collectives collectives(group);
    constexpr std::int64_t elements = (1 << 20) + 77;
    for (const auto algorithm : {ReduceAlgorithm::one_shot, ReduceAlgorithm::two_shot}) {
      Collective operation =
          collectives.allreduce({elements, ElementType::int32, ReduceOp::sum, Codec::raw, algorithm});
      Bytes memory(static_cast<std::size_t>(elements) * 4 + 4);
      const auto fill = [&](std::byte* array) {
        for (std::int64_t i = 0; i < elements; ++i)
          put(array + i * 4, static_cast<std::int32_t>(i * (group.rank() + 1)));
      };
      const auto check = [&](const std::byte* array) {
        for (std::int64_t i = 0; i < elements; ++i) ASSERT_EQ(get<std::int32_t>(array + i * 4), i * 6) << i;
      };
      const std::span<std::byte> odd(memory.data() + 3, static_cast<std::size_t>(elements) * 4);
      fill(odd.data());
      operation.run(odd, odd);
      check(odd.data());
      fill(odd.data());
      std::byte* const middle = odd.data() + 500001 * 4;
      const Part parts[] = {{odd.data(), odd.data(), 500001}, {middle, middle, elements - 500001}};
      operation.start(parts);
      operation.finish();
      check(odd.data());
    }
  });
}

}  // namespace
}  // namespace onehop::collectives
