#include "base/buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <optional>

#include "base/checked.h"
#include "base/memory_limit.h"
#include "base/str_cat.h"
#include "base/system_error.h"

namespace stoker {
namespace {

/// `size` bytes whose address is a multiple of `align`, both multiples of the page size; null: the system refuses.
std::byte* map_aligned(uint64_t size, uint64_t align, uint64_t page) {
  const uint64_t slack = align > page ? align - page : 0;
  void* start = mmap(nullptr, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(start);
  const uint64_t head =
      round_up<uint64_t>(reinterpret_cast<uintptr_t>(begin), align) - reinterpret_cast<uintptr_t>(begin);
  if (head > 0) munmap(begin, head);
  if (head < slack) munmap(begin + head + size, slack - head);
  return begin + head;
}

}  // namespace

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  reset();
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  base_ = std::exchange(other.base_, nullptr);
  mapped_ = std::exchange(other.mapped_, 0);
  charge_ = std::move(other.charge_);
  return *this;
}

void Buffer::reset() {
  // Unmapped before the charge goes back: the ledger must never promise memory that is still held.
  if (base_ != nullptr) munmap(base_, mapped_);
  base_ = nullptr;
  data_ = nullptr;
  size_ = mapped_ = 0;
  charge_.release();
}

uint64_t Buffer::charged(uint64_t bytes) {
  constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (bytes < kHugePage) return checked_round_up<uint64_t>(bytes, page).value_or(kNever);
  const uint64_t mapped = checked_round_up<uint64_t>(bytes, kHugePage).value_or(kNever);
  return checked_add(mapped, mapped / kHugePage * kPageTable).value_or(kNever);
}

uint64_t Buffer::most_within(uint64_t room) {
  const uint64_t huge = room / (kHugePage + kPageTable) * kHugePage;
  if (huge > 0) return huge;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return room >= kHugePage ? kHugePage - 1 : room / page * page;
}

Result<Buffer> Buffer::allocate(Ledger& ledger, const std::string& name, uint64_t bytes) {
  Buffer buffer;
  if (bytes == 0) return buffer;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t unit = bytes >= kHugePage ? kHugePage : page;
  const std::optional<uint64_t> mapped = checked_round_up<uint64_t>(bytes, unit);
  if (!mapped || *mapped > std::numeric_limits<int64_t>::max() - kHugePage) {
    return Error{ErrorCode::kOutOfMemory, str_cat(name, ": ", bytes, " bytes are more than can be addressed")};
  }
  STOKER_TRY(buffer.charge_, ledger.charge(name, charged(bytes)));
  std::byte* data = map_aligned(*mapped, unit, page);
  if (data == nullptr) {
    return Error{ErrorCode::kOutOfMemory,
                 str_cat(name, ": the system refuses ", format_bytes(*mapped), ": ", system_reason(errno))};
  }
  if (unit == kHugePage) madvise(data, *mapped, MADV_HUGEPAGE);  // A wish: without huge pages it is only slower.
  buffer.data_ = data;
  buffer.base_ = data;
  buffer.size_ = bytes;
  buffer.mapped_ = *mapped;
  return buffer;
}

}  // namespace stoker
