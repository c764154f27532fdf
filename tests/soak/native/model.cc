#include "tests/soak/native/model.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <stdexcept>

#include "tests/soak/native/traced.h"
#include "tests/support/naive_execute.h"

namespace onehop::soak {
namespace {

using testing::combine_one;
using testing::elements_of;

std::uint64_t scramble(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// Numbers are integers below 2^24, so that sums of 10^5 runs stay exact in float64.
void write_value(std::byte* at, std::size_t bytes, ElementType type, std::uint64_t random) {
  const auto small = static_cast<std::int64_t>(random >> 40);
  if (type == ElementType::int64) {
    std::memcpy(at, &small, sizeof small);
  } else if (type == ElementType::float64) {
    for (std::size_t i = 0; i < bytes; i += 8) {
      const auto number = static_cast<double>(small + static_cast<std::int64_t>(i));
      std::memcpy(at + i, &number, sizeof number);
    }
  } else {
    for (std::size_t i = 0; i < bytes; i += 8) {
      const std::uint64_t word = i == 0 ? random : scramble(random + i);
      std::memcpy(at + i, &word, std::min<std::size_t>(8, bytes - i));
    }
  }
}

template <std::size_t bytes>
void gather(const std::byte* memory, std::span<const std::size_t> from, std::byte* to) {
  for (const std::size_t at : from) {
    std::memcpy(to, memory + at, bytes);
    to += bytes;
  }
}

template <std::size_t bytes>
void scatter(std::byte* memory, std::span<const std::size_t> to, const std::byte* from) {
  for (const std::size_t at : to) {
    std::memcpy(memory + at, from, bytes);
    from += bytes;
  }
}

// Calls `with` with the element size as a constant.
template <class With>
void for_size(std::size_t bytes, With&& with) {
  switch (bytes) {
    case 1:
      return with(std::integral_constant<std::size_t, 1>{});
    case 4:
      return with(std::integral_constant<std::size_t, 4>{});
    case 8:
      return with(std::integral_constant<std::size_t, 8>{});
    case 16:
      return with(std::integral_constant<std::size_t, 16>{});
    case 24:
      return with(std::integral_constant<std::size_t, 24>{});
    default:
      throw std::logic_error("the model has no elements of " + std::to_string(bytes) + " bytes");
  }
}

}  // namespace

std::uint64_t mix(std::uint64_t seed, std::uint64_t number) {
  return scramble(scramble(seed + 0x9E3779B97F4A7C15) + number * 0x9E3779B97F4A7C15);
}

Model::Model(const Schedule& schedule, std::uint64_t seed) : arrays_(schedule.arrays.size()), seed_(seed) {
  std::size_t total = 0;
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    for (const ArraySpec& array : schedule.arrays) {
      starts_.push_back(total);
      total += static_cast<std::size_t>(array.elements_on(rank) * array.element_bytes);
    }
  }
  starts_.push_back(total);
  memory_.resize(total);
  std::map<std::size_t, Fresh> fresh;
  std::size_t largest = 0;
  for (const Round& round : schedule.rounds) {
    std::vector<Segment>& segments = rounds_.emplace_back();
    std::size_t moved = 0;
    for (const Transfer& transfer : round.transfers) {
      const ArraySpec& array = schedule.arrays.at(static_cast<std::size_t>(transfer.to.array));
      const std::size_t first = reads_.size();
      const auto bytes = static_cast<std::size_t>(array.element_bytes);
      add_place(schedule, transfer.from, reads_);
      add_place(schedule, transfer.to, writes_);
      segments.push_back({first, reads_.size(), bytes, transfer.combine, array.type});
      for (std::size_t i = first; i < reads_.size(); ++i) fresh[reads_[i]] = {reads_[i], bytes, array.type};
      moved += (reads_.size() - first) * bytes;
    }
    largest = std::max(largest, moved);
  }
  moving_.resize(largest);
  // Every element begins with a value, those that nothing reads too.
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    for (std::size_t k = 0; k < arrays_; ++k) {
      const ArraySpec& array = schedule.arrays[k];
      const auto bytes = static_cast<std::size_t>(array.element_bytes);
      for (std::size_t at = start(rank, static_cast<int>(k));
           at < starts_[static_cast<std::size_t>(rank) * arrays_ + k + 1]; at += bytes) {
        write_value(&memory_[at], bytes, array.type, scramble(mix(seed, at)));
      }
    }
  }
  for (const auto& [at, one] : fresh) fresh_.push_back(one);
}

void Model::add_place(const Schedule& schedule, const Place& place, std::vector<std::size_t>& offsets) const {
  const ArraySpec& array = schedule.arrays.at(static_cast<std::size_t>(place.array));
  for (const std::int64_t element : elements_of(place.slice)) {
    offsets.push_back(start(place.rank, place.array) + static_cast<std::size_t>(element * array.element_bytes));
  }
}

void Model::renew(std::uint64_t run) {
  std::uint64_t random = mix(seed_, run);
  for (const Fresh& one : fresh_) {
    random += 0x9E3779B97F4A7C15;
    write_value(&memory_[one.at], one.bytes, one.type, scramble(random));
  }
}

void Model::run() {
  for (const std::vector<Segment>& segments : rounds_) {
    std::byte* to = moving_.data();
    for (const Segment& one : segments) {
      const std::span<const std::size_t> from(&reads_[one.first], one.last - one.first);
      for_size(one.bytes, [&](auto bytes) { gather<bytes>(memory_.data(), from, to); });
      to += from.size() * one.bytes;
    }
    const std::byte* from = moving_.data();
    for (const Segment& one : segments) {
      const std::span<const std::size_t> written(&writes_[one.first], one.last - one.first);
      if (one.combine == Combine::replace) {
        for_size(one.bytes, [&](auto bytes) { scatter<bytes>(memory_.data(), written, from); });
      } else {
        for (std::size_t i = 0; i < written.size(); ++i) {
          std::byte* target = &memory_[written[i]];
          if (one.type == ElementType::int64) combine_one<std::int64_t>(one.combine, target, from + 8 * i);
          if (one.type == ElementType::float64) combine_one<double>(one.combine, target, from + 8 * i);
        }
      }
      from += written.size() * one.bytes;
    }
  }
  for (std::size_t k = 0; spoiled_ >= 0 && k < arrays_; ++k) {
    const std::size_t end = starts_[static_cast<std::size_t>(spoiled_) * arrays_ + k + 1];
    if (end > 0) memory_[end - 1] ^= std::byte{1};
  }
  spoiled_ = -1;
}

std::span<const std::byte> Model::array(int rank, int array) const {
  const std::size_t k = static_cast<std::size_t>(rank) * arrays_ + static_cast<std::size_t>(array);
  return {memory_.data() + starts_[k], starts_[k + 1] - starts_[k]};
}

std::vector<std::pair<std::size_t, std::size_t>> Model::renewed(int rank, int array) const {
  const std::size_t first = start(rank, array);
  const std::size_t last = first + this->array(rank, array).size();
  std::vector<std::pair<std::size_t, std::size_t>> pieces;
  for (const Fresh& one : fresh_) {
    if (one.at < first || one.at >= last) continue;
    const std::size_t at = one.at - first;
    if (!pieces.empty() && pieces.back().first + pieces.back().second == at) {
      pieces.back().second += one.bytes;
    } else {
      pieces.emplace_back(at, one.bytes);
    }
  }
  return pieces;
}

std::int64_t Model::elements() const {
  return static_cast<std::int64_t>(fresh_.size() + reads_.size() + writes_.size());
}

Bound::Bound(const Group& group, const Schedule& schedule, Model& model, Source source)
    : rank_(group.rank()),
      model_(model),
      pauses_(mix(static_cast<std::uint64_t>(source.below(1 << 30)), group.rank())) {
  const PlanOptions options = draw_options(source, options_);
  const bool shared = source.below(2) == 0;
  if (shared) options_ += ", shared arrays";
  std::vector<std::span<std::byte>> spans;
  for (std::size_t k = 0; k < schedule.arrays.size(); ++k) {
    Array& array = arrays_.emplace_back();
    const auto from = model.array(rank_, static_cast<int>(k));
    if (shared && !from.empty()) {
      array.shared = group.allocate(static_cast<std::int64_t>(from.size()));
      array.bytes = array.shared.bytes().first(from.size());
    } else {
      array.own.resize(from.size());
      array.bytes = array.own;
    }
    std::copy(from.begin(), from.end(), array.bytes.begin());
    array.renewed = model.renewed(rank_, static_cast<int>(k));
    spans.push_back(array.bytes);
  }
  plan_ = std::make_unique<Plan>(group, schedule, spans, options);
}

void Bound::run(std::uint64_t number) {
  model_.renew(number);
  for (std::size_t k = 0; k < arrays_.size(); ++k) {
    const std::byte* from = model_.array(rank_, static_cast<int>(k)).data();
    for (const auto& [at, bytes] : arrays_[k].renewed) std::memcpy(&arrays_[k].bytes[at], from + at, bytes);
  }
  pause_seldom(pauses_);
  run_plan(*plan_, number);
  model_.run();
  for (std::size_t k = 0; k < arrays_.size(); ++k) {
    const auto expected = model_.array(rank_, static_cast<int>(k));
    if (expected.empty() || std::memcmp(expected.data(), arrays_[k].bytes.data(), expected.size()) == 0) continue;
    const auto wrong =
        std::mismatch(expected.begin(), expected.end(), arrays_[k].bytes.begin()).first - expected.begin();
    throw std::logic_error("wrong bytes: run " + std::to_string(number) + ", rank " + std::to_string(rank_) +
                           ", array " + std::to_string(k) + ", byte " + std::to_string(wrong) + "; " + options_);
  }
}

}  // namespace onehop::soak
