#include "engine.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <thread>

#include "onehop/error.h"

namespace onehop::bench {
namespace {

using quantum::LocalKind;
using quantum::LocalOperation;
using Complex = std::complex<double>;
using Random = std::mt19937_64;

const double pi = std::acos(-1.0);

std::uint64_t bit_of(int bit) { return std::uint64_t{1} << bit; }

LocalOperation hadamard(int bit) {
  const double h = std::sqrt(0.5);
  return {.kind = LocalKind::matrix, .bits = {bit}, .values = {h, h, h, -h}};
}

LocalOperation controlled_phase(int a, int b, double angle) {
  return {.kind = LocalKind::diagonal,
          .bits = {a},
          .control_mask = bit_of(b),
          .control_values = bit_of(b),
          .values = {1, std::polar(1.0, angle)}};
}

LocalOperation rotation(std::uint64_t x, std::uint64_t z, double angle) {
  return {.kind = LocalKind::pauli_rotation, .x_mask = x, .z_mask = z, .angle = angle};
}

std::vector<Complex> haar(Random& random, std::size_t size) {
  std::normal_distribution<double> normal;
  std::vector<Complex> m(size * size);
  for (auto& x : m) x = {normal(random), normal(random)};
  for (std::size_t r = 0; r < size; ++r) {
    for (std::size_t before = 0; before < r; ++before) {
      Complex dot = 0;
      for (std::size_t c = 0; c < size; ++c) dot += std::conj(m[before * size + c]) * m[r * size + c];
      for (std::size_t c = 0; c < size; ++c) m[r * size + c] -= dot * m[before * size + c];
    }
    double norm = 0;
    for (std::size_t c = 0; c < size; ++c) norm += std::norm(m[r * size + c]);
    for (std::size_t c = 0; c < size; ++c) m[r * size + c] /= std::sqrt(norm);
  }
  return m;
}

std::vector<LocalOperation> qft(int n) {
  std::vector<LocalOperation> ops;
  for (int k = n - 1; k >= 0; --k) {
    ops.push_back(hadamard(k));
    for (int j = k - 1; j >= 0; --j) ops.push_back(controlled_phase(k, j, pi / static_cast<double>(bit_of(k - j))));
  }
  for (int k = 0; k < n / 2; ++k) ops.push_back({.kind = LocalKind::swap, .bits = {k, n - 1 - k}});
  return ops;
}

std::vector<LocalOperation> tfim(int n, const std::vector<std::pair<int, int>>& edges) {
  std::vector<LocalOperation> ops;
  for (int step = 0; step < 10; ++step) {
    for (const auto& [a, b] : edges) ops.push_back(rotation(0, bit_of(a) | bit_of(b), 0.2));
    for (int k = 0; k < n; ++k) ops.push_back(rotation(bit_of(k), 0, 0.14));
  }
  return ops;
}

std::vector<LocalOperation> tfim_1d(int n) {
  std::vector<std::pair<int, int>> edges;
  for (int k = 0; k < n; ++k) edges.emplace_back(k, (k + 1) % n);
  return tfim(n, edges);
}

// Rows of four qubits; open ends.
std::vector<LocalOperation> tfim_2d(int n) {
  std::vector<std::pair<int, int>> edges;
  for (int k = 0; k < n; ++k) {
    if (k % 4 != 3 && k + 1 < n) edges.emplace_back(k, k + 1);
    if (k + 4 < n) edges.emplace_back(k, k + 4);
  }
  return tfim(n, edges);
}

std::vector<LocalOperation> brickwork(int n) {
  Random random(1);
  std::vector<LocalOperation> ops;
  for (int layer = 0; layer < 20; ++layer) {
    for (int k = 0; k < n; ++k) ops.push_back({.kind = LocalKind::matrix, .bits = {k}, .values = haar(random, 2)});
    for (int k = layer % 2; k + 1 < n; k += 2) ops.push_back(controlled_phase(k, k + 1, pi));
  }
  return ops;
}

std::vector<LocalOperation> volume(int n) {
  Random random(2);
  std::vector<int> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::vector<LocalOperation> ops;
  for (int layer = 0; layer < 10; ++layer) {
    std::shuffle(order.begin(), order.end(), random);
    for (std::size_t k = 0; k + 1 < order.size(); k += 2) {
      ops.push_back({.kind = LocalKind::matrix, .bits = {order[k], order[k + 1]}, .values = haar(random, 4)});
    }
  }
  return ops;
}

std::vector<LocalOperation> ghz(int n) {
  std::vector<LocalOperation> ops = {hadamard(0)};
  for (int k = 1; k < n; ++k) {
    ops.push_back({.kind = LocalKind::matrix,
                   .bits = {k},
                   .control_mask = bit_of(k - 1),
                   .control_values = bit_of(k - 1),
                   .values = {0, 1, 1, 0}});
  }
  return ops;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Memory of whole pages, huge ones where the system gives them.
template <typename T>
class Amplitudes {
 public:
  explicit Amplitudes(std::size_t count) : bytes_(count * sizeof(std::complex<T>)) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) throw Error("no memory for " + std::to_string(bytes_) + " bytes of amplitudes");
    madvise(memory_, bytes_, MADV_HUGEPAGE);
  }
  ~Amplitudes() { munmap(memory_, bytes_); }
  Amplitudes(const Amplitudes&) = delete;
  Amplitudes& operator=(const Amplitudes&) = delete;
  [[nodiscard]] std::span<std::complex<T>> span() const {
    return {static_cast<std::complex<T>*>(memory_), bytes_ / sizeof(std::complex<T>)};
  }

 private:
  std::size_t bytes_;
  void* memory_;
};

// Every amplitude read and written once, by as many threads.
template <typename T>
double one_pass(std::span<std::complex<T>> amplitudes, int threads) {
  const double begin = now();
  std::vector<std::jthread> running;
  const std::size_t share = amplitudes.size() / static_cast<std::size_t>(threads);
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([=] {
      T* const numbers = reinterpret_cast<T*>(amplitudes.data() + share * static_cast<std::size_t>(t));
      for (std::size_t i = 0; i < 2 * share; ++i) numbers[i] = -numbers[i];
    });
  }
  running.clear();
  return now() - begin;
}

template <typename T>
EngineTimes time_as(const std::vector<LocalOperation>& circuit, int qubits, int threads, int repetitions) {
  const Amplitudes<T> memory(std::size_t{1} << qubits);
  const auto amplitudes = memory.span();
  if (threads == 0) threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  EngineTimes times{.seconds = 1e300, .plan_seconds = 1e300, .passes = 0, .pass_seconds = 1e300};
  for (int r = 0; r < repetitions; ++r) {
    std::fill(amplitudes.begin(), amplitudes.end(), std::complex<T>(0));
    amplitudes[0] = 1;
    times.pass_seconds = std::min(times.pass_seconds, one_pass(amplitudes, threads));
    const double before_plan = now();
    times.passes = quantum::count_passes(qubits, circuit, sizeof(std::complex<T>));
    times.plan_seconds = std::min(times.plan_seconds, now() - before_plan);
    const double begin = now();
    quantum::apply<T>(amplitudes, circuit, {.threads = threads});
    times.seconds = std::min(times.seconds, now() - begin);
  }
  const double norm = quantum::norm_squared<T>(amplitudes);
  if (std::abs(norm - 1) > (sizeof(T) == sizeof(float) ? 1e-3 : 1e-10)) {
    throw Error("the engine lost the norm: " + std::to_string(norm) + " instead of 1");
  }
  return times;
}

}  // namespace

const std::vector<std::string>& engine_circuits() {
  static const std::vector<std::string> names = {"qft", "tfim-1d", "tfim-2d", "brickwork", "volume", "ghz"};
  return names;
}

std::vector<LocalOperation> engine_circuit(const std::string& name, int qubits) {
  if (qubits < 2 || qubits > 40) throw BadInput("qubits: expected 2 to 40, found " + std::to_string(qubits));
  if (name == "qft") return qft(qubits);
  if (name == "tfim-1d") return tfim_1d(qubits);
  if (name == "tfim-2d") return tfim_2d(qubits);
  if (name == "brickwork") return brickwork(qubits);
  if (name == "volume") return volume(qubits);
  if (name == "ghz") return ghz(qubits);
  throw BadInput("expected one of the circuits qft, tfim-1d, tfim-2d, brickwork, volume, ghz, found '" + name + "'");
}

EngineTimes time_engine(const std::string& circuit, int qubits, int bytes_per_amplitude, int threads, int repetitions) {
  if (bytes_per_amplitude != 8 && bytes_per_amplitude != 16) {
    throw BadInput("bytes per amplitude: expected 8 or 16, found " + std::to_string(bytes_per_amplitude));
  }
  const auto operations = engine_circuit(circuit, qubits);
  return bytes_per_amplitude == 8 ? time_as<float>(operations, qubits, threads, repetitions)
                                  : time_as<double>(operations, qubits, threads, repetitions);
}

}  // namespace onehop::bench
