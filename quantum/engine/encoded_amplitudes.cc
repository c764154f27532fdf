#include "quantum/engine/encoded_amplitudes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "src/base/thread_pool.h"
#include "src/codec/codec_run.h"

namespace onehop::quantum {
namespace {

constexpr std::uint64_t grain = std::uint64_t{1} << 12;  // amplitudes per thread and turn

// One function for both sides of a change. Lanes let the compiler use vectors without reordering a sum.
RoundingSums compare(std::span<const float> before, std::span<const float> after) {
  constexpr std::size_t lanes = 16;
  std::array<float, lanes> sums[3] = {};
  for (std::size_t i = 0; i + lanes <= before.size(); i += lanes) {
    for (std::size_t l = 0; l < lanes; ++l) {
      const float x = before[i + l];
      const float y = after[i + l];
      sums[0][l] += x * x;
      sums[1][l] += y * y;
      sums[2][l] += (y - x) * (y - x);
    }
  }
  RoundingSums result;
  for (std::size_t l = 0; l < lanes; ++l) result.add({sums[0][l], sums[1][l], sums[2][l]});
  return result;
}

}  // namespace

double RoundingSums::lost() const {
  if (before <= 0 || after <= 0) return before;
  // 1 - cosine, without cancellation.
  const double lengths = std::sqrt(before) - std::sqrt(after);
  const double off = std::max(0.0, change - lengths * lengths) / (2 * std::sqrt(before * after));
  return before * off * (2 - off);
}

std::int64_t EncodedAmplitudes::bytes_of_block(Codec codec) {
  return encoded_bytes(codec, ElementType::float32, std::int64_t{2} << block_bits);
}

std::byte* EncodedAmplitudes::at(std::uint64_t first) const {
  return bytes_.data() + (first >> block_bits) * static_cast<std::uint64_t>(bytes_of_block(codec_));
}

void EncodedAmplitudes::copy_from(const EncodedAmplitudes& other) {
  scale_ = other.scale_;
  lost_ = other.lost_;
  squares_ = other.squares_;
  std::ranges::copy(other.bytes_, bytes_.begin());
}

EncodedAmplitudes EncodedAmplitudes::on(std::span<std::byte> bytes, int bits) const {
  EncodedAmplitudes part(codec_, bits, bytes);
  part.scale_ = scale_;
  return part;
}

void EncodedAmplitudes::finish_parts(std::span<const EncodedAmplitudes> parts) {
  double squares = 0;
  double norm = 0;
  for (const EncodedAmplitudes& part : parts) {
    lost_ += part.lost_;
    squares += std::max(part.squares_, 0.0);
    norm += part.scale_ * part.scale_ * std::max(part.squares_, 0.0);
  }
  if (squares > 0 && norm > 0) scale_ = std::sqrt(norm / squares);
  squares_ = -1;
}

void EncodedAmplitudes::decode(std::uint64_t first, std::span<std::complex<float>> out) const {
  detail::decode(codec_, ElementType::float32, at(first), static_cast<std::int64_t>(2 * out.size()),
                 reinterpret_cast<std::byte*>(out.data()));
}

RoundingSums EncodedAmplitudes::encode(std::uint64_t first, std::span<std::complex<float>> values) {
  constexpr std::size_t piece = 128;  // amplitudes
  std::array<float, 2 * piece> before;
  RoundingSums sums;
  for (std::size_t begin = 0; begin < values.size(); begin += piece) {
    const std::size_t count = std::min(piece, values.size() - begin);
    auto* const numbers = reinterpret_cast<float*>(values.data() + begin);
    std::copy_n(numbers, 2 * count, before.begin());
    detail::round(codec_, reinterpret_cast<const std::byte*>(before.data()), static_cast<std::int64_t>(2 * count),
                  at(first + begin), reinterpret_cast<std::byte*>(numbers));
    sums.add(compare({before.data(), 2 * count}, {numbers, 2 * count}));
  }
  return sums;
}

void EncodedAmplitudes::finish_pass(const RoundingSums& sums) {
  lost_ += scale_ * scale_ * sums.lost();
  squares_ = sums.after;
  if (sums.before > 0 && sums.after > 0) scale_ *= std::sqrt(sums.before / sums.after);
}

void EncodedAmplitudes::read(std::uint64_t first, std::span<std::complex<float>> out, int threads) const {
  const auto factor = static_cast<float>(scale_);
  base::parallel_for(threads, out.size(), grain, [&](std::uint64_t begin, std::uint64_t end) {
    const auto piece = out.subspan(begin, end - begin);
    decode(first + begin, piece);
    for (std::complex<float>& value : piece) value *= factor;
  });
}

RoundingSums EncodedAmplitudes::write(std::uint64_t first, std::span<std::complex<float>> values, int threads) {
  const auto factor = static_cast<float>(1 / scale_);
  std::vector<RoundingSums> parts((values.size() + grain - 1) / grain);
  base::parallel_for(threads, values.size(), grain, [&](std::uint64_t begin, std::uint64_t end) {
    const auto piece = values.subspan(begin, end - begin);
    for (std::complex<float>& value : piece) value *= factor;
    parts[begin / grain] = encode(first + begin, piece);
  });
  RoundingSums sums;
  for (const RoundingSums& part : parts) sums.add(part);
  return sums;
}

// -- rows of a tile ---------------------------------------------------------------------------------------------------

// Calls body(first row, shape of some rows) for pieces of a tile that fit into the buffer.
template <typename Body>
void EncodedRows::for_pieces(const TileShape& shape, const Body& body) {
  TileShape piece = shape;
  piece.part_mask = piece.part = 0;
  piece.bits = std::min(shape.bits, std::countr_zero(buffer_.size()));
  places_.resize(piece.rows());
  for (std::size_t row = 0; row < piece.rows(); ++row) places_[row] = row << shape.row_bits;
  for (std::size_t row = 0; row < shape.rows(); row += piece.rows()) body(row, piece);
}

void EncodedRows::load(const Kernels<float>& kernels, std::uint64_t base, const std::uint64_t* offsets,
                       const TileShape& shape, float* tile) {
  for_pieces(shape, [&](std::size_t first, const TileShape& piece) {
    for (std::size_t row = 0; row < piece.rows(); ++row) {
      amplitudes_->decode(base + offsets[first + row],
                          std::span(buffer_).subspan(places_[row], std::size_t{1} << shape.row_bits));
    }
    kernels.gather(buffer_.data(), places_.data(), piece, tile + first * shape.row_stride(), 0);
  });
}

void EncodedRows::store(const Kernels<float>& kernels, std::uint64_t base, const std::uint64_t* offsets,
                        const TileShape& shape, const float* tile, float scale) {
  for_pieces(shape, [&](std::size_t first, const TileShape& piece) {
    kernels.scatter(buffer_.data(), places_.data(), piece, tile + first * shape.row_stride(), scale, false);
    for (std::size_t row = 0; row < piece.rows(); ++row) {
      sums_.add(amplitudes_->encode(base + offsets[first + row],
                                    std::span(buffer_).subspan(places_[row], std::size_t{1} << shape.row_bits)));
    }
  });
}

RoundingSums EncodedRows::take_sums() {
  const RoundingSums taken = sums_;
  sums_ = {};
  return taken;
}

}  // namespace onehop::quantum
