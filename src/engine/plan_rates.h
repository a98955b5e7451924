// What a machine does in a second, and how long a forward pass takes there: the arithmetic of `stoker plan`, explained
// in docs/plan.md.
#pragma once

#include <cstdint>
#include <vector>

#include "base/cpu.h"
#include "engine/bench_traffic.h"
#include "gguf/types.h"

namespace stoker::engine {

/// Per second, with all threads of a run.
struct MachineRates {
  /// How fast a product of so many rows goes through its weights.
  struct Kernel {
    gguf::TensorType type{};
    int64_t rows = 0;
    double bytes = 0;
  };
  double read = 0;                     ///< Bytes from memory, at best,
  double steady_read = 0;              ///< and as a rule.
  double int8_ops = 0, float_ops = 0;  ///< Of the instructions alone.
  std::vector<Kernel> kernels{};       ///< By type, rows ascending; a type that is missing is reckoned from the above.
  double disk = 0;                     ///< Bytes read directly, in pieces as experts are.

  /// What a machine without any figures is taken for.
  static MachineRates guess(Isa isa, int threads);
  /// Of a product with so many rows, per byte of its weights.
  double seconds_per_byte(gguf::TensorType type, double rows) const;

 private:
  double kernel_seconds_per_byte(gguf::TensorType type, double rows) const;
};

enum class Bound { kDisk, kMemory, kArithmetic };
const char* bound_name(Bound bound);

/// Where the time of a forward pass goes.
struct PassTime {
  double dense = 0;       ///< Products but those of experts.
  double experts = 0;     ///< Products of experts.
  double attention = 0;   ///< Keys and values.
  double steps = 0;       ///< The threads waiting for each other at the end of each step.
  double disk = 0;        ///< Reading experts.
  double total = 0;       ///< With what works at the same time counted once.
  double memory = 0;      ///< At least: its bytes at the best rate of memory,
  double arithmetic = 0;  ///< its operations at that of the instructions.

  /// What no implementation could go below.
  double least() const;
  Bound bound() const;
};

/// What comes from the disk.
struct PassReads {
  struct Experts {
    double n = 0;         ///< How many.
    double bytes = 0;     ///< Of the file.
    double foreseen = 0;  ///< The share that is asked for while the layer before is at work.
  };
  std::vector<Experts> experts{};  ///< Of each part of the call that has any; empty: all are in memory.
  bool spare = false;     ///< There are processors besides those that multiply: reading takes none of their time.
  double unit_bytes = 0;  ///< Of parts of layers and of the output matrix: known in advance, one is always being read,
  double n_units = 0;     ///< in so many pieces.
};
PassTime pass_time(const CallTraffic& traffic, const MachineRates& rates, const PassReads& reads);

}  // namespace stoker::engine
