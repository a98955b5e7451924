#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "gguf/file.h"

namespace stoker::cli {

/// Reads all tensors of known type and adds a line to `problems` for each that holds values which cannot be.
/// Returns how many were read. Shows progress. kIo, kCorrupt: name the tensor; kCancelled.
Result<int64_t> verify_tensors(const gguf::File& file, std::vector<std::string>& problems);

}  // namespace stoker::cli
