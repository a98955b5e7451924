#include "base/toucher.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "base/buffer.h"
#include "base/cpu_order.h"

namespace stoker {
namespace {

constexpr size_t kPiece = Buffer::kHugePage;

/// Writes what is there, if that is zero as in all new memory: the owner's writes are never undone. The thread
/// sanitizer would still call it a race.
__attribute__((no_sanitize("thread"))) void touch(std::byte* at) {
  auto* byte = reinterpret_cast<unsigned char*>(at);
  unsigned char zero = 0;
  __atomic_compare_exchange_n(byte, &zero, static_cast<unsigned char>(0), false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

}  // namespace

void touch_pages(std::span<std::byte> bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  for (size_t at = 0; at < bytes.size(); at += page) touch(bytes.data() + at);
}

Toucher::~Toucher() {
  stopping_.store(true, std::memory_order_relaxed);
  wait();
}

void Toucher::start(std::span<std::byte> bytes, int n_threads) {
  bytes_ = bytes;
  threads_.reserve(static_cast<size_t>(n_threads));
  for (int i = 0; i < n_threads; ++i) threads_.emplace_back([this] { work(); });
}

void Toucher::wait() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Toucher::work() {
  const sched_param none{};
  sched_setscheduler(0, SCHED_IDLE, &none);
  unpin();
  while (!stopping_.load(std::memory_order_relaxed)) {
    const size_t begin = next_.fetch_add(kPiece, std::memory_order_relaxed);
    if (begin >= bytes_.size()) return;
    touch_pages(bytes_.subspan(begin, std::min(bytes_.size() - begin, kPiece)));
  }
}

}  // namespace stoker
