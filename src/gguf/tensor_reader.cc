#include "gguf/tensor_reader.h"

#include <algorithm>

namespace stoker::gguf {

TensorReader::TensorReader(const File& file, BulkReader::Cache cache) : file_(file) {
  if (file.big_endian()) return;
  shards_.reserve(file.shards().size());
  for (const stoker::File& shard : file.shards()) shards_.emplace_back(shard, cache);
}

bool TensorReader::direct() const {
  return !shards_.empty() &&
         std::all_of(shards_.begin(), shards_.end(), [](const BulkReader& shard) { return shard.direct(); });
}

Result<std::span<std::byte>> TensorReader::read(const TensorInfo& tensor, uint64_t begin, uint64_t bytes,
                                                std::span<std::byte> window) const {
  if (shards_.empty()) {
    STOKER_TRY_STATUS(file_.read_tensor(tensor, begin, window.first(bytes)));
    return window.first(bytes);
  }
  STOKER_TRY_STATUS(file_.check_range(tensor, begin, bytes));
  auto read = shards_[static_cast<size_t>(tensor.shard)].read(tensor.offset + begin, bytes, window);
  if (!read) return File::tensor_error(read.error(), tensor, begin, bytes);
  return read;
}

std::optional<BulkReader::Direct> TensorReader::direct_read(const TensorInfo& tensor, uint64_t begin,
                                                            uint64_t bytes) const {
  if (shards_.empty() || !file_.check_range(tensor, begin, bytes)) return std::nullopt;
  return shards_[static_cast<size_t>(tensor.shard)].direct_read(tensor.offset + begin, bytes);
}

}  // namespace stoker::gguf
