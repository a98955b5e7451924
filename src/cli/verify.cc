#include "cli/verify.h"

#include <algorithm>

#include "base/progress.h"
#include "base/str_cat.h"
#include "cli/common.h"
#include "gguf/verify.h"

namespace stoker::cli {
namespace {

constexpr uint64_t kWindow = 4u << 20;

/// The first bad block of a tensor as a line for people; empty when all are fine.
Result<std::string> verify_tensor(const gguf::File& file, const gguf::TensorInfo& tensor,
                                  std::vector<std::byte>& window, Progress& progress) {
  const auto info = gguf::type_info(tensor.type_id);
  const auto block = static_cast<uint64_t>(info->n_bytes);
  const uint64_t step = kWindow / block * block;
  for (uint64_t at = 0; at < tensor.bytes; at += step) {
    if (cancelled) return Error{ErrorCode::kCancelled, "cancelled"};
    window.resize(std::min(step, tensor.bytes - at));
    STOKER_TRY_STATUS(file.read_tensor(tensor, at, window));
    const auto fault = gguf::verify_tensor(tensor.type(), window);
    progress.add(window.size());
    if (fault) return str_cat("tensor ", tensor.name, ": block ", at / block + fault->block, ": ", fault->reason);
  }
  return std::string();
}

}  // namespace

Result<int64_t> verify_tensors(const gguf::File& file, std::vector<std::string>& problems) {
  watch_signals();
  uint64_t total = 0;
  for (const gguf::TensorInfo& tensor : file.tensors()) total += tensor.bytes;
  Progress progress({.label = "verifying", .total = total});
  std::vector<std::byte> window;
  int64_t n = 0;
  for (const gguf::TensorInfo& tensor : file.tensors()) {
    if (!gguf::type_info(tensor.type_id)) continue;
    STOKER_TRY(std::string problem, verify_tensor(file, tensor, window, progress));
    if (!problem.empty()) problems.push_back(std::move(problem));
    ++n;
  }
  return n;
}

}  // namespace stoker::cli
