// Every type that this build knows, as a list for templates and by number for everyone else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "gguf/types.h"
#include "quant/decode.h"
#include "quant/iq4.h"
#include "quant/mxfp4.h"
#include "quant/plain.h"
#include "quant/q2_k.h"
#include "quant/q3_k.h"
#include "quant/q4.h"
#include "quant/q4_k.h"
#include "quant/q5.h"
#include "quant/q5_k.h"
#include "quant/q6_k.h"
#include "quant/q8_0.h"

namespace stoker::quant {

template <class... Types>
struct TypeList {
  /// Calls f.template operator()<Type>() for each, in order, until one returns true; whether one did.
  template <class F>
  static bool any(F&& f) {
    return (f.template operator()<Types>() || ...);
  }
};

using PlainQuants = TypeList<F32, F16, BF16, F64, I8, I16, I32>;
using BlockQuants = TypeList<Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, IQ4NL, MXFP4>;
using SuperQuants = TypeList<Q2K, Q3K, Q4K, Q5K, Q6K, IQ4XS>;
using AllQuants = TypeList<F32, F16, BF16, F64, I8, I16, I32, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, IQ4NL, MXFP4, Q2K, Q3K, Q4K,
                           Q5K, Q6K, IQ4XS>;

/// Whether dequantize_row and quantize_row know `type`.
bool is_supported(gguf::TensorType type);

/// Decodes `n` weights of `bytes` into `out`.
/// kUnsupported: no such type yet, named. kInvalidArgument: n ends inside a block, or bytes has another size.
Status dequantize_row(gguf::TensorType type, std::span<const std::byte> bytes, int64_t n, float* out);

/// Encodes x into `out`. Finite input gives finite weights, however large or small: what no scale can hold saturates.
/// Same errors; besides kInvalidArgument: x holds infinity or NaN, which only F32, F16, BF16 and F64 can store.
Status quantize_row(gguf::TensorType type, std::span<const float> x, std::span<std::byte> out);

}  // namespace stoker::quant
