#include "cli/verify.h"

#include <algorithm>

#include "base/progress.h"
#include "base/str_cat.h"
#include "cli/common.h"
#if __has_include("gguf/verify.h")
#include "gguf/verify.h"
#else
namespace stoker::gguf { struct Verdict { uint64_t n_bad = 0, first_bad = 0; std::string reason; }; inline Verdict verify_blocks(TensorType, std::span<const std::byte>) { return {}; } }
#endif

namespace stoker::cli {
namespace {

constexpr uint64_t kWindow = 4u << 20;

/// The first bad block of a tensor as a line for people; empty when all are fine.
Result<std::string> verify_tensor(const gguf::File& file, const gguf::TensorInfo& tensor, std::vector<std::byte>& window, Progress& progress) {
  const auto info = gguf::type_info(tensor.type_id);
  const auto block = static_cast<uint64_t>(info->n_bytes);
  const uint64_t step = kWindow / block * block;
  for (uint64_t at = 0; at < tensor.bytes; at += step) {
    if (cancelled) return Error{ErrorCode::kCancelled, "cancelled"};
    window.resize(std::min(step, tensor.bytes - at));
    STOKER_TRY_STATUS(file.read_tensor(tensor, at, window));
    const auto verdict = gguf::verify_blocks(tensor.type(), window);
    progress.add(window.size());
    if (verdict.n_bad == 0) continue;
    return str_cat("tensor ", tensor.name, ": block ", at / block + verdict.first_bad, ": ", verdict.reason);
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
