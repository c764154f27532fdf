#include "bench/native/packing_lines.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

namespace onehop::bench {
namespace {

constexpr std::int64_t line = 64;
constexpr std::int64_t word = 8;

// Consecutive bytes of an array or of the slots, which begin at `memory`.
struct Piece {
  std::byte* memory;
  std::int64_t at;
  std::int64_t bytes;
};
using Pieces = std::vector<Piece>;

bool has_short(const Pieces& pieces) {
  return std::ranges::any_of(pieces, [](const Piece& piece) { return piece.bytes < line; });
}

}  // namespace

// Collects the pieces of one phase.
class PackingLines::Builder {
 public:
  void add(const Pieces& to, const Pieces& from) {
    if (!has_short(to) && !has_short(from)) return add_copies(to, from);
    for (const Piece& piece : from) add_lines(piece, false);
    for (const Piece& piece : to) add_lines(piece, true);
  }

  [[nodiscard]] Phase build() {
    for (const auto& [place, touched] : lines_) {
      std::byte* const memory = place.first;
      if (phase_.lines.empty() || phase_.lines.back().first != memory || phase_.lines.back().writes != touched.writes) {
        phase_.lines.push_back({memory, touched.writes, {}});
      }
      phase_.lines.back().words.push_back(touched.word);
    }
    return std::move(phase_);
  }

 private:
  // A longer piece may face several of the other side.
  void add_copies(const Pieces& to, const Pieces& from) {
    std::size_t source = 0;
    std::int64_t read = 0;  // bytes of this source
    for (const Piece& piece : to) {
      for (std::int64_t written = 0; written < piece.bytes;) {
        const Piece& other = from[source];
        const std::int64_t bytes = std::min(piece.bytes - written, other.bytes - read);
        phase_.copies.push_back(
            {piece.memory + piece.at + written, other.memory + other.at + read, static_cast<std::size_t>(bytes)});
        written += bytes;
        read += bytes;
        if (read < other.bytes) continue;
        ++source;
        read = 0;
      }
    }
  }

  void add_lines(const Piece& piece, bool writes) {
    const auto shift = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(piece.memory) % line);
    for (std::int64_t at = piece.at; at < piece.at + piece.bytes;) {
      const std::int64_t number = (at + shift) / line;
      Touched& touched = lines_[{piece.memory, number}];
      if (writes || !touched.writes) touched = {static_cast<std::uint32_t>(at / word), writes};
      at = (number + 1) * line - shift;
    }
  }

  struct Touched {
    std::uint32_t word = 0;
    bool writes = false;
  };
  Phase phase_;
  std::map<std::pair<std::byte*, std::int64_t>, Touched> lines_;
};

namespace {

std::int64_t element_bytes(const Schedule& schedule, const Place& place) {
  return schedule.arrays[static_cast<std::size_t>(place.array)].element_bytes;
}

std::int64_t bytes_of(const Schedule& schedule, const Place& place) {
  return place.slice.elements() * element_bytes(schedule, place);
}

// Calls visit(transfer) for the transfers that begin on this rank, or do not, and end on it, or do not.
template <class Visit>
void for_each(const Schedule& schedule, int rank, bool from_here, bool to_here, const Visit& visit) {
  for (const Transfer& transfer : schedule.rounds.at(0).transfers) {
    if ((transfer.from.rank == rank) == from_here && (transfer.to.rank == rank) == to_here) visit(transfer);
  }
}

// The pieces of the slots, one after the other.
class NextPiece {
 public:
  explicit NextPiece(std::byte* slots) : slots_(slots) {}
  Pieces operator()(std::int64_t bytes) {
    const Piece piece{slots_, at_, bytes};
    at_ += bytes;
    return {piece};
  }

 private:
  std::byte* slots_;
  std::int64_t at_ = 0;
};

void copy_by_memcpy(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

}  // namespace

PackingLines::Crossing PackingLines::crossing(const Schedule& schedule, int rank) {
  Crossing sums;
  for_each(schedule, rank, true, false, [&](const Transfer& t) { sums.out += bytes_of(schedule, t.from); });
  for_each(schedule, rank, false, true, [&](const Transfer& t) { sums.in += bytes_of(schedule, t.to); });
  return sums;
}

PackingLines::PackingLines(const Schedule& schedule, int rank, std::span<const std::span<std::byte>> arrays) {
  const Crossing bytes = crossing(schedule, rank);
  own_slots_.resize(static_cast<std::size_t>(bytes.out + bytes.in));
  build(schedule, rank, arrays, {own_slots_.data(), own_slots_.data() + bytes.out});
}

PackingLines::PackingLines(const Schedule& schedule, int rank, std::span<const std::span<std::byte>> arrays,
                           const Slots& slots) {
  build(schedule, rank, arrays, slots);
}

void PackingLines::build(const Schedule& schedule, int rank, std::span<const std::span<std::byte>> arrays,
                         const Slots& slots) {
  const auto pieces = [&](const Place& place) {
    const std::int64_t size = element_bytes(schedule, place);
    Pieces made;
    place.slice.for_each_run([&](std::int64_t offset, std::int64_t count) {
      made.push_back({arrays[static_cast<std::size_t>(place.array)].data(), offset * size, count * size});
    });
    return made;
  };
  const auto add_phase = [&](bool from_here, bool to_here, const auto& add) {
    Builder builder;
    for_each(schedule, rank, from_here, to_here, [&](const Transfer& transfer) { add(builder, transfer); });
    phases_.push_back(builder.build());
  };
  NextPiece next_out(slots.out);
  NextPiece next_in(slots.in);
  add_phase(true, false,
            [&](Builder& out, const Transfer& t) { out.add(next_out(bytes_of(schedule, t.from)), pieces(t.from)); });
  add_phase(true, true, [&](Builder& own, const Transfer& t) { own.add(pieces(t.to), pieces(t.from)); });
  add_phase(false, true,
            [&](Builder& in, const Transfer& t) { in.add(pieces(t.to), next_in(bytes_of(schedule, t.to))); });
}

void PackingLines::touch() noexcept {
  pack(copy_by_memcpy);
  move_inside();
  unpack();
}

void PackingLines::move_inside() noexcept { run(phases_[1], copy_by_memcpy); }
void PackingLines::unpack() noexcept { run(phases_[2], copy_by_memcpy); }

bool PackingLines::copies_everything() const noexcept {
  return std::ranges::all_of(phases_, [](const Phase& phase) { return phase.lines.empty(); });
}

void PackingLines::run(const Phase& phase, CopyFunction copy) noexcept {
  constexpr std::size_t ahead = 16;
  std::uint64_t sum = 0;
  for (const Copy& one : phase.copies) copy(one.to, one.from, one.bytes);
  for (const Lines& lines : phase.lines) {
    const std::size_t count = lines.words.size();
    for (std::size_t i = 0; i < count; ++i) {
      __builtin_prefetch(lines.first + lines.words[std::min(i + ahead, count - 1)] * std::size_t{word});
      std::byte* const at = lines.first + lines.words[i] * std::size_t{word};
      if (lines.writes) {
        *reinterpret_cast<volatile std::uint64_t*>(at) = 0;
      } else {
        sum += *reinterpret_cast<const volatile std::uint64_t*>(at);
      }
    }
  }
  sink_ = sum;
}

}  // namespace onehop::bench
