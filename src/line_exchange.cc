#include "line_exchange.h"

#include <algorithm>
#include <cstring>

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
      if (where % 8 != 0 || where + reach > line_bytes || line_at(from) >= most_lines) {
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
  std::array<std::uint64_t, 8 * most_lines> kept;
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
  alignas(64) std::array<std::array<std::uint64_t, 8>, most_lines> kept;
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

__attribute__((target("avx512f"))) void LineExchange::run_four_avx512(const Runs& runs, std::uint64_t first,
                                                                      std::uint64_t last) const noexcept {
  alignas(64) std::array<std::array<std::array<std::uint64_t, 8>, 4>, 4> from{};
  std::array<std::array<__mmask8, 4>, 4> words{};
  for (std::size_t l = 0, p = 0; l < 4; ++l) {
    for (; p < lines_[l].parts; ++p) {
      from[l][parts_[p].line] = parts_[p].from;
      words[l][parts_[p].line] = parts_[p].words;
    }
  }
  std::uint64_t at = runs.first_of(first);
  for (std::uint64_t run = first; run < last; run += runs.in_line(), at = runs.after_line(at)) {
    const std::uint64_t offset = at * static_cast<std::uint64_t>(runs.element_bytes());
    const auto load = [&](std::size_t l) __attribute__((target("avx512f"), always_inline)) {
      return _mm512_maskz_load_epi64(lines_[l].changes, lines_[l].first + offset);
    };
    const __m512i a = load(0);
    const __m512i b = load(1);
    const __m512i c = load(2);
    const __m512i d = load(3);
    for (std::size_t l = 0; l < 4; ++l) {
      __m512i out = _mm512_maskz_permutexvar_epi64(words[l][0], _mm512_load_si512(from[l][0].data()), a);
      out = _mm512_mask_permutexvar_epi64(out, words[l][1], _mm512_load_si512(from[l][1].data()), b);
      out = _mm512_mask_permutexvar_epi64(out, words[l][2], _mm512_load_si512(from[l][2].data()), c);
      out = _mm512_mask_permutexvar_epi64(out, words[l][3], _mm512_load_si512(from[l][3].data()), d);
      _mm512_mask_store_epi64(lines_[l].first + offset, lines_[l].changes, out);
    }
  }
}

void LineExchange::run(const Runs& runs, std::uint64_t first, std::uint64_t last) const noexcept {
  static const bool wide = __builtin_cpu_supports("avx512f");
  if (first >= last) return;
  if (wide && lines_.size() == 4) return run_four_avx512(runs, first, last);
  if (wide) return run_avx512(runs, first, last);
  run_portable(runs, first, last);
}

#else

void LineExchange::run(const Runs& runs, std::uint64_t first, std::uint64_t last) const noexcept {
  if (first < last) run_portable(runs, first, last);
}

#endif

}  // namespace onehop::detail
