#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/bulk_reader.h"
#include "base/result.h"
#include "gguf/file.h"

namespace stoker::gguf {

/// Reads tensors in large pieces, as a load does. `file` must outlive it. Threads: `read` from any thread.
class TensorReader {
 public:
  TensorReader(const File& file, BulkReader::Cache cache);

  static constexpr uint64_t window_bytes(uint64_t bytes) { return BulkReader::window_bytes(bytes); }
  /// Bytes [begin, begin + bytes) of a tensor in host order, somewhere in `window` (aligned to 4096, of window_bytes).
  /// Errors as File::read_tensor.
  Result<std::span<std::byte>> read(const TensorInfo& tensor, uint64_t begin, uint64_t bytes,
                                    std::span<std::byte> window) const;
  /// The direct read of the same bytes (BulkReader::direct_read). Nothing: `read` would go another way, or fail.
  std::optional<BulkReader::Direct> direct_read(const TensorInfo& tensor, uint64_t begin, uint64_t bytes) const;
  /// Whether reads that miss the page cache go to the disk directly, in all shards.
  bool direct() const;

 private:
  const File& file_;
  std::vector<BulkReader> shards_;  // None for a file in memory, or of the other byte order.
};

}  // namespace stoker::gguf
