#include "base/bulk_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/str_cat.h"

namespace stoker {
namespace {

/// How far ahead of a read through the page cache the disk is sent: some windows, so that it goes on while they are
/// dealt with. By itself the system reads ahead 128 KiB.
constexpr uint64_t kAhead = 8u << 20;

/// Linux says of other people's files that all of it is in memory.
bool may_ask(const File& file) {
  struct stat info;
  if (fstat(file.fd(), &info) != 0) return false;
  return info.st_uid == geteuid() || geteuid() == 0 || access(file.path().c_str(), W_OK) == 0;
}

}  // namespace

BulkReader::BulkReader(const File& file, Cache cache) : file_(&file), cache_(cache) {
  if (cache_ == Cache::kFill || file.size() == 0) return;
  if (cache_ == Cache::kSpare && may_ask(file)) {
    void* map = mmap(nullptr, file.size(), PROT_READ, MAP_SHARED, file.fd(), 0);
    if (map != MAP_FAILED) map_ = map;
  }
  // The same file even when its name means another one by now.
  direct_fd_ = ::open(str_cat("/proc/self/fd/", file.fd()).c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
}

BulkReader::BulkReader(BulkReader&& other) noexcept
    : file_(other.file_),
      cache_(other.cache_),
      direct_fd_(std::exchange(other.direct_fd_, -1)),
      map_(std::exchange(other.map_, nullptr)) {}

BulkReader::~BulkReader() {
  if (map_ != nullptr) munmap(map_, file_->size());
  if (direct_fd_ >= 0) ::close(direct_fd_);
}

bool BulkReader::cached(uint64_t offset, uint64_t bytes) const {
  if (map_ == nullptr) return false;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  std::array<unsigned char, 1024> in_memory;
  const uint64_t end = offset + bytes, step = in_memory.size() * page;
  for (uint64_t at = offset / page * page; at < end; at += step) {
    const uint64_t n = std::min(step, end - at);
    if (mincore(static_cast<std::byte*>(map_) + at, n, in_memory.data()) != 0) return false;
    const unsigned char* last = in_memory.data() + (n + page - 1) / page;
    if (!std::all_of(std::as_const(in_memory).data(), last, [](unsigned char flags) { return (flags & 1) != 0; }))
      return false;
  }
  return true;
}

/// False: not to be had this way; the buffered read then says what is wrong, if something is.
bool BulkReader::read_direct(uint64_t begin, uint64_t bytes, std::byte* out) const {
  uint64_t done = 0;
  while (done < bytes) {
    // Whole sectors, so that it goes on aligned after a part was read; the file may end inside the last one.
    const uint64_t wanted = round_up<uint64_t>(bytes - done, kAlign);
    const ssize_t n = pread(direct_fd_, out + done, wanted, static_cast<off_t>(begin + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<uint64_t>(n);
    if (done < bytes && done % kAlign != 0) return false;
  }
  return true;
}

/// Whether these bytes are not to come from the page cache, nor to stay there.
bool BulkReader::spares_cache(uint64_t offset, uint64_t bytes) const {
  const bool inside = bytes <= file_->size() && offset <= file_->size() - bytes;
  return cache_ != Cache::kFill && inside && !cached(offset, bytes);
}

std::optional<BulkReader::Direct> BulkReader::direct_read(uint64_t offset, uint64_t bytes) const {
  if (direct_fd_ < 0 || !spares_cache(offset, bytes)) return std::nullopt;
  const uint64_t lead = offset % kAlign;
  return Direct{
      .fd = direct_fd_, .offset = offset - lead, .bytes = round_up<uint64_t>(lead + bytes, kAlign), .lead = lead};
}

Result<std::span<std::byte>> BulkReader::read(uint64_t offset, uint64_t bytes, std::span<std::byte> window) const {
  STOKER_CHECK(window.size() >= window_bytes(bytes));
  const bool spare = spares_cache(offset, bytes);
  const uint64_t lead = offset % kAlign;
  if (spare && direct_fd_ >= 0 && read_direct(offset - lead, lead + bytes, window.data()))
    return window.subspan(lead, bytes);
  if (cache_ == Cache::kFill) file_->want_soon(offset + kAhead, bytes);
  STOKER_TRY_STATUS(file_->read_at(offset, window.first(bytes)));
  if (spare) file_->drop_cache(offset, bytes);
  return window.first(bytes);
}

}  // namespace stoker
