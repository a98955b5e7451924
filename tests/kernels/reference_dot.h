// The summation order of docs/kernels.md written a second time, from the bytes as they lie in a file: nothing of
// src/quant or src/kernels is used but the plain structs of args.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gguf/types.h"
#include "kernels/args.h"

namespace stoker::testing {

/// Sizes of one block in a file, and which of its bytes are floats.
struct FileType {
  gguf::TensorType type;
  const char* name;
  int weights;
  int bytes;
  int scale_at;    ///< f16 d (MXFP4: the exponent byte).
  int minimum_at;  ///< f16 m or dmin; -1: none.
};
inline constexpr FileType kFileTypes[] = {
    {gguf::TensorType::kF32, "F32", 1, 4, -1, -1},       {gguf::TensorType::kF16, "F16", 1, 2, -1, -1},
    {gguf::TensorType::kBF16, "BF16", 1, 2, -1, -1},     {gguf::TensorType::kQ4_0, "Q4_0", 32, 18, 0, -1},
    {gguf::TensorType::kQ4_1, "Q4_1", 32, 20, 0, 2},     {gguf::TensorType::kQ5_0, "Q5_0", 32, 22, 0, -1},
    {gguf::TensorType::kQ5_1, "Q5_1", 32, 24, 0, 2},     {gguf::TensorType::kQ8_0, "Q8_0", 32, 34, 0, -1},
    {gguf::TensorType::kIQ4NL, "IQ4_NL", 32, 18, 0, -1}, {gguf::TensorType::kMXFP4, "MXFP4", 32, 17, 0, -1},
    {gguf::TensorType::kQ2K, "Q2_K", 256, 84, 80, 82},   {gguf::TensorType::kQ3K, "Q3_K", 256, 110, 108, -1},
    {gguf::TensorType::kQ4K, "Q4_K", 256, 144, 0, 2},    {gguf::TensorType::kQ5K, "Q5_K", 256, 176, 0, 2},
    {gguf::TensorType::kQ6K, "Q6_K", 256, 210, 208, -1}, {gguf::TensorType::kIQ4XS, "IQ4_XS", 256, 136, 0, -1},
};
constexpr int64_t row_bytes(const FileType& type, int64_t k) { return k / type.weights * type.bytes; }

/// The product of one row of the file with row `x_row` of the activations.
float reference_dot(const FileType& type, const std::byte* row, const kernels::Activations& x, int64_t x_row);

}  // namespace stoker::testing
