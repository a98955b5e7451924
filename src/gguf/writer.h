#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "gguf/types.h"
#include "gguf/value.h"

namespace stoker::gguf {

/// Builds a GGUF v3 file: add metadata and tensors in the order wanted, then `write`. What must be known of it by every
/// reader is added when it is written: `general.alignment` if it is not 32, `general.quantization_version` if a type
/// has blocks.
class Writer {
 public:
  struct Options {
    uint32_t version = 3;     ///< Or 2, which lays out the same.
    bool big_endian = false;  ///< Also turns the fields of the tensors' blocks.
    uint32_t alignment = 32;
  };
  /// `general.architecture` becomes the first key; none is written when it is empty.
  explicit Writer(std::string_view architecture) : Writer(architecture, Options{}) {}
  Writer(std::string_view architecture, Options options);

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
  /// For files larger than memory: a tensor without its bytes. Same errors.
  Status declare_tensor(std::string name, TensorType type, std::vector<int64_t> shape);
  /// What the file begins with. The tensors' bytes follow in order, each padded with zeros to the alignment.
  /// Same errors as `bytes`; kUnsupported: in big-endian order.
  Result<std::string> header() const;

  /// The whole file as bytes (for tests), and written to `path` through a temporary name.
  /// kInvalidArgument: a key twice, a value that does not fit its type, a tensor that was only declared.
  /// kUnsupported: a type that has no big-endian form.
  Result<std::string> bytes() const;
  Status write(const std::string& path) const;

  /// Writes PREFIX-00001-of-0000N.gguf and so on: `shard_sizes` says how many tensors go into which (0 is legal), the
  /// metadata go into the first. kInvalidArgument: the sizes do not add up to the tensors.
  Status write_split(const std::string& prefix, std::span<const size_t> shard_sizes) const;

 private:
  struct Tensor {
    std::string name;
    TensorType type;
    std::vector<int64_t> shape;
    uint64_t n_bytes;
    std::vector<std::byte> bytes;  ///< None when it was only declared.
  };
  using Metadata = std::vector<std::pair<std::string, Value>>;
  Metadata complete(Metadata metadata, std::span<const Tensor> tensors) const;
  Result<std::string> serialise_header(const Metadata& metadata, std::span<const Tensor> tensors) const;
  Result<std::string> serialise(const Metadata& metadata, std::span<const Tensor> tensors) const;

  Options options_;
  Metadata metadata_;
  std::vector<Tensor> tensors_;
  std::set<std::string, std::less<>> tensor_names_;
};

}  // namespace stoker::gguf
