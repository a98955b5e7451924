#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "gguf/types.h"
#include "gguf/value.h"

namespace stoker::gguf {

/// One tensor of the directory. `shape` is outermost first, the last dimension contiguous: GGUF lists dimensions the
/// other way round, and this is the one place that turns them. Ones at the outer end are dropped, at least one
/// dimension stays: a weight matrix is [n_out, n_in], stacked experts are [n_experts, n_out, n_in].
struct TensorInfo {
  std::string name;
  uint32_t type_id;  ///< As in the file; may be one that this build does not know (see File::Options).
  std::vector<int64_t> shape;
  int shard;        ///< Index into File::shards().
  uint64_t offset;  ///< Of the first byte, from the start of that shard's file.
  uint64_t bytes;   ///< 0 when the type is unknown.

  TensorType type() const { return static_cast<TensorType>(type_id); }
  int64_t n_elements() const;
};

/// A GGUF file, or all shards of a split one, its header read and checked: every tensor lies inside its file, none
/// overlap, all names and keys are unique. Nothing of the tensor data has been read.
/// Threads: read-only after `open`, from any thread.
class File {
 public:
  struct Options {
    bool allow_unknown_types = false;  ///< For `inspect`: keep tensors of unknown type (bytes 0) instead of refusing.
    bool header_only = false;  ///< For `parse`: the bytes are a header alone, and tensors may lie anywhere behind it.
  };
  /// Opens `path`; when it is any shard of a split model (`-00002-of-00005.gguf`), finds and opens all of them.
  /// kNotFound, kIo, kCorrupt, kUnsupported: name the file, the field and the byte position, and what to do.
  static Result<File> open(const std::string& path, Options options);
  static Result<File> open(const std::string& path) { return open(path, Options{}); }

  /// The same for one file held in memory, which must outlive it; `name` is what messages call it.
  static Result<File> parse(std::span<const std::byte> bytes, std::string name, Options options);
  static Result<File> parse(std::span<const std::byte> bytes, std::string name) {
    return parse(bytes, std::move(name), Options{});
  }

  /// As given to `open`, for messages.
  const std::string& path() const { return path_; }
  uint32_t version() const { return version_; }
  bool big_endian() const { return big_endian_; }
  const std::vector<stoker::File>& shards() const { return shards_; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const TensorInfo* find_tensor(std::string_view name) const;

  /// Metadata of the first shard, in file order.
  const std::vector<std::pair<std::string, Value>>& metadata() const { return metadata_; }
  const Value* find(std::string_view key) const;
  /// About what metadata and tensor directory take in memory as long as this lives, for the ledger.
  uint64_t header_bytes() const { return header_bytes_; }
  /// Things worth telling that are no reason to refuse (gaps between tensors, trailing bytes ...), a line each.
  const std::vector<std::string>& notes() const { return notes_; }

  // Typed look-ups: nothing when the key is absent; kCorrupt naming the key, its type and the wanted one otherwise.
  // Any integer type reads as an integer (range checked), any float or integer as a float, 0/1 integers as bool.
  Result<std::optional<int64_t>> integer(std::string_view key) const;
  Result<std::optional<double>> real(std::string_view key) const;
  Result<std::optional<bool>> boolean(std::string_view key) const;
  Result<std::optional<std::string>> string(std::string_view key) const;
  /// The arrays stay owned by the file.
  Result<const Array*> array(std::string_view key) const;

  /// Reads bytes [begin, begin + out.size()) of a tensor. kIo, kCorrupt: name the tensor.
  Status read_tensor(const TensorInfo& tensor, uint64_t begin, std::span<std::byte> out) const;
  /// kInvalidArgument: not inside the tensor.
  static Status check_range(const TensorInfo& tensor, uint64_t begin, uint64_t bytes);
  /// What went wrong with a part of a tensor, with the tensor's name.
  static Error tensor_error(const Error& error, const TensorInfo& tensor, uint64_t begin, uint64_t bytes);

 private:
  File() = default;
  friend class Reader;
  std::string path_;
  uint32_t version_ = 0;
  bool big_endian_ = false;
  std::vector<stoker::File> shards_;
  std::vector<TensorInfo> tensors_;
  std::vector<std::pair<std::string, Value>> metadata_;
  std::vector<uint32_t> tensor_index_, key_index_;  // positions in the vectors above, in the order of names
  std::vector<std::string> notes_;
  uint64_t header_bytes_ = 0;
  std::span<const std::byte> memory_;  // instead of shards_ for a file that was parsed from memory
};

}  // namespace stoker::gguf
