// Amplitudes in single precision that are kept encoded, and decoded piece by piece.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "onehop/codec.h"
#include "quantum/kernels/kernels.h"

namespace onehop::quantum {

// Sums of squares over numbers that were rounded: of the numbers before, after, and of their changes.
struct RoundingSums {
  double before = 0;
  double after = 0;
  double change = 0;
  void add(const RoundingSums& more) {
    before += more.before;
    after += more.after;
    change += more.change;
  }
  // What a factor cannot undo: `before` times the squared sine of the angle between both vectors.
  [[nodiscard]] double lost() const;
};

class EncodedAmplitudes {
 public:
  // 2^block_bits amplitudes are encoded together, for every codec.
  static constexpr int block_bits = 4;
  // Amplitudes are multiplied by 2^15 before they are encoded, so that 16-bit numbers keep their precision in states of
  // many qubits: no amplitude of a state exceeds 1, and float16 ends at 2^16.
  static constexpr double first_scale = 1.0 / 32768;

  EncodedAmplitudes() = default;
  // `bytes` has room for 2^bits amplitudes. It may hold zeros, which are amplitudes 0.
  EncodedAmplitudes(Codec codec, int bits, std::span<std::byte> bytes) : codec_(codec), bits_(bits), bytes_(bytes) {}

  [[nodiscard]] static std::int64_t bytes_of_block(Codec codec);
  [[nodiscard]] int bits() const noexcept { return bits_; }
  // Amplitudes are the decoded numbers times this.
  [[nodiscard]] double scale() const noexcept { return scale_; }
  void set_scale(double scale) noexcept { scale_ = scale; }
  // The squared norm of what all roundings have changed since the last reset(), as far as no factor undoes it. The
  // fidelity is about exp(-lost) if the norm is 1, because errors of different passes are nearly independent.
  [[nodiscard]] double lost() const noexcept { return lost_; }
  // The sum of squares of the decoded numbers after the last pass; negative: unknown.
  [[nodiscard]] double squares() const noexcept { return squares_; }
  void forget_squares() noexcept { squares_ = -1; }
  // For new amplitudes.
  void reset(double scale = first_scale, double lost = 0) noexcept { scale_ = scale, lost_ = lost, squares_ = -1; }
  void copy_from(const EncodedAmplitudes& other);
  // A part of a state that is stored elsewhere: the same codec and scale on other memory, and nothing lost.
  [[nodiscard]] EncodedAmplitudes on(std::span<std::byte> bytes, int bits) const;
  // Takes over what passes over such parts have lost, and their scales as one.
  void finish_parts(std::span<const EncodedAmplitudes> parts);

  // Decodes numbers without the scale. `first` and the number of amplitudes are multiples of a block.
  void decode(std::uint64_t first, std::span<std::complex<float>> out) const;
  // Encodes numbers without the scale, and replaces them by what they were rounded to.
  RoundingSums encode(std::uint64_t first, std::span<std::complex<float>> values);
  // The sums of all numbers that were encoded in a pass, which decide on the next scale.
  void finish_pass(const RoundingSums& sums);
  // Amplitudes, with the scale, on several threads.
  void read(std::uint64_t first, std::span<std::complex<float>> out, int threads) const;
  // Writes amplitudes, on several threads, and replaces them. The caller passes the sums of all to finish_pass().
  RoundingSums write(std::uint64_t first, std::span<std::complex<float>> values, int threads);

 private:
  [[nodiscard]] std::byte* at(std::uint64_t first) const;

  Codec codec_ = Codec::q8;
  int bits_ = 0;
  std::span<std::byte> bytes_;
  double scale_ = first_scale;
  double lost_ = 0;
  double squares_ = -1;
};

// The rows of a tile in encoded amplitudes, for one thread.
class EncodedRows {
 public:
  explicit EncodedRows(EncodedAmplitudes& amplitudes) : amplitudes_(&amplitudes), buffer_(std::size_t{1} << 11) {}

  // As Kernels::gather and Kernels::scatter, with offsets from `base`.
  void load(const Kernels<float>& kernels, std::uint64_t base, const std::uint64_t* offsets, const TileShape& shape,
            float* tile);
  void store(const Kernels<float>& kernels, std::uint64_t base, const std::uint64_t* offsets, const TileShape& shape,
             const float* tile, float scale);
  // The sums since the last call.
  RoundingSums take_sums();

 private:
  template <typename Body>
  void for_pieces(const TileShape& shape, const Body& body);

  EncodedAmplitudes* amplitudes_;
  std::vector<std::complex<float>> buffer_;
  std::vector<std::uint64_t> places_;  // of rows in the buffer
  RoundingSums sums_;
};

}  // namespace onehop::quantum
