#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "base/result.h"

namespace stoker {

class Pool;

/// A half-open range of work items.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

/// One thread's view of a `Pool::run`. Valid only inside it.
class Worker {
 public:
  int index() const { return index_; }
  int count() const { return count_; }

  /// Returns when all workers of this run have called it. Spins shortly, then sleeps.
  /// What a worker wrote before is visible to all after.
  void barrier();

  /// This worker's part of `n` items: contiguous, sizes differ by at most one, in units of `unit` items.
  Range share(int64_t n, int64_t unit = 1) const;

  /// Cuts `n` items into chunks of `chunk` and calls `f(Range)` for one at a time, whoever is free taking the next,
  /// until none is left. Every worker of the run calls it with the same numbers; a barrier() must follow before the
  /// next one.
  template <class F>
  void each(int64_t n, int64_t chunk, F&& f) {
    const int64_t n_chunks = (n + chunk - 1) / chunk;
    // The first chunk of each is fixed (no shared counter for work that divides evenly), the others go to whoever asks.
    for (int64_t c = index_; c < n_chunks; c = claim()) f(Range{c * chunk, n < (c + 1) * chunk ? n : (c + 1) * chunk});
  }

 private:
  friend class Pool;
  Worker(Pool& pool, int index, int count) : pool_(pool), index_(index), count_(count) {}
  int64_t claim();
  Pool& pool_;
  int index_;
  int count_;
  int64_t n_claimed_ = 0;  ///< Used when alone: the pool's counter may belong to an outer run then.
};

/// A fixed set of threads that a forward pass enters once, at its outermost boundary.
/// Every pool thread runs with the IEEE default floating-point mode (no flush to zero), set on entry, the caller's too
/// for the length of the run.
class Pool {
 public:
  struct Options {
    int n_threads = 1;  ///< The caller of `run` is one of them.
    /// Each worker stays on one processor, in cpu_order; the thread that calls `create` counts as worker 0.
    bool pin = false;
  };
  /// kInvalidArgument: fewer than 1 or more than 1024 threads. kIo: the system refuses a thread.
  static Result<std::unique_ptr<Pool>> create(Options options);
  virtual ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int size() const;

  /// Calls `f(Worker&)` on every worker at once and returns when all have finished; the caller is worker 0.
  /// One run at a time: others wait their turn. Called from inside a run of the same pool, f runs inline as the only
  /// worker (also when another pool's run lies between). `f` must not throw.
  template <class F>
  void run(F&& f) {
    run_erased([](void* context, Worker& worker) { (*static_cast<std::remove_reference_t<F>*>(context))(worker); }, &f);
  }

  /// How often `run` was entered from outside.
  uint64_t entries() const;

 protected:
  explicit Pool(int n_threads);

 private:
  friend class Worker;
  void run_erased(void (*call)(void*, Worker&), void* context);
  Status start_threads(bool pin);
  void work(int index, int cpu);
  struct State;
  std::unique_ptr<State> state_;
};

/// The processors that this process may use: its affinity mask, capped by the cgroup's CPU quota (rounded down, at
/// least 1), both as they were when first asked for.
int usable_cpus();

}  // namespace stoker
