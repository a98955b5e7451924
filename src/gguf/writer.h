#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/types.h"
#include "gguf/value.h"

namespace stoker::gguf {

/// Builds a GGUF v3 file: add metadata and tensors in the order wanted, then `write`.
class Writer {
 public:
  explicit Writer(std::string_view architecture);

  void add(std::string key, Value value);
  void add_u32(std::string key, uint32_t value);
  void add_f32(std::string key, float value);
  void add_bool(std::string key, bool value);
  void add_string(std::string key, std::string value);
  void add_strings(std::string key, std::vector<std::string> values);
  void add_i32s(std::string key, std::vector<int32_t> values);
  void add_f32s(std::string key, std::vector<float> values);

  /// `shape` outermost first; `bytes` (copied) in the type's file layout, row by row.
  /// kInvalidArgument: sizes do not fit, or a name twice.
  Status add_tensor(std::string name, TensorType type, std::vector<int64_t> shape, std::span<const std::byte> bytes);

  /// The whole file as bytes (for tests), and written to `path` through a temporary name.
  Result<std::string> bytes() const;
  Status write(const std::string& path) const;

 private:
  struct Tensor {
    std::string name;
    TensorType type;
    std::vector<int64_t> shape;
    std::vector<std::byte> bytes;
  };
  std::vector<std::pair<std::string, Value>> metadata_;
  std::vector<Tensor> tensors_;
};

}  // namespace stoker::gguf
