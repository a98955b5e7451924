#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/ledger.h"
#include "gguf/types.h"
#include "kernels/table.h"

namespace stoker::engine {

/// One matrix product: all weights of a matrix larger than the caches times some rows. Rates are per second and of all
/// threads.
struct KernelRow {
  gguf::TensorType type{};
  Isa isa = Isa::kScalar;  ///< Where the kernel comes from; not always the table's.
  int64_t rows = 0;
  double weight_bytes = 0;
  double operations = 0;  ///< A multiplication and an addition are two.
  double share = 0;       ///< Of what binds it: memory or the peak of its instruction, whichever is nearer.
};

/// The bounds, measured before the kernels, in pieces like theirs.
struct KernelBounds {
  double read = 0, int8_ops = 0, float_ops = 0;
};

struct KernelOptions {
  const kernels::Table* table = nullptr;
  std::vector<gguf::TensorType> types{};  ///< Empty: all that have kernels.
  int threads = 1;
  bool quick = false;  ///< Too short to be exact: for tests.
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(const KernelBounds&)> on_bounds{};
  std::function<void(const KernelRow&)> on_row{};
};

/// The types that `table` has kernels for.
std::vector<gguf::TensorType> kernel_types(const kernels::Table& table);

/// Times every kernel with 1 to 512 rows of 4096 values, in short pieces of the threads' processor time, of which
/// the median counts: a busy machine shows less. Rows are handed over as they come. kCancelled.
/// kOutOfMemory: the matrix, charged to `ledger`. kIo: the system refuses a thread.
Status bench_kernels(Ledger& ledger, const KernelOptions& options);

}  // namespace stoker::engine
