#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "gguf/types.h"

namespace stoker::gguf {

/// What is wrong with the data of a tensor.
struct Fault {
  uint64_t block;      ///< The first bad one, counted from the beginning of the bytes that were looked at.
  uint64_t n_blocks;   ///< How many are bad.
  std::string reason;  ///< Of the first: "d is NaN".
};

/// Looks at every block for what no encoder writes and no decoder can use: elements and scales that are NaN or
/// infinite, exponents that stand for NaN. Nothing when all is well, which it always is for types without such fields.
/// `bytes` are whole blocks in host order, as File::read_tensor gives them; a tensor may come in pieces.
std::optional<Fault> verify_tensor(TensorType type, std::span<const std::byte> bytes);

}  // namespace stoker::gguf
