#pragma once

#include <cstdint>
#include <utility>

#include "base/check.h"
#include "gguf/value.h"

namespace stoker::gguf {

/// Calls `f` with a zero of the C++ type that a number of `type` has in the file; bools are u8 there.
template <class F>
decltype(auto) visit_number(ValueType type, F&& f) {
  switch (type) {
    case ValueType::kU8:
    case ValueType::kBool:
      return std::forward<F>(f)(uint8_t{});
    case ValueType::kI8:
      return std::forward<F>(f)(int8_t{});
    case ValueType::kU16:
      return std::forward<F>(f)(uint16_t{});
    case ValueType::kI16:
      return std::forward<F>(f)(int16_t{});
    case ValueType::kU32:
      return std::forward<F>(f)(uint32_t{});
    case ValueType::kI32:
      return std::forward<F>(f)(int32_t{});
    case ValueType::kU64:
      return std::forward<F>(f)(uint64_t{});
    case ValueType::kI64:
      return std::forward<F>(f)(int64_t{});
    case ValueType::kF32:
      return std::forward<F>(f)(float{});
    case ValueType::kF64:
      return std::forward<F>(f)(double{});
    case ValueType::kString:
    case ValueType::kArray:
      break;
  }
  check_failed("a number type", __FILE__, __LINE__);
}

}  // namespace stoker::gguf
