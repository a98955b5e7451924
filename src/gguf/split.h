#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stoker::gguf {

/// The name of one file of a split model: PREFIX-00002-of-00005.gguf is number 2 of 5.
struct ShardName {
  std::string prefix;  ///< With the folder.
  int number;          ///< From 1.
  int count;
};

/// Nothing when `path` is no such name, or has numbers outside 1 to 65535.
std::optional<ShardName> parse_shard_name(std::string_view path);

/// The path of shard `number`, from 1.
std::string shard_path(std::string_view prefix, int number, int count);

}  // namespace stoker::gguf
