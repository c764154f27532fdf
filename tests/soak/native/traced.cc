#include "tests/soak/native/traced.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "onehop/error.h"
#include "tests/support/naive_execute.h"

namespace onehop::soak {
namespace {

constexpr std::size_t behind = 2;  // words behind an array, which must stay

// The word of a run, repeated in elements of this size.
std::uint64_t word_of(std::uint64_t number, std::size_t element_bytes) {
  const std::uint64_t word = (number + 1) * 0x9E3779B97F4A7C15;
  if (element_bytes == 1) return (word >> 56) * 0x0101010101010101;
  if (element_bytes == 4) return (word >> 32) * 0x0000000100000001;
  return word;
}

// For every byte of the arrays of all ranks, one array after the other: where its content after a run was before.
std::vector<std::size_t> origins(const Schedule& schedule, const std::vector<std::size_t>& starts) {
  std::vector<std::size_t> from(starts.back());
  std::iota(from.begin(), from.end(), std::size_t{0});
  const auto place = [&](const Place& at) {
    const auto array = static_cast<std::size_t>(at.array);
    const std::int64_t size = schedule.arrays[array].element_bytes;
    std::vector<std::size_t> bytes;
    for (const std::int64_t element : testing::elements_of(at.slice)) {
      const std::size_t first = starts[static_cast<std::size_t>(at.rank) * schedule.arrays.size() + array] +
                                static_cast<std::size_t>(element * size);
      for (std::int64_t i = 0; i < size; ++i) bytes.push_back(first + static_cast<std::size_t>(i));
    }
    return bytes;
  };
  for (const Round& round : schedule.rounds) {
    const std::vector<std::size_t> before = from;
    for (const Transfer& transfer : round.transfers) {
      const std::vector<std::size_t> read = place(transfer.from);
      const std::vector<std::size_t> written = place(transfer.to);
      for (std::size_t i = 0; i < read.size(); ++i) from[written[i]] = before[read[i]];
    }
  }
  return from;
}

}  // namespace

bool only_moves(const Schedule& schedule) {
  return std::all_of(schedule.rounds.begin(), schedule.rounds.end(), [](const Round& round) {
    return std::all_of(round.transfers.begin(), round.transfers.end(),
                       [](const Transfer& one) { return one.combine == Combine::replace && one.codec == Codec::raw; });
  });
}

PlanOptions draw_options(Source& source, std::string& words, Lengths lengths) {
  PlanOptions options;
  options.transport = TransportKind::shared_memory;
  options.slots = static_cast<int>(source.below(4));
  if (lengths == Lengths::mixed) {
    options.slot_bytes = source.one_of<std::int64_t>({0, 0, 4096, 1 << 14});
    options.chunk_bytes = source.one_of<std::int64_t>({0, 0, 64, 1024});
  } else {
    options.slot_bytes = source.one_of<std::int64_t>({0, 0, 8192, 20'000, 1 << 16, 1 << 18});
    options.chunk_bytes = source.one_of<std::int64_t>({0, 0, 1024, 6000});
  }
  words = std::to_string(options.slots) + " slots of " + std::to_string(options.slot_bytes) + " bytes, chunks of " +
          std::to_string(options.chunk_bytes);
  return options;
}

void pause_seldom(Source& source) {
  if (const std::int64_t pause = source.below(1 << 14); pause < 8) {
    std::this_thread::sleep_for(std::chrono::microseconds(pause * pause * 40));
  }
}

void run_plan(Plan& plan, std::uint64_t way) {
  const auto how = way % 3;
  if (how == 0) return plan.run();
  plan.start();
  for (std::uint64_t tests = 0; how == 2 && tests < way % 5 && !plan.test(); ++tests) {
  }
  plan.finish();
}

namespace {

// Makes a plan. The slots that were drawn may be too short for an exchange in place whose two directions list their
// slices in different orders. All ranks are told so; the remedy that the message names must then help.
std::unique_ptr<Plan> make_plan(const Group& group, const Schedule& schedule,
                                const std::vector<std::span<std::byte>>& arrays, PlanOptions& options) {
  try {
    return std::make_unique<Plan>(group, schedule, arrays, options);
  } catch (const Error& error) {
    const bool too_short = std::string_view(error.what()).find("raise slot_bytes") != std::string_view::npos;
    if (!too_short || options.slot_bytes == 0) throw;
  }
  options.slots = 0;
  options.slot_bytes = 0;
  return std::make_unique<Plan>(group, schedule, arrays, options);
}

}  // namespace

Traced::Traced(const Group& group, const Schedule& schedule, std::uint64_t seed, Source source, Lengths lengths)
    : rank_(group.rank()), schedule_(schedule.to_json()) {
  PlanOptions options = draw_options(source, options_, lengths);
  const bool shared = source.below(2) == 0;
  if (shared) options_ += ", shared arrays";
  std::vector<std::size_t> starts{0};
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    for (const ArraySpec& array : schedule.arrays) {
      starts.push_back(starts.back() + static_cast<std::size_t>(array.elements_on(rank) * array.element_bytes));
    }
  }
  bytes_ = static_cast<std::int64_t>(starts.back());
  std::vector<std::byte> base(starts.back());
  for (std::size_t at = 0; at < base.size(); ++at) base[at] = static_cast<std::byte>(mix(seed, at) >> 56);
  const std::vector<std::size_t> from = origins(schedule, starts);
  std::vector<std::span<std::byte>> spans;
  for (std::size_t k = 0; k < schedule.arrays.size(); ++k) {
    const std::size_t first = starts[static_cast<std::size_t>(rank_) * schedule.arrays.size() + k];
    const std::size_t size = starts[static_cast<std::size_t>(rank_) * schedule.arrays.size() + k + 1] - first;
    Array& array = arrays_.emplace_back();
    array.element_bytes = static_cast<std::size_t>(schedule.arrays[k].element_bytes);
    array.before.resize((size + 7) / 8 + behind);
    array.after.resize(array.before.size());
    auto* const before = reinterpret_cast<std::byte*>(array.before.data());
    auto* const after = reinterpret_cast<std::byte*>(array.after.data());
    for (std::size_t i = 0; i < size; ++i) {
      before[i] = base[first + i];
      after[i] = base[from[first + i]];
    }
    if (shared && size > 0) {
      array.shared = group.allocate(static_cast<std::int64_t>(8 * array.before.size()));
      array.words = reinterpret_cast<std::uint64_t*>(array.shared.bytes().data());
    } else {
      array.own.resize(array.before.size());
      array.words = array.own.data();
    }
    spans.push_back(std::as_writable_bytes(std::span(array.words, array.before.size())).first(size));
  }
  plan_ = make_plan(group, schedule, spans, options);
}

bool Traced::adaptive() const {
  const std::vector<PlanChannel> channels = plan_->channels();
  return std::any_of(channels.begin(), channels.end(), [](const PlanChannel& one) { return one.adaptive; });
}

void Traced::renew(std::uint64_t number) {
  for (Array& array : arrays_) {
    const std::uint64_t word = word_of(number, array.element_bytes);
    const std::uint64_t* const before = array.before.data();
    std::uint64_t* const to = array.words;
    for (std::size_t i = 0; i < array.before.size(); ++i) to[i] = before[i] ^ word;
  }
}

void Traced::check(std::uint64_t number) const {
  for (const Array& array : arrays_) {
    const std::uint64_t word = word_of(number, array.element_bytes);
    const std::uint64_t* const after = array.after.data();
    const std::uint64_t* const found = array.words;
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < array.after.size(); ++i) wrong |= found[i] ^ after[i] ^ word;
    if (wrong != 0) report(number, array, word);
  }
}

void Traced::report(std::uint64_t number, const Array& array, std::uint64_t word) const {
  std::size_t i = 0;
  while (array.words[i] == (array.after[i] ^ word)) ++i;
  throw std::logic_error("wrong bytes: run " + std::to_string(number) + ", rank " + std::to_string(rank_) + ", array " +
                         std::to_string(&array - arrays_.data()) + ", in the 8 bytes from " + std::to_string(8 * i) +
                         " on; " + options_ + ": " + schedule_);
}

}  // namespace onehop::soak
