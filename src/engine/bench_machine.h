#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/cpu.h"
#include "base/ledger.h"
#include "base/result.h"

namespace stoker::engine {

/// What a machine gives at best: the bounds that benchmarks are quoted against. Rates are per second.
struct MachineFigures {
  struct Read {
    int threads = 0;
    double bytes = 0;   ///< The best of many slices of a buffer larger than any cache.
    double median = 0;  ///< Of the slices.
  };
  struct Peak {
    Isa isa = Isa::kScalar;
    int threads = 0;
    double int8_ops = 0, float_ops = 0;  ///< A multiplication and an addition are two. 0: not known for the set.
  };
  std::vector<Read> reads;
  std::vector<Peak> peaks;

  /// 0 where it was not measured.
  double read_rate(int threads) const;
  double int8_rate(Isa isa, int threads) const;
};

struct MachineOptions {
  std::vector<int> threads{};  ///< Counts to measure; each runs on that many threads, usable processors or not.
  bool quick = false;          ///< Too short to be exact: for tests.
  double read_seconds = 3;     ///< For memory, with each count.
  bool peaks = true;           ///< Arithmetic too.
  const std::atomic<bool>* cancel = nullptr;
  std::function<void()> on_step{};
  /// How often on_step is called.
  uint64_t steps() const;
};

/// Measures memory and arithmetic; takes a few seconds per count of threads. The buffer is charged to `ledger`.
/// kCancelled. kOutOfMemory. kIo: the system refuses a thread.
Result<MachineFigures> measure_machine(Ledger& ledger, const MachineOptions& options);

/// 1, 2, 4 … up to `usable`, which is the last.
std::vector<int> thread_counts(int usable);

}  // namespace stoker::engine
