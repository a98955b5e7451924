#include "gguf/value.h"

#include <array>

namespace stoker::gguf {

std::string_view value_type_name(ValueType type) {
  static constexpr std::array<std::string_view, 13> kNames = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                              "bool", "string", "array", "u64", "i64", "f64"};
  const auto id = static_cast<size_t>(type);
  return id < kNames.size() ? kNames[id] : "?";
}

}  // namespace stoker::gguf
