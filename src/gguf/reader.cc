#include "gguf/reader.h"

#include <utility>

#include "base/checked.h"
#include "base/str_cat.h"
#include "gguf/header.h"
#include "gguf/sorted_index.h"

namespace stoker::gguf {
namespace {

/// kUnsupported: a shard of a split model, whose other shards cannot be found by its name.
Status refuse_split(const File& file) {
  STOKER_TRY(const std::optional<int64_t> count, file.integer("split.count"));
  STOKER_TRY(const std::optional<int64_t> no, file.integer("split.no"));
  if (!count || *count == 0 || *count == 1) return Ok{};
  const auto n_shards = checked_cast<uint16_t>(*count);
  if (!n_shards)
    return Error{ErrorCode::kCorrupt, str_cat(file.path(), ": key 'split.count' is ", *count, ", wanted 0 to 65535")};
  if (!no || *no < 0 || *no >= *count)
    return Error{ErrorCode::kCorrupt, str_cat(file.path(), ": key 'split.no' is ", no ? str_cat(*no) : "missing",
                                              ", wanted 0 to ", *count - 1)};
  return Error{ErrorCode::kUnsupported,
               str_cat(file.path(), ": is shard ", *no + 1, " of ", *count,
                       " of a split model and is not named like one: keep all shards in one folder with their original "
                       "names (",
                       shard_path("...", 1, *n_shards), ")")};
}

/// kCorrupt: the shard's own number and count are not those of its name.
Status check_split_keys(const File& shard, const ShardName& name) {
  STOKER_TRY(const std::optional<int64_t> count, shard.integer("split.count"));
  STOKER_TRY(const std::optional<int64_t> no, shard.integer("split.no"));
  const std::string where =
      str_cat(shard.path(), ": is named as shard ", name.number, " of ", name.count, ", but its key ");
  if (!count || !no)
    return Error{ErrorCode::kCorrupt, str_cat(where, count ? "'split.no'" : "'split.count'",
                                              " is missing: rename it if it is a whole model")};
  if (*count != name.count)
    return Error{ErrorCode::kCorrupt, str_cat(where, "'split.count' is ", *count, ": it belongs to another set")};
  if (*no != name.number - 1)
    return Error{ErrorCode::kCorrupt,
                 str_cat(where, "'split.no' is ", *no, ", wanted ", name.number - 1, ": the shards were renamed")};
  return Ok{};
}

Result<std::vector<stoker::File>> open_all(const std::string& path, const ShardName& name) {
  // The one that was asked for first: its own error is the one to tell.
  if (auto asked = stoker::File::open(path); !asked) return std::move(asked).error();
  std::vector<stoker::File> files;
  for (int number = 1; number <= name.count; ++number) {
    auto file = stoker::File::open(shard_path(name.prefix, number, name.count));
    if (!file)
      return Error{file.error().code, str_cat(path, ": shard ", number, " of ", name.count, " cannot be opened: ",
                                              file.error().message, ": put all shards into one folder")};
    files.push_back(std::move(*file));
  }
  return files;
}

}  // namespace

Result<File> Reader::read(const Source& source, File::Options options) {
  STOKER_TRY(Header header, read_header(source, options));
  File out;
  out.path_ = source.name();
  out.version_ = header.version;
  out.big_endian_ = header.big_endian;
  out.metadata_ = std::move(header.metadata);
  out.tensors_ = std::move(header.directory.tensors);
  out.notes_ = std::move(header.directory.notes);
  out.header_bytes_ = header.kept_bytes;
  out.key_index_ =
      sorted_index(out.metadata_.size(), [&](size_t i) -> std::string_view { return out.metadata_[i].first; });
  out.tensor_index_ =
      sorted_index(out.tensors_.size(), [&](size_t i) -> std::string_view { return out.tensors_[i].name; });
  return out;
}

Result<File> Reader::open_single(const std::string& path, File::Options options) {
  STOKER_TRY(stoker::File file, stoker::File::open(path));
  STOKER_TRY(File out, read(Source(file), options));
  STOKER_TRY_STATUS(refuse_split(out));
  out.shards_.push_back(std::move(file));
  return out;
}

Result<File> Reader::parse_single(std::span<const std::byte> bytes, std::string name, File::Options options) {
  STOKER_TRY(File out, read(Source(bytes, name), options));
  STOKER_TRY_STATUS(refuse_split(out));
  out.memory_ = bytes;
  return out;
}

Status Reader::append_shard(File& all, File shard, const std::string& path) {
  if (shard.big_endian_ != all.big_endian_)
    return Error{ErrorCode::kCorrupt, str_cat(path, ": is ", shard.big_endian_ ? "big" : "little",
                                              "-endian, the first shard is not: they do not belong together")};
  STOKER_TRY(const std::optional<int64_t> total, all.integer("split.tensors.count"));
  STOKER_TRY(const std::optional<int64_t> own_total, shard.integer("split.tensors.count"));
  if (total && own_total && *total != *own_total)
    return Error{ErrorCode::kCorrupt, str_cat(path, ": key 'split.tensors.count' is ", *own_total,
                                              ", in the first shard ", *total, ": they do not belong together")};
  all.header_bytes_ += shard.header_bytes_;
  const int index = static_cast<int>(all.shards_.size());
  for (TensorInfo& tensor : shard.tensors_) {
    tensor.shard = index;
    all.tensors_.push_back(std::move(tensor));
  }
  for (const std::string& note : shard.notes_) all.notes_.push_back(str_cat(path, ": ", note));
  return Ok{};
}

/// Checks what only the union can show.
Status Reader::finish_split(File& all) {
  STOKER_TRY(const std::optional<int64_t> total, all.integer("split.tensors.count"));
  if (!total) return Error{ErrorCode::kCorrupt, str_cat(all.path_, ": key 'split.tensors.count' is missing")};
  if (!std::cmp_equal(*total, all.tensors_.size()))
    return Error{ErrorCode::kCorrupt, str_cat(all.path_, ": key 'split.tensors.count' is ", *total, ", the ",
                                              all.shards_.size(), " shards have ", all.tensors_.size(), " tensors")};
  const auto name_of = [&](size_t i) -> std::string_view { return all.tensors_[i].name; };
  all.tensor_index_ = sorted_index(all.tensors_.size(), name_of);
  if (const auto twice = first_duplicate(all.tensor_index_, name_of))
    return Error{ErrorCode::kCorrupt,
                 str_cat(all.shards_[static_cast<size_t>(all.tensors_[*twice].shard)].path(), ": tensor ",
                         quoted(name_of(*twice)), " stands in an earlier shard already")};
  return Ok{};
}

Result<File> Reader::open_split(const std::string& path, const ShardName& name, File::Options options) {
  STOKER_TRY(std::vector<stoker::File> files, open_all(path, name));
  std::optional<File> all;
  for (int number = 1; number <= name.count; ++number) {
    stoker::File& file = files[static_cast<size_t>(number - 1)];
    STOKER_TRY(File shard, read(Source(file), options));
    STOKER_TRY_STATUS(check_split_keys(shard, {name.prefix, number, name.count}));
    if (!all) {
      all = std::move(shard);
    } else {
      STOKER_TRY_STATUS(append_shard(*all, std::move(shard), file.path()));
    }
    all->shards_.push_back(std::move(file));
  }
  STOKER_TRY_STATUS(finish_split(*all));
  return std::move(*all);
}

}  // namespace stoker::gguf
