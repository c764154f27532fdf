#include "bench/native/bandwidth.h"

#include "bench/native/read_all.h"
#include "src/base/clock.h"
#include "src/base/thread_count.h"

namespace onehop::bench {

struct Bandwidth::Impl {
  Impl(const Group& of, std::int64_t bytes, int threads) : group(of), pool(threads), reader(bytes, pool) {}

  Group group;
  base::ThreadPool pool;
  Reader reader;
};

Bandwidth::Bandwidth(const Group& group, std::int64_t bytes, int threads)
    : impl_(std::make_unique<Impl>(group, bytes, base::thread_count(threads, group))) {}
Bandwidth::~Bandwidth() = default;

double Bandwidth::measure(int times) {
  impl_->reader.read();  // fills the caches, if they hold that much
  impl_->group.barrier();
  const double begin = base::steady_seconds();
  for (int i = 0; i < times; ++i) impl_->reader.read();
  const double seconds = base::steady_seconds() - begin;
  impl_->group.barrier();
  return static_cast<double>(impl_->reader.bytes()) * times / seconds * 1e-9;
}

}  // namespace onehop::bench
