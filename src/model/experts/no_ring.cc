#include "model/experts/ring.h"

namespace stoker::model {

Result<std::unique_ptr<ReadQueue>> open_ring(const gguf::TensorReader& /*reader*/, int /*depth*/) {
  return Error{ErrorCode::kUnsupported, "io_uring: built without liburing"};
}

}  // namespace stoker::model
