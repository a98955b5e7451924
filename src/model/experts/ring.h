#pragma once

#include <memory>

#include "base/result.h"
#include "gguf/tensor_reader.h"
#include "model/experts/reader.h"

namespace stoker::model {

/// Direct reads by io_uring, at most `depth` at once. `reader` must outlive it.
/// kUnsupported: this build has no liburing, the system refuses (containers often do), or reads do not work this way;
/// the message says which.
Result<std::unique_ptr<ReadQueue>> open_ring(const gguf::TensorReader& reader, int depth);

}  // namespace stoker::model
