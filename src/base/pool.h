#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "base/memory_nodes.h"
#include "base/range.h"
#include "base/result.h"

namespace stoker {

class Pool;

/// One thread's view of a `Pool::run`. Valid only inside it.
class Worker {
 public:
  int index() const { return index_; }
  int count() const { return count_; }

  /// Returns when all workers of this run have called it. Spins shortly, then sleeps.
  /// What a worker wrote before is visible to all after.
  void barrier();

  /// This worker's part of `n` items: contiguous, sizes differ by at most one, in units of `unit` items.
  Range share(int64_t n, int64_t unit = 1) const { return share_of(n, unit, index_, count_); }

  /// Cuts `n` items into chunks of `chunk` and calls `f(Range)` for one at a time, whoever is free taking the next,
  /// until none is left. Every worker of the run calls it with the same numbers; a barrier() must follow before the
  /// next one.
  template <class F>
  void each(int64_t n, int64_t chunk, F&& f) {
    // The first chunk of each is fixed (no shared counter for work that divides evenly), the others go to whoever asks.
    for (int64_t c = index_; c * chunk < n; c = claim()) f(chunk_of(n, chunk, c));
  }

  /// The part of `n` items, rows of a matrix say, that is this worker's memory node's, and always the same: what lies
  /// there is what is read from there. All of them where the pool is of one node.
  Range near(int64_t n) const { return split_ ? split_->part(n, node_) : Range{0, n}; }
  /// This worker's memory node, by its index in Pool::split, and how many workers are of it.
  int node() const { return node_; }
  int near_count() const { return near_count_; }
  /// As `each`, among the workers of this memory node, who all call it with the same numbers; other nodes have others.
  template <class F>
  void each_near(int64_t n, int64_t chunk, F&& f) {
    for (int64_t c = near_index_; c * chunk < n; c = claim_near()) f(chunk_of(n, chunk, c));
  }
  /// The same for reading in long strides: each worker has a run of consecutive chunks that it takes in order; once
  /// through, it takes chunks from the ends of others' runs. `f(chunk, run)`: what it reads on in unless others help
  /// it; of another's run the chunk alone.
  template <class F>
  void each_in_runs(int64_t n, int64_t chunk, F&& f) {
    chunk = std::max(chunk, n / (near_count_ * kMostChunks) + 1);
    for (int i = 0; i < near_count_; ++i) {
      const int of = (near_index_ + i) % near_count_;
      const Range run = share_of(n, chunk, of, near_count_);
      const int64_t n_chunks = (run.size() + chunk - 1) / chunk;
      for (int64_t c = take(of, n_chunks); c >= 0; c = take(of, n_chunks)) {
        const Range part = chunk_of(run.size(), chunk, c), items{run.begin + part.begin, run.begin + part.end};
        f(items, i == 0 ? run : items);
      }
    }
  }

 private:
  friend class Pool;
  Worker(Pool& pool, int index, int count) : pool_(pool), index_(index), count_(count) {}
  static Range chunk_of(int64_t n, int64_t chunk, int64_t c) {
    return {c * chunk, n < (c + 1) * chunk ? n : (c + 1) * chunk};
  }
  static constexpr int64_t kMostChunks = 65535;  ///< Of a run.
  static Range share_of(int64_t n, int64_t unit, int index, int count);
  int64_t claim();
  int64_t claim_near();
  int64_t take(int of, int64_t n_chunks);
  Pool& pool_;
  int index_;
  int count_;
  int64_t n_claimed_ = 0;             ///< Used when alone: the pool's counter may belong to an outer run then.
  const NodeSplit* split_ = nullptr;  ///< Null: one node, or alone.
  int node_ = 0, near_index_ = index_, near_count_ = count_;
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
    /// Of which there are two and more, workers are spread over them and each stays on its node's processors, the
    /// thread that calls `create` among them.
    std::vector<MemoryNode> nodes{};
  };
  /// kInvalidArgument: fewer than 1 or more than 1024 threads. kIo: the system refuses a thread.
  static Result<std::unique_ptr<Pool>> create(Options options);
  virtual ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int size() const;
  /// How workers are divided among memory nodes; one node where none were given.
  const NodeSplit& split() const;

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
  Pool(int n_threads, std::span<const MemoryNode> nodes);

 private:
  friend class Worker;
  void run_erased(void (*call)(void*, Worker&), void* context);
  Status start_threads(bool pin);
  void work(int index, const std::vector<int>& cpus);
  Worker make_worker(int index);
  struct State;
  std::unique_ptr<State> state_;
};

/// The processors that this process may use: its affinity mask, capped by the cgroup's CPU quota (rounded down, at
/// least 1), both as they were when first asked for.
int usable_cpus();

}  // namespace stoker
