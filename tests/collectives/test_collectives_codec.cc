// Reductions through codecs: which numbers are rounded, and how often.
#include "onehop/collectives/collectives.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "onehop/error.h"
#include "tests/support/ranks.h"
#include "tests/support/reductions.h"

namespace onehop::collectives {
namespace {

using onehop::testing::on_threads;
using namespace testing;  // NOLINT

// Returns an array after encoding and decoding.
Bytes rounded(Codec codec, ElementType type, const Bytes& array) {
  Bytes wire(
      static_cast<std::size_t>(encoded_bytes(codec, type, static_cast<std::int64_t>(array.size()) / bytes_of(type))));
  Bytes back(array.size());
  encode(codec, type, array, wire);
  decode(codec, type, wire, back);
  return back;
}

// Every contribution is rounded once before it is summed, and the sum is rounded once, for every algorithm and chunk
// size.
TEST(Collectives, EncodedSumsAreRoundedTwice) {
  for (const int ranks : {1, 2, 3, 5}) {
    on_threads(ranks, [&](const Group& group) {
      const Collectives collectives(group, {.slots = 2, .slot_bytes = 8192});
      for (const Codec codec : {Codec::fp16, Codec::bf16, Codec::fp8, Codec::q8, Codec::q6, Codec::q4, Codec::q3}) {
        if (ranks > most_ranks(codec)) {
          EXPECT_THROW((void)collectives.allreduce({10, ElementType::float32, ReduceOp::sum, codec}), BadInput);
          EXPECT_THROW((void)collectives.reduce_scatter({10, ElementType::float32, ReduceOp::sum, codec}), BadInput);
          continue;
        }
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
        // 16-bit numbers are treated alike, and reduce-scatter gives the same result as all-reduce.
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

}  // namespace
}  // namespace onehop::collectives
