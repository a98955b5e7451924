#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "gguf/file.h"
#include "gguf/source.h"
#include "gguf/split.h"

namespace stoker::gguf {

/// Puts a File together: from one source, or from all shards of a split model.
class Reader {
 public:
  /// One file that is not split.
  static Result<File> open_single(const std::string& path, File::Options options);
  static Result<File> parse_single(std::span<const std::byte> bytes, std::string name, File::Options options);
  /// `path` is the one that was asked for; all shards named like it are opened before the first is read.
  static Result<File> open_split(const std::string& path, const ShardName& name, File::Options options);

 private:
  static Result<File> read(const Source& source, File::Options options);
  static Status append_shard(File& all, File shard, const std::string& path);
  static Status finish_split(File& all);
};

}  // namespace stoker::gguf
