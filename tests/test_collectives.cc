// Collectives on 1 to 8 ranks against results that are calculated here, one element at a time.
#include "onehop/tensors/collectives.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "fold.h"
#include "onehop/count.h"
#include "onehop/error.h"
#include "onehop/half.h"
#include "support/ranks.h"

namespace onehop::tensors {
namespace {

using testing::fork_ranks;
using testing::on_ranks;
using testing::on_threads;
using Bytes = std::vector<std::byte>;

constexpr ElementType types[] = {ElementType::float64, ElementType::float32,  ElementType::float16,
                                 ElementType::int32,   ElementType::bfloat16, ElementType::int64};
constexpr ReduceOp ops[] = {ReduceOp::sum, ReduceOp::mean, ReduceOp::min, ReduceOp::max, ReduceOp::prod};

bool makes_sense(ElementType type, ReduceOp op) {
  return op != ReduceOp::mean || (type != ElementType::int32 && type != ElementType::int64);
}

template <class T>
T get(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Numbers of the calculation and back, for each type.
double widen(ElementType type, const std::byte* at) {
  switch (type) {
    case ElementType::float64:
      return get<double>(at);
    case ElementType::float32:
      return get<float>(at);
    case ElementType::float16:
      return to_float(get<Float16>(at));
    case ElementType::bfloat16:
      return to_float(get<BFloat16>(at));
    default:
      return 0;
  }
}

template <class T>
T combined(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::mean:
      return static_cast<T>(a + b);
    case ReduceOp::prod:
      return static_cast<T>(a * b);
    case ReduceOp::min:
      return b < a ? b : a;
    case ReduceOp::max:
      return a < b ? b : a;
  }
  return a;
}

template <class T>
void put(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

// One element, folded in the order of ranks, as docs/allreduce.md says.
void expected_element(ElementType type, ReduceOp op, const std::vector<Bytes>& sources, std::size_t at, std::byte* to) {
  const auto fold = [&](auto first, const auto& read) {
    auto value = first;
    for (std::size_t rank = 1; rank < sources.size(); ++rank) value = combined(op, value, read(&sources[rank][at]));
    if (op == ReduceOp::mean) value = value / static_cast<decltype(value)>(sources.size());
    return value;
  };
  const std::byte* first = &sources[0][at];
  const auto narrow = [&](const std::byte* from) { return static_cast<float>(widen(type, from)); };
  switch (type) {
    case ElementType::float64:
      return put(to, fold(get<double>(first), get<double>));
    case ElementType::float32:
      return put(to, fold(get<float>(first), get<float>));
    case ElementType::float16:
      return put(to, to_float16(fold(narrow(first), narrow)));
    case ElementType::bfloat16:
      return put(to, to_bfloat16(fold(narrow(first), narrow)));
    case ElementType::int32:
      if (op == ReduceOp::min || op == ReduceOp::max) return put(to, fold(get<std::int32_t>(first), get<std::int32_t>));
      return put(to, fold(get<std::uint32_t>(first), get<std::uint32_t>));
    case ElementType::int64:
      if (op == ReduceOp::min || op == ReduceOp::max) return put(to, fold(get<std::int64_t>(first), get<std::int64_t>));
      return put(to, fold(get<std::uint64_t>(first), get<std::uint64_t>));
    case ElementType::bytes:
      break;
  }
}

// Random numbers of moderate size, or for integers random bits.
Bytes random_source(ElementType type, std::int64_t elements, unsigned seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  const auto size = static_cast<std::size_t>(bytes_of(type));
  Bytes bytes(static_cast<std::size_t>(elements) * size);
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    if (type == ElementType::float64) put(&bytes[at], static_cast<double>(normal(random)) / 3);
    if (type == ElementType::float32) put(&bytes[at], normal(random));
    if (type == ElementType::float16) put(&bytes[at], to_float16(normal(random)));
    if (type == ElementType::bfloat16) put(&bytes[at], to_bfloat16(normal(random)));
    if (type == ElementType::int32) put(&bytes[at], static_cast<std::uint32_t>(random()));
    if (type == ElementType::int64) put(&bytes[at], static_cast<std::uint64_t>(random()));
  }
  return bytes;
}

std::vector<Bytes> random_sources(ElementType type, std::int64_t elements, int ranks, unsigned seed) {
  std::vector<Bytes> sources;
  for (int rank = 0; rank < ranks; ++rank) {
    sources.push_back(random_source(type, elements, seed * 100 + static_cast<unsigned>(rank)));
  }
  return sources;
}

Bytes expected(ElementType type, ReduceOp op, const std::vector<Bytes>& sources) {
  Bytes result(sources[0].size());
  const auto size = static_cast<std::size_t>(bytes_of(type));
  for (std::size_t at = 0; at < result.size(); at += size) expected_element(type, op, sources, at, &result[at]);
  return result;
}

const Bytes& of_rank(const std::vector<Bytes>& sources, const Group& group) {
  return sources[static_cast<std::size_t>(group.rank())];
}

TEST(Fold, EveryWidthTypeAndOperation) {
  for (const ElementType type : types) {
    for (const ReduceOp op : ops) {
      if (!makes_sense(type, op)) {
        EXPECT_EQ(detail::fold_function(type, op), nullptr);
        continue;
      }
      const auto sources = random_sources(type, 333, 3, 5);
      const Bytes wanted = expected(type, op, sources);
      const std::byte* pointers[] = {sources[0].data(), sources[1].data(), sources[2].data()};
      for (int width = 0; width <= detail::widest_fold(); ++width) {
        Bytes found(wanted.size());
        detail::fold_function(type, op, width)(pointers, 3, found.data(), 333);
        ASSERT_EQ(found, wanted) << to_string(type) << " " << to_string(op) << " width " << width;
      }
    }
  }
}

TEST(Fold, HalvesOfEveryKindRoundAsAlone) {
  Bytes every(0x10000 * 2);
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) put(&every[bits * 2], static_cast<std::uint16_t>(bits));
  const std::byte* pointers[] = {every.data()};
  for (int width = 0; width <= detail::widest_fold(); ++width) {
    Bytes found(every.size());
    for (const ElementType type : {ElementType::float16, ElementType::bfloat16}) {
      detail::fold_function(type, ReduceOp::sum, width)(pointers, 1, found.data(), 0x10000);
      for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
        const double before = widen(type, &every[bits * 2]);
        const double after = widen(type, &found[bits * 2]);
        ASSERT_TRUE(std::isnan(before) ? std::isnan(after) : before == after) << bits << " width " << width;
      }
    }
    // Sums of neighbours in size round; the scalar conversion is held against the vectors.
    Bytes other(every.rbegin(), every.rend());
    const std::byte* pair[] = {every.data(), other.data()};
    detail::fold_function(ElementType::float16, ReduceOp::sum, width)(pair, 2, found.data(), 0x10000);
    for (std::size_t at = 0; at < found.size(); at += 2) {
      const float sum = to_float(get<Float16>(&every[at])) + to_float(get<Float16>(&other[at]));
      if (std::isnan(sum)) {
        ASSERT_TRUE(std::isnan(widen(ElementType::float16, &found[at])));
      } else {
        ASSERT_EQ(get<std::uint16_t>(&found[at]), to_float16(sum).bits);
      }
    }
  }
}

TEST(Fold, NanStaysNan) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (const ReduceOp op : ops) {
    for (int who = 0; who < 3; ++who) {
      double values[3] = {1, 2, 3};
      values[who] = nan;
      const std::byte* pointers[3];
      for (int i = 0; i < 3; ++i) pointers[i] = reinterpret_cast<const std::byte*>(&values[i]);
      double result = 0;
      detail::fold_function(ElementType::float64, op)(pointers, 3, reinterpret_cast<std::byte*>(&result), 1);
      EXPECT_TRUE(std::isnan(result)) << to_string(op) << " " << who;
    }
  }
}

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

// Lengths around all borders, odd addresses, chunks, in place and not: always the same bits.
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
        // Reduce-scatter, also onto the own block of the source.
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
        // And back together.
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
        // Rank a sends (a + 2 b + 1) * elements bytes, all of them the number a * 16 + b, to rank b.
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

// Many of different shapes one after the other, on processes: slots are used again in every order, ranks run ahead.
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

// What a codec makes of an array.
Bytes rounded(Codec codec, ElementType type, const Bytes& array) {
  Bytes wire(
      static_cast<std::size_t>(encoded_bytes(codec, type, static_cast<std::int64_t>(array.size()) / bytes_of(type))));
  Bytes back(array.size());
  encode(codec, type, array, wire);
  decode(codec, type, wire, back);
  return back;
}

// Every value is rounded on its way to where it is summed, and the sum on its way back: whatever the algorithm and the cut.
TEST(Collectives, EncodedSumsAreRoundedTwice) {
  for (const int ranks : {1, 2, 3, 5}) {
    on_threads(ranks, [&](const Group& group) {
      const Collectives collectives(group, {.slots = 2, .slot_bytes = 8192});
      for (const Codec codec : {Codec::fp16, Codec::bf16, Codec::fp8, Codec::q8, Codec::q6, Codec::q4}) {
        for (const ElementType type : {ElementType::float32, ElementType::float64}) {
          for (const std::int64_t elements : {1, 31, 64, 1000, 7001}) {
            auto sources = random_sources(type, elements, ranks, 6);
            for (Bytes& source : sources) source = rounded(codec, type, source);
            for (const ReduceOp op : {ReduceOp::sum, ReduceOp::mean, ReduceOp::max}) {
              const Bytes wanted = rounded(codec, type, expected(type, op, sources));
              for (const auto algorithm : {ReduceAlgorithm::one_shot, ReduceAlgorithm::two_shot}) {
                Bytes result = random_source(type, elements, 600U + static_cast<unsigned>(group.rank()));
                collectives.allreduce({elements, type, op, codec, algorithm, 1024}).run(result, result);
                ASSERT_EQ(result, wanted) << to_string(codec) << " " << to_string(type) << " " << elements << " "
                                          << to_string(op) << " " << to_string(algorithm) << " on " << ranks;
              }
            }
          }
        }
        // Half numbers go the same way; and reduce-scatter gives what all-reduce gives.
        const auto halves = random_sources(ElementType::float16, 128 * ranks, ranks, 7);
        Bytes all(halves[0].size());
        collectives.allreduce({128 * ranks, ElementType::float16, ReduceOp::sum, codec, ReduceAlgorithm::two_shot})
            .run(of_rank(halves, group), all);
        Bytes block(256);
        collectives.reduce_scatter({128, ElementType::float16, ReduceOp::sum, codec})
            .run(of_rank(halves, group), block);
        ASSERT_TRUE(std::equal(block.begin(), block.end(), all.begin() + group.rank() * 256)) << to_string(codec);
      }
      EXPECT_THROW((void)collectives.allreduce({10, ElementType::int32, ReduceOp::sum, Codec::q8}), BadInput);
    });
  }
}

// Results that no cache holds are stored past the caches, also from and to odd addresses and lists of arrays.
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

// One rank does something else: a Mismatch on every rank that names it, and nobody hangs.
TEST(Collectives, MismatchOnEveryRank) {
  const Reduction usual{50000, ElementType::float32, ReduceOp::sum};
  const auto with = [&](auto change) {
    Reduction other = usual;
    change(other);
    return other;
  };
  const Reduction others[] = {
      with([](Reduction& r) { r.elements = 50001; }),
      with([](Reduction& r) { r.elements = 2; }),
      with([](Reduction& r) { r.type = ElementType::int32; }),
      with([](Reduction& r) { r.op = ReduceOp::max; }),
      with([](Reduction& r) { r.algorithm = ReduceAlgorithm::one_shot; }),
  };
  for (const Reduction& other : others) {
    on_threads(3, [&](const Group& group) {
      group.set_timeout(20);
      const Collectives collectives(group, {.slots = 2, .slot_bytes = 4096});
      const Reduction& mine = group.rank() == 1 ? other : usual;
      Bytes array(static_cast<std::size_t>(mine.elements * bytes_of(mine.type)));
      Collective operation = collectives.allreduce(mine);
      try {
        operation.run(array, array);
        FAIL() << "no Mismatch on rank " << group.rank();
      } catch (const Mismatch& error) {
        EXPECT_NE(std::string(error.what()).find("rank 1 runs an all-reduce of"), std::string::npos) << error.what();
      }
      EXPECT_THROW(operation.run(array, array), BadInput);
    });
  }
  on_threads(2, [&](const Group& group) {
    const Collectives collectives(group);
    Bytes array(100);
    if (group.rank() == 0) {
      EXPECT_THROW(collectives.barrier(), Mismatch);
    } else {
      EXPECT_THROW(collectives.broadcast(100, 1).run(array, array), Mismatch);
    }
  });
}

TEST(Collectives, DeadRankIsPeerLost) {
  for (const std::int64_t elements : {2, 1000, 3000000}) {
    const auto ended = fork_ranks(3, [&](const Group& group) {
      const Collectives collectives(group);
      Bytes array(static_cast<std::size_t>(elements) * 4);
      Collective operation = collectives.allreduce({elements});
      for (int run = 0; run < 10; ++run) {
        if (run == 5 && group.rank() == 2) kill(getpid(), SIGKILL);
        operation.run(array, array);
      }
    });
    EXPECT_EQ(ended[2].signal, SIGKILL);
    for (const std::size_t rank : {0U, 1U}) {
      EXPECT_EQ(ended[rank].exit_code, 3) << ended[rank].message;
      EXPECT_NE(ended[rank].message.find("rank 2"), std::string::npos) << ended[rank].message;
    }
  }
}

TEST(Collectives, SaysWhatIsWrong) {
  const Group group = Group::alone();
  const Collectives collectives(group);
  EXPECT_THROW((void)collectives.allreduce({-1}), BadInput);
  EXPECT_THROW((void)collectives.allreduce({10, ElementType::bytes}), BadInput);
  EXPECT_THROW((void)collectives.allreduce({10, ElementType::int32, ReduceOp::mean}), BadInput);
  EXPECT_THROW((void)collectives.allreduce({std::int64_t{1} << 62}), BadInput);
  EXPECT_THROW((void)collectives.broadcast(5, 1), BadInput);
  EXPECT_THROW((void)collectives.allgather(std::vector<std::int64_t>{1, 2}), BadInput);
  EXPECT_THROW((void)reduce_op_from_string("average"), BadInput);
  Bytes array(44);
  Collective operation = collectives.allreduce({10});
  EXPECT_THROW(operation.run(array, array), BadInput);
  const std::span<std::byte> all(array);
  EXPECT_THROW(operation.run(all.subspan(0, 40), all.subspan(4, 40)), BadInput);
  EXPECT_THROW(operation.finish(), BadInput);
  operation.start(all.subspan(0, 40), all.subspan(0, 40));
  EXPECT_THROW(collectives.barrier(), BadInput);
  operation.finish();
  const Part parts[] = {{array.data(), array.data(), 11}};
  EXPECT_THROW(operation.start(parts), BadInput);
}

}  // namespace
}  // namespace onehop::tensors
