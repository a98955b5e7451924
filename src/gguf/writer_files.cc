// The files that a Writer makes: one, or several shards.

#include <algorithm>
#include <numeric>

#include "base/file.h"
#include "base/str_cat.h"
#include "gguf/split.h"
#include "gguf/writer.h"

namespace stoker::gguf {
namespace {

using Metadata = std::vector<std::pair<std::string, Value>>;

void add_missing(Metadata& metadata, std::string_view key, ValueType type, int64_t value) {
  const bool present =
      std::any_of(metadata.begin(), metadata.end(), [&](const auto& entry) { return entry.first == key; });
  if (!present) metadata.emplace_back(key, Value{type, value});
}

}  // namespace

Writer::Metadata Writer::complete(Metadata metadata, std::span<const Tensor> tensors) const {
  if (options_.alignment != Options{}.alignment)
    add_missing(metadata, "general.alignment", ValueType::kU32, options_.alignment);
  if (std::any_of(tensors.begin(), tensors.end(), [](const Tensor& t) { return type_info(t.type)->n_weights > 1; }))
    add_missing(metadata, "general.quantization_version", ValueType::kU32, 2);
  return metadata;
}

Result<std::string> Writer::header() const {
  if (options_.big_endian)
    return Error{ErrorCode::kUnsupported, "tensors that follow a header are written in little-endian order only"};
  return serialise_header(complete(metadata_, tensors_), tensors_);
}

Result<std::string> Writer::bytes() const { return serialise(complete(metadata_, tensors_), tensors_); }

Status Writer::write(const std::string& path) const {
  STOKER_TRY(const std::string out, bytes());
  return write_file(path, out);
}

Status Writer::write_split(const std::string& prefix, std::span<const size_t> shard_sizes) const {
  const size_t total = std::accumulate(shard_sizes.begin(), shard_sizes.end(), size_t{0});
  if (shard_sizes.empty() || shard_sizes.size() > 65535 || total != tensors_.size())
    return Error{ErrorCode::kInvalidArgument, str_cat(prefix, ": ", shard_sizes.size(), " shards with ", total,
                                                      " tensors, there are ", tensors_.size())};
  const int n_shards = static_cast<int>(shard_sizes.size());
  std::span<const Tensor> rest = tensors_;
  for (int no = 0; no < n_shards; ++no) {
    const std::span<const Tensor> own = rest.first(shard_sizes[static_cast<size_t>(no)]);
    rest = rest.subspan(own.size());
    // The first shard's metadata describe the whole model, so they are completed with all tensors in view.
    Metadata metadata = no == 0 ? complete(metadata_, tensors_) : complete({}, {});
    metadata.emplace_back("split.no", Value{ValueType::kU16, int64_t{no}});
    metadata.emplace_back("split.count", Value{ValueType::kU16, int64_t{n_shards}});
    metadata.emplace_back("split.tensors.count", Value{ValueType::kI32, static_cast<int64_t>(tensors_.size())});
    STOKER_TRY(const std::string out, serialise(metadata, own));
    STOKER_TRY_STATUS(write_file(shard_path(prefix, no + 1, n_shards), out));
  }
  return Ok{};
}

}  // namespace stoker::gguf
