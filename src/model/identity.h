#pragma once

#include <cstdint>

#include "base/result.h"
#include "gguf/file.h"
#include "model/model.h"

namespace stoker::model {

/// A number that two models share only if they compute the same: of all metadata that are more than names, of the
/// tensor directory, of the first 4 KiB of each tensor, of overrides, and of what the length of the context decides.
/// Reads some MiB. kIo, kCorrupt: name the tensor.
Result<uint64_t> identity_of(const gguf::File& file, const Model& model);

}  // namespace stoker::model
