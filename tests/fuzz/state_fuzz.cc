// Whatever the bytes, reading them as a saved state ends in an error that leaves nothing in the pool, or in a sequence
// that holds what the file says.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/str_cat.h"
#include "base/xxh3.h"
#include "model/state/state_file.h"

namespace {

using namespace stoker;
using model::KvLayout;
using model::KvPool;
using model::StateFile;

// Where the fields of the header lie: docs/state-file.md.
constexpr size_t kOwnerAt = 16, kOwnerBytes = 16, kTokensAt = 48, kChecksumAt = 128, kHeaderBytes = 136, kSumBytes = 8;
constexpr int64_t kPages = 3, kStates = 2;

const model::StateOwner kOwner{.identity = 0, .name = "seed", .n_vocab = 500};

/// The seeds (tools/fuzz_corpus.py) are for this one.
KvLayout layout_of_seeds() {
  KvLayout layout;
  layout.page_bytes = 192;
  layout.state_bytes = 128;
  layout.layers = {{.kind = model::StateKind::kHeads, .n_heads = 1, .k_tile_bytes = 96, .v_tile_bytes = 96},
                   {.kind = model::StateKind::kRecurrent, .state_offset = 64}};
  return layout;
}

/// A file in memory, under a path.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("state", 0)) { STOKER_CHECK(fd_ >= 0); }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return str_cat("/proc/self/fd/", fd_); }
  void put(std::span<const std::byte> bytes) {
    STOKER_CHECK(::ftruncate(fd_, 0) == 0);
    STOKER_CHECK(::pwrite(fd_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  }

 private:
  int fd_;
};

/// A file as Stoker writes it: one token, no positions.
std::vector<std::byte> own_file(Ledger& ledger) {
  char folder[] = "/tmp/stoker-state-XXXXXX";
  STOKER_CHECK(::mkdtemp(folder) != nullptr);
  const std::string path = str_cat(folder, "/state");
  auto pool = KvPool::create(ledger, layout_of_seeds(), {.n_pages = kPages, .n_states = kStates});
  auto out = OutputFile::create(path);
  STOKER_CHECK(pool && out);
  const int32_t token = 1;
  STOKER_CHECK(model::write_state(model::Sequence(**pool), {&token, 1}, kOwner, *out) && out->commit());
  auto file = File::open(path);
  STOKER_CHECK(file);
  std::vector<std::byte> bytes(file->size());
  STOKER_CHECK(file->read_at(0, bytes));
  ::unlink(path.c_str());
  ::rmdir(folder);
  return bytes;
}

uint64_t sum_of(std::span<const std::byte> first, std::span<const std::byte> second) {
  Xxh3 hash;
  hash.add(first);
  hash.add(second);
  return hash.value();
}

/// Makes this the file of the right model, undamaged as far as checksums can tell: mutations never hit these by chance.
void forge(std::span<std::byte> bytes, std::span<const std::byte> owner) {
  if (bytes.size() < kHeaderBytes + kSumBytes) return;
  std::copy(owner.begin(), owner.end(), bytes.begin() + kOwnerAt);
  uint64_t n_tokens = 0;
  std::memcpy(&n_tokens, &bytes[kTokensAt], sizeof n_tokens);
  const auto body = bytes.subspan(kHeaderBytes, bytes.size() - kHeaderBytes - kSumBytes);
  if (n_tokens > body.size() / sizeof(int32_t)) return;
  const auto tokens = body.first(n_tokens * sizeof(int32_t));
  const uint64_t first = sum_of(bytes.first(kChecksumAt), tokens), second = sum_of(body.subspan(tokens.size()), {});
  std::memcpy(&bytes[kChecksumAt], &first, sizeof first);
  std::memcpy(&bytes[bytes.size() - kSumBytes], &second, sizeof second);
}

/// Identity and layout of a file of Stoker's own, which forging must leave as it is.
std::vector<std::byte> owner_fields(Ledger& ledger) {
  const std::vector<std::byte> own = own_file(ledger);
  const std::vector<std::byte> fields(own.begin() + kOwnerAt, own.begin() + kOwnerAt + kOwnerBytes);
  std::vector<std::byte> forged = own;
  forge(forged, fields);
  STOKER_CHECK(forged == own);
  return fields;
}

/// Holds the sequence what the file says?
void compare(const StateFile& file, const model::Sequence& sequence, std::span<const std::byte> bytes) {
  const KvLayout& layout = sequence.pool().layout();
  size_t at = kHeaderBytes + file.tokens().size() * sizeof(int32_t);
  const auto same = [&](const std::byte* memory, int64_t n) {
    STOKER_CHECK(std::memcmp(memory, &bytes[at], static_cast<size_t>(n)) == 0);
    at += static_cast<size_t>(n);
  };
  STOKER_CHECK(sequence.length() == file.length());
  for (int64_t tile = 0; tile * 64 < file.length(); ++tile) same(sequence.tile(tile), layout.page_bytes);
  if (file.length() > 0) same(sequence.state(), layout.state_bytes);
  STOKER_CHECK(at + kSumBytes == bytes.size());
}

void read(MemoryFile& disk, KvPool& pool, std::span<const std::byte> bytes) {
  disk.put(bytes);
  const auto file = StateFile::open(disk.path(), pool.layout(), kOwner);
  if (!file) return;
  STOKER_CHECK(file->length() < static_cast<int64_t>(file->tokens().size()));
  for (const int32_t token : file->tokens()) STOKER_CHECK(token >= 0 && token < kOwner.n_vocab);
  {
    const auto sequence = file->restore(pool, file->length() + 1);
    if (sequence) compare(*file, *sequence, bytes);
  }
  STOKER_CHECK(pool.n_free() == pool.n_pages() && pool.states()->n_free() == pool.states()->n());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Ledger ledger;
  static const std::vector<std::byte> owner = owner_fields(ledger);
  static const auto pool = KvPool::create(ledger, layout_of_seeds(), {.n_pages = kPages, .n_states = kStates});
  static MemoryFile disk;
  const auto bytes = std::as_bytes(std::span(data, size));
  read(disk, **pool, bytes);
  std::vector<std::byte> forged(bytes.begin(), bytes.end());
  forge(forged, owner);
  read(disk, **pool, forged);
  return 0;
}
