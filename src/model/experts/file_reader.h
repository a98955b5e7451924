#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "gguf/tensor_reader.h"
#include "model/experts/index.h"
#include "model/experts/reader.h"

namespace stoker::model {

/// Reads experts from their files: what the page cache holds from there, the rest directly where the file system can.
class FileReader final : public ExpertReader {
 public:
  /// At most `depth` reads at once.
  FileReader(const gguf::File& file, BulkReader::Cache cache, ReaderKind kind, int depth);
  Result<std::span<std::byte>> read(const ExpertRead& read) override {
    return reader_.read(*read.tensor, read.begin, read.bytes, read.window);
  }
  std::string mode() const override;
  ReadQueue* queue() override { return ring_.get(); }

 private:
  gguf::TensorReader reader_;
  std::unique_ptr<ReadQueue> ring_;
  std::string why_no_ring_;
};

/// What to read next; the window is given. False: there is no more.
using NextRead = std::function<bool(ExpertRead& read)>;
/// Reads all that `next` gives, as the store does: at most `depth` at once. `windows`: so many of window_bytes. Ends
/// when something cannot be read. The bytes read.
uint64_t read_all(ExpertReader& reader, int depth, std::span<std::byte> windows, uint64_t window_bytes,
                  const NextRead& next);

/// The most reads in flight, of 4 and 8, with three quarters of the best rate or more: a sixth of a second of reading
/// at random places of the experts. 4, unmeasured, where all of them together are too small to tell.
int measure_lanes(ExpertReader& reader, const ExpertIndex& index, uint64_t piece_bytes, std::span<std::byte> windows);

}  // namespace stoker::model
