#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "gguf/tensor_reader.h"
#include "model/experts/index.h"
#include "model/experts/store.h"

namespace stoker::model {

/// Reads experts from their files: what the page cache holds from there, the rest directly where the file system can.
class FileReader final : public ExpertReader {
 public:
  FileReader(const gguf::File& file, BulkReader::Cache cache) : reader_(file, cache) {}
  Result<std::span<std::byte>> read(const gguf::TensorInfo& tensor, uint64_t begin, uint64_t bytes,
                                    std::span<std::byte> window) override {
    return reader_.read(tensor, begin, bytes, window);
  }
  std::string mode() const override { return reader_.direct() ? "direct" : "through the page cache"; }

 private:
  gguf::TensorReader reader_;
};

/// The most reads in flight, of 2, 4 and 8, whose rate is within 10 % of the best: a sixth of a second of reading at
/// random places of the experts. 4, unmeasured, where all of them together are too small to tell.
int measure_lanes(ExpertReader& reader, const ExpertIndex& index, uint64_t piece_bytes, std::span<std::byte> windows);

}  // namespace stoker::model
