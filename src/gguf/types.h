#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace stoker::gguf {

/// Element types of tensors; the numbers are those in the file.
enum class TensorType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ8_1 = 9,
  kQ2K = 10,
  kQ3K = 11,
  kQ4K = 12,
  kQ5K = 13,
  kQ6K = 14,
  kQ8K = 15,
  kIQ2XXS = 16,
  kIQ2XS = 17,
  kIQ3XXS = 18,
  kIQ1S = 19,
  kIQ4NL = 20,
  kIQ3S = 21,
  kIQ2S = 22,
  kIQ4XS = 23,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kIQ1M = 29,
  kBF16 = 30,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kMXFP4 = 39,
  kNVFP4 = 40,
  kQ1_0 = 41,
  kQ2_0 = 42,
};

/// How a type is stored: `n_weights` values in `n_bytes` bytes.
struct TypeInfo {
  TensorType type;
  std::string_view name;  ///< As the format spells it: "Q4_K".
  int n_weights;
  int n_bytes;
};

/// Nothing for ids that the format does not define, or has removed.
std::optional<TypeInfo> type_info(uint32_t id);
inline std::optional<TypeInfo> type_info(TensorType type) { return type_info(static_cast<uint32_t>(type)); }
/// The name, also of a removed id; "?" for an id without one.
std::string_view type_name(TensorType type);
/// Whether the format once had this id and has given it up.
bool removed_type(uint32_t id);

}  // namespace stoker::gguf
