#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/ledger.h"
#include "base/result.h"

namespace stoker {

/// Zeroed anonymous memory straight from the system, charged to a Ledger, given back when it dies.
/// From 2 MiB on it is 2 MiB aligned, rounded up to that, and asks for huge pages; the rounding is charged, and so is
/// what the kernel's page tables take, huge pages or not.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer() { reset(); }

  /// kOutOfMemory: the ledger or the system refuses; the message has the numbers. `bytes` 0 gives an empty buffer.
  static Result<Buffer> allocate(Ledger& ledger, const std::string& name, uint64_t bytes);
  /// What `allocate` charges for `bytes`; the largest number when that cannot be.
  static uint64_t charged(uint64_t bytes);
  /// The largest size whose charge is at most `room`.
  static uint64_t most_within(uint64_t room);
  static constexpr uint64_t kHugePage = 2u << 20;
  static constexpr uint64_t kPageTable = 4096;  ///< Of each 2 MiB; kept aside for a huge page too.

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  std::span<std::byte> bytes() const { return {data_, size_}; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }
  void reset();

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  void* base_ = nullptr;
  size_t mapped_ = 0;
  Charge charge_;
};

}  // namespace stoker
