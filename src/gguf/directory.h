#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/cursor.h"
#include "gguf/file.h"

namespace stoker::gguf {

/// Where the directory says the tensors are, and the end of the last one.
struct Directory {
  std::vector<TensorInfo> tensors;  ///< Offsets from the start of the file.
  uint64_t data_end = 0;
  std::vector<std::string> notes;
};

/// Reads `count` tensor infos and checks them and their places in the file. kCorrupt, kUnsupported: name the tensor.
Result<Directory> read_directory(Cursor& cursor, uint64_t count, uint64_t alignment, File::Options options);

}  // namespace stoker::gguf
