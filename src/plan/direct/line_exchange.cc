#include "src/plan/direct/line_exchange.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace onehop::detail {
namespace {

constexpr std::uintptr_t line_bytes = 64;

std::byte* line_of(std::byte* place) { return place - reinterpret_cast<std::uintptr_t>(place) % line_bytes; }

}  // namespace

LineExchange::LineExchange(const Runs& runs, const std::vector<std::vector<std::byte*>>& cycles) {
  if (runs.in_line() == 0) return;
  const auto element_bytes = static_cast<std::uint64_t>(runs.element_bytes());
  const auto run_bytes = static_cast<std::uint64_t>(runs.run_bytes());
  const std::uint64_t reach = runs.first_of(runs.in_line() - 1) * element_bytes + run_bytes;
  std::vector<std::vector<Part>> parts;
  for (const auto& places : cycles) {
    for (std::size_t p = 0; p < places.size(); ++p) {
      std::byte* const from = places[p];
      std::byte* const to = places[(p + 1) % places.size()];
      const auto where = reinterpret_cast<std::uintptr_t>(from) % line_bytes;
      if (where % 8 != 0 || where + reach > line_bytes || line_at(from) >= max_lines) {
        *this = {};
        return;
      }
      parts.resize(std::max<std::size_t>(lines_.size(), line_at(to) + 1));
      for (std::uint64_t run = 0, at = 0; run < runs.in_line(); ++run, at = runs.after(at)) {
        for (std::uint64_t byte = 0; byte < run_bytes; byte += 8) {
          add_word(from + at * element_bytes + byte, to + at * element_bytes + byte, parts);
        }
      }
    }
  }
  for (std::size_t l = 0; l < lines_.size(); ++l) {
    parts_.insert(parts_.end(), parts[l].begin(), parts[l].end());
    lines_[l].parts = static_cast<std::uint32_t>(parts_.size());
  }
  find_blocks();
}

// The sources of a common target line belong to one block, whose targets are all lines that receive words from them.
std::vector<LineExchange::Members> LineExchange::members_of_blocks() const {
  std::vector<Members> found;
  for (std::size_t l = 0; l < lines_.size(); ++l) {
    Members mine{{}, {l}};
    for (std::size_t p = l == 0 ? 0 : lines_[l - 1].parts; p < lines_[l].parts; ++p) {
      mine.sources.push_back(parts_[p].line);
    }
    std::erase_if(found, [&](const Members& other) {
      const auto ours = [&](std::size_t source) {
        return std::ranges::find(mine.sources, source) != mine.sources.end();
      };
      if (std::ranges::none_of(other.sources, ours)) return false;
      mine.targets.insert(mine.targets.end(), other.targets.begin(), other.targets.end());
      std::ranges::copy_if(other.sources, std::back_inserter(mine.sources), std::not_fn(ours));
      return true;
    });
    if (mine.sources.empty() || mine.sources.size() > 4 || mine.targets.size() > 4) return {};
    found.push_back(std::move(mine));
  }
  return found;
}

LineExchange::Block LineExchange::block_of(const Members& members) const {
  Block block;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::size_t source = members.sources[std::min(i, members.sources.size() - 1)];
    const std::size_t target = members.targets[std::min(i, members.targets.size() - 1)];
    block.from[i] = lines_[source].first;
    block.read[i] = lines_[source].changes;
    block.to[i] = lines_[target].first;
    if (i >= members.targets.size()) continue;  // nothing is written there
    block.changes[i] = lines_[target].changes;
    for (std::size_t p = target == 0 ? 0 : lines_[target - 1].parts; p < lines_[target].parts; ++p) {
      const auto number = std::ranges::find(members.sources, parts_[p].line) - members.sources.begin();
      for (std::size_t word = 0; word < 8; ++word) {
        if ((parts_[p].words >> word & 1) == 0) continue;
        auto& from = number < 2 ? block.early : block.late;
        from[i][word] = parts_[p].from[word] + (number % 2 != 0 ? 8 : 0);
        if (number >= 2) block.is_late[i] = static_cast<std::uint8_t>(block.is_late[i] | 1U << word);
      }
    }
  }
  return block;
}

void LineExchange::find_blocks() {
  const std::vector<Members> found = members_of_blocks();
  const auto reads = [](const Members& a, const Members& b) {  // whether a reads a line that b writes
    return std::ranges::any_of(a.sources,
                               [&](std::size_t l) { return std::ranges::find(b.targets, l) != b.targets.end(); });
  };
  std::vector<Block> pairs;
  std::vector<Block> alone;
  for (std::size_t i = 0; i < found.size(); ++i) {
    std::vector<std::size_t> others;
    for (std::size_t j = 0; j < found.size(); ++j) {
      if (j != i && (reads(found[i], found[j]) || reads(found[j], found[i]))) others.push_back(j);
    }
    if (others.empty()) {
      alone.push_back(block_of(found[i]));
    } else if (others.size() == 1) {
      if (others.front() < i) continue;  // added together with the other
      pairs.push_back(block_of(found[i]));
      pairs.push_back(block_of(found[others.front()]));
    } else {
      return;
    }
  }
  alone_ = alone.size();
  blocks_ = std::move(alone);
  blocks_.insert(blocks_.end(), pairs.begin(), pairs.end());
}

std::uint32_t LineExchange::line_at(std::byte* place) {
  const auto found = std::ranges::find(lines_, line_of(place), &Line::first);
  const auto number = static_cast<std::uint32_t>(found - lines_.begin());
  if (found == lines_.end()) lines_.push_back({.first = line_of(place)});
  return number;
}

void LineExchange::add_word(std::byte* from, std::byte* to, std::vector<std::vector<Part>>& parts) {
  const std::uint32_t source = line_at(from);
  const std::uint32_t target = line_at(to);
  const auto word = static_cast<std::size_t>(to - line_of(to)) / 8;
  auto part = std::ranges::find(parts[target], source, &Part::line);
  if (part == parts[target].end()) part = parts[target].insert(part, Part{.line = source});
  part->from[word] = static_cast<std::uint64_t>(from - line_of(from)) / 8;
  part->words = static_cast<std::uint8_t>(part->words | 1U << word);
  lines_[target].changes = static_cast<std::uint8_t>(lines_[target].changes | 1U << word);
  words_.push_back({to, from});
}

void LineExchange::run_portable(const Runs& runs, std::uint64_t first, std::uint64_t last) const noexcept {
  std::array<std::uint64_t, 8 * max_lines> kept;
  std::uint64_t at = runs.first_of(first);
  for (std::uint64_t run = first; run < last; run += runs.in_line(), at = runs.after_line(at)) {
    const std::uint64_t offset = at * static_cast<std::uint64_t>(runs.element_bytes());
    for (std::size_t w = 0; w < words_.size(); ++w) std::memcpy(&kept[w], words_[w].from + offset, 8);
    for (std::size_t w = 0; w < words_.size(); ++w) std::memcpy(words_[w].to + offset, &kept[w], 8);
  }
}

#if defined(__x86_64__)

__attribute__((target("avx512f"))) void LineExchange::run_avx512(const Runs& runs, std::uint64_t first,
                                                                 std::uint64_t last) const noexcept {
  alignas(64) std::array<std::array<std::uint64_t, 8>, max_lines> kept;
  std::uint64_t at = runs.first_of(first);
  for (std::uint64_t run = first; run < last; run += runs.in_line(), at = runs.after_line(at)) {
    const std::uint64_t offset = at * static_cast<std::uint64_t>(runs.element_bytes());
    for (std::size_t l = 0; l < lines_.size(); ++l) {
      _mm512_store_si512(kept[l].data(), _mm512_maskz_load_epi64(lines_[l].changes, lines_[l].first + offset));
    }
    const Part* part = parts_.data();
    for (const Line& line : lines_) {
      __m512i words = _mm512_setzero_si512();
      for (const Part* const end = parts_.data() + line.parts; part != end; ++part) {
        words = _mm512_mask_permutexvar_epi64(words, part->words, _mm512_load_si512(part->from.data()),
                                              _mm512_load_si512(kept[part->line].data()));
      }
      _mm512_mask_store_epi64(line.first + offset, line.changes, words);
    }
  }
}

__attribute__((target("avx512f"))) void LineExchange::run_blocks_avx512(const Runs& runs, std::uint64_t first,
                                                                        std::uint64_t last) const noexcept {
  struct Four {
    __m512i a, b, c, d;
  };
  std::uint64_t at = runs.first_of(first);
  for (std::uint64_t run = first; run < last; run += runs.in_line(), at = runs.after_line(at)) {
    const std::uint64_t offset = at * static_cast<std::uint64_t>(runs.element_bytes());
    const auto load = [&](const Block& block) __attribute__((target("avx512f"), always_inline)) {
      const auto one = [&](std::size_t i) __attribute__((target("avx512f"), always_inline)) {
        return _mm512_maskz_load_epi64(block.read[i], block.from[i] + offset);
      };
      return Four{one(0), one(1), one(2), one(3)};
    };
    const auto store = [&](const Block& block, const Four& four) __attribute__((target("avx512f"), always_inline)) {
      for (std::size_t i = 0; i < 4; ++i) {
        const __m512i early = _mm512_permutex2var_epi64(four.a, _mm512_load_si512(block.early[i].data()), four.b);
        const __m512i late = _mm512_permutex2var_epi64(four.c, _mm512_load_si512(block.late[i].data()), four.d);
        _mm512_mask_store_epi64(block.to[i] + offset, block.changes[i],
                                _mm512_mask_blend_epi64(block.is_late[i], early, late));
      }
    };
    for (std::size_t b = 0; b < alone_; ++b) store(blocks_[b], load(blocks_[b]));
    for (std::size_t b = alone_; b < blocks_.size(); b += 2) {
      const Four mine = load(blocks_[b]);
      const Four theirs = load(blocks_[b + 1]);
      store(blocks_[b], mine);
      store(blocks_[b + 1], theirs);
    }
  }
}

void LineExchange::run(const Runs& runs, std::uint64_t first, std::uint64_t last) const noexcept {
  if (first >= last) return;
  const bool wide = exchange_level() == cpu::Level::avx512;
  if (wide && !blocks_.empty()) return run_blocks_avx512(runs, first, last);
  if (wide) return run_avx512(runs, first, last);
  run_portable(runs, first, last);
}

#else

void LineExchange::run(const Runs& runs, std::uint64_t first, std::uint64_t last) const noexcept {
  if (first < last) run_portable(runs, first, last);
}

#endif

}  // namespace onehop::detail
