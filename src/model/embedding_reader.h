#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "gguf/tensor_reader.h"

namespace stoker::model {

/// Reads rows of an embedding that is not in memory. Threads: any.
class EmbeddingReader {
 public:
  /// Both must outlive it.
  EmbeddingReader(const gguf::File& file, const gguf::TensorInfo& tensor)
      : reader_(file, BulkReader::Cache::kPast), tensor_(tensor) {}

  uint64_t window_bytes() const { return gguf::TensorReader::window_bytes(row_bytes()); }
  /// The row as f32, the same bits as of a table in memory. `window` is aligned to 4096, of window_bytes.
  /// kIo, kCorrupt: name the tensor.
  Status read(int64_t row, std::span<std::byte> window, std::span<float> out) const;

 private:
  uint64_t row_bytes() const { return tensor_.bytes / static_cast<uint64_t>(tensor_.shape[0]); }
  gguf::TensorReader reader_;
  const gguf::TensorInfo& tensor_;
};

}  // namespace stoker::model
