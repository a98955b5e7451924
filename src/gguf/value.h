#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace stoker::gguf {

/// Types of metadata values; the numbers are those in the file.
enum class ValueType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};
std::string_view value_type_name(ValueType type);

/// An array of metadata. Numbers are widened: integers and bools to `ints`, floats to `floats`; strings stay bytes.
struct Array {
  ValueType element;
  std::vector<int64_t> ints;  ///< A u64 above 2^63 - 1 is refused when the file is read.
  std::vector<double> floats;
  std::vector<std::string> strings;
  size_t size() const { return ints.size() + floats.size() + strings.size(); }
};

/// One metadata value. Strings are bytes: not necessarily UTF-8, NUL possible.
struct Value {
  ValueType type;
  std::variant<int64_t, double, bool, std::string, Array> data;
};

}  // namespace stoker::gguf
