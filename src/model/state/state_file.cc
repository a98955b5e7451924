#include "model/state/state_file.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/checked.h"
#include "base/str_cat.h"
#include "base/xxh3.h"

namespace stoker::model {
namespace {

constexpr char kMagic[8] = {'S', 't', 'o', 'k', 'e', 'r', 'S', 'q'};
constexpr uint32_t kVersion = 1;
constexpr size_t kNameBytes = 64;

/// The first bytes of the file. Behind it lie the tokens, the pages, the state of fixed size and the checksum of these
/// two.
struct Header {
  char magic[8];
  uint32_t version;
  uint32_t kv_type;
  uint64_t identity;
  uint64_t layout;
  int64_t page_bytes;
  int64_t state_bytes;
  int64_t n_tokens;
  int64_t length;
  char name[kNameBytes];
  uint64_t checksum;  ///< Of all before it, and of the tokens.
};
static_assert(sizeof(Header) == 136 && std::is_trivially_copyable_v<Header>);

using Checksum = uint64_t;

int64_t pages_of(int64_t length) { return (length + kernels::kTilePositions - 1) / kernels::kTilePositions; }

std::span<const std::byte> bytes_of(const Header& header) { return std::as_bytes(std::span(&header, 1)); }

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

uint64_t checksum_of(const Header& header, std::span<const int32_t> tokens) {
  Xxh3 hash;
  hash.add(bytes_of(header).first(offsetof(Header, checksum)));
  hash.add(std::as_bytes(tokens));
  return hash.value();
}

/// Where everything lies in a page and in a state slot.
uint64_t digest_of(const KvLayout& layout) {
  Xxh3 hash;
  const auto add = [&](int64_t number) { hash.add(std::as_bytes(std::span(&number, 1))); };
  for (const std::vector<KvLayout::Layer>* layers : {&layout.layers, &layout.index_keys}) {
    add(static_cast<int64_t>(layers->size()));
    for (const KvLayout::Layer& l : *layers) {
      for (const int64_t number :
           {static_cast<int64_t>(l.kind), l.n_heads, l.offset, l.k_tile_bytes, l.v_tile_bytes, l.ratio, l.window_offset,
            l.n_window_tiles, l.window_tile_bytes, l.pool_offset, l.conv_offset, l.state_offset}) {
        add(number);
      }
    }
  }
  return hash.value();
}

/// Of the whole file; nothing where no file can have it.
std::optional<uint64_t> file_bytes(const Header& header) {
  const auto state = checked_mul<int64_t>(pages_of(header.length), header.page_bytes);
  const auto tokens = checked_mul<int64_t>(header.n_tokens, sizeof(int32_t));
  if (!state || !tokens) return std::nullopt;
  int64_t sum = sizeof(Header) + sizeof(Checksum);
  for (const int64_t part : {*state, *tokens, header.length > 0 ? header.state_bytes : 0}) {
    const auto more = checked_add<int64_t>(sum, part);
    if (!more) return std::nullopt;
    sum = *more;
  }
  return static_cast<uint64_t>(sum);
}

/// Calls `part` with the pages of `length` positions, then with what is of fixed size, if there is any.
template <class Byte, class Part>
Status each_part(const Sequence& sequence, int64_t length, Byte* state, Part part) {
  const KvLayout& layout = sequence.pool().layout();
  const auto size = [](int64_t bytes) { return static_cast<size_t>(bytes); };
  for (int64_t i = 0; i < pages_of(length); ++i) {
    STOKER_TRY_STATUS(part(std::span<Byte>(sequence.tile(i), size(layout.page_bytes))));
  }
  if (state && length > 0) STOKER_TRY_STATUS(part(std::span<Byte>(state, size(layout.state_bytes))));
  return Ok{};
}

Header header_of(const KvLayout& layout, std::span<const int32_t> tokens, int64_t length, const StateOwner& owner) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kVersion;
  header.kv_type = static_cast<uint32_t>(layout.type);
  header.identity = owner.identity;
  header.layout = digest_of(layout);
  header.page_bytes = layout.page_bytes;
  header.state_bytes = layout.state_bytes;
  header.n_tokens = static_cast<int64_t>(tokens.size());
  header.length = length;
  std::copy_n(owner.name.data(), std::min(owner.name.size(), kNameBytes), header.name);
  header.checksum = checksum_of(header, tokens);
  return header;
}

/// Whether this is the state of this model in this memory.
Status check_owner(const Header& header, const KvLayout& layout, const StateOwner& owner) {
  const auto bad = [](std::string message) { return Error{ErrorCode::kInvalidArgument, std::move(message)}; };
  if (header.identity != owner.identity) {
    const std::string_view name(header.name, strnlen(header.name, kNameBytes));
    return bad(str_cat("is the state of another model, ", quoted(name), ", not of ", quoted(owner.name),
                       " with the options of this run"));
  }
  if (header.kv_type != static_cast<uint32_t>(layout.type)) {
    const bool known = header.kv_type < kernels::kKvTypes;
    return bad(str_cat("has keys and values in ",
                       known ? kv_type_name(static_cast<kernels::KvType>(header.kv_type)) : "an unknown type",
                       ", this run in ", kv_type_name(layout.type), " (--kv-type)"));
  }
  if (header.layout != digest_of(layout) || header.page_bytes != layout.page_bytes ||
      header.state_bytes != layout.state_bytes) {
    return bad("has another layout of the state, which another version of stoker wrote");
  }
  return Ok{};
}

Status check_start(const Header& header, uint64_t file_size) {
  const auto corrupt = [](std::string message) { return Error{ErrorCode::kCorrupt, std::move(message)}; };
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) return corrupt("is no saved state");
  if (header.version != kVersion) {
    return Error{ErrorCode::kUnsupported,
                 str_cat("is a saved state of version ", header.version, ", this version reads ", kVersion)};
  }
  const auto most_tokens = static_cast<int64_t>(file_size / sizeof(int32_t));
  if (header.length < 0 || header.length >= header.n_tokens || header.n_tokens > most_tokens || header.page_bytes < 0 ||
      header.state_bytes < 0) {
    return corrupt(str_cat("is damaged: ", header.length, " positions of ", header.n_tokens, " tokens"));
  }
  const auto wanted = file_bytes(header);
  if (!wanted || *wanted != file_size) {
    return corrupt(str_cat("is damaged: it has ", file_size, " bytes, wanted ",
                           wanted ? str_cat(*wanted) : std::string("more than there are")));
  }
  return Ok{};
}

}  // namespace

std::string_view kv_type_name(kernels::KvType type) {
  static constexpr std::string_view kNames[kernels::kKvTypes] = {"f16", "bf16", "f32", "q8_0"};
  return kNames[static_cast<size_t>(type)];
}

Status write_state(const Sequence& sequence, std::span<const int32_t> tokens, const StateOwner& owner,
                   OutputFile& file) {
  const KvLayout& layout = sequence.pool().layout();
  if (layout.shared) return Error{ErrorCode::kUnsupported, "the model keeps nothing of a sequence"};
  STOKER_CHECK(sequence.length() < static_cast<int64_t>(tokens.size()));
  const Header header = header_of(layout, tokens, sequence.length(), owner);
  STOKER_TRY_STATUS(file.reserve(*file_bytes(header)));
  STOKER_TRY_STATUS(file.write(as_text(bytes_of(header))));
  STOKER_TRY_STATUS(file.write(as_text(std::as_bytes(tokens))));
  Xxh3 hash;
  STOKER_TRY_STATUS(each_part(sequence, sequence.length(), sequence.state(), [&](std::span<const std::byte> bytes) {
    hash.add(bytes);
    return file.write(as_text(bytes));
  }));
  const Checksum checksum = hash.value();
  return file.write(as_text(std::as_bytes(std::span(&checksum, 1))));
}

Result<StateFile> StateFile::open(const std::string& path, const KvLayout& layout, const StateOwner& owner) {
  STOKER_TRY(File opened, File::open(path));
  StateFile out(std::move(opened));
  const auto named = [&](Error error) { return Error{error.code, str_cat(path, " ", error.message)}; };
  const auto corrupt = [&](std::string message) { return named({ErrorCode::kCorrupt, std::move(message)}); };
  Header header{};
  if (out.file_.size() < sizeof header) return corrupt("is no saved state: it is too short");
  STOKER_TRY_STATUS(out.file_.read_at(0, std::as_writable_bytes(std::span(&header, 1))));
  if (Status status = check_start(header, out.file_.size()); !status) return named(std::move(status).error());
  out.tokens_.resize(static_cast<size_t>(header.n_tokens));  // no more than the file has bytes
  STOKER_TRY_STATUS(out.file_.read_at(sizeof header, std::as_writable_bytes(std::span(out.tokens_))));
  if (checksum_of(header, out.tokens_) != header.checksum) return corrupt("is damaged: its checksum is another");
  if (Status status = check_owner(header, layout, owner); !status) return named(std::move(status).error());
  for (const int32_t token : out.tokens_) {
    if (token >= 0 && token < owner.n_vocab) continue;
    return corrupt(str_cat("is damaged: token ", token, " is outside the vocabulary of ", owner.n_vocab));
  }
  out.length_ = header.length;
  return out;
}

Status StateFile::read_state(Sequence& sequence) const {
  uint64_t at = sizeof(Header) + tokens_.size() * sizeof(int32_t);
  Xxh3 hash;
  const auto read = [&](std::span<std::byte> bytes) -> Status {
    STOKER_TRY_STATUS(file_.read_at(at, bytes));
    hash.add(bytes);
    at += bytes.size();
    return Ok{};
  };
  STOKER_TRY_STATUS(each_part(sequence, length_, sequence.next_state(), read));
  Checksum checksum = 0;
  STOKER_TRY_STATUS(file_.read_at(at, std::as_writable_bytes(std::span(&checksum, 1))));
  if (checksum == hash.value()) return Ok{};
  return Error{ErrorCode::kCorrupt, str_cat(file_.path(), " is damaged: the checksum of its state is another")};
}

Result<Sequence> StateFile::restore(KvPool& pool, int64_t positions) const {
  Sequence sequence(pool, positions);
  if (length_ == 0) return sequence;
  STOKER_TRY_STATUS(sequence.reserve(length_));
  STOKER_TRY_STATUS(read_state(sequence));
  sequence.advance(length_);
  return sequence;
}

}  // namespace stoker::model
