#include "base/buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace stoker {
namespace {

constexpr uint64_t kHuge = 2u << 20;

uintptr_t address(const Buffer& buffer) { return reinterpret_cast<uintptr_t>(buffer.data()); }

TEST(Buffer, IsZeroedWritableAndOfTheWantedSize) {
  Ledger ledger;
  for (uint64_t bytes : {uint64_t{1}, uint64_t{4096}, kHuge - 1, kHuge, kHuge + 1, 3 * kHuge + 12345}) {
    Result<Buffer> buffer = Buffer::allocate(ledger, "test", bytes);
    ASSERT_TRUE(buffer) << bytes;
    EXPECT_EQ(buffer->size(), bytes);
    EXPECT_TRUE(
        std::all_of(buffer->bytes().begin(), buffer->bytes().end(), [](std::byte b) { return b == std::byte{0}; }));
    std::fill(buffer->bytes().begin(), buffer->bytes().end(), std::byte{0xaa});
    EXPECT_EQ(buffer->as<uint8_t>()[bytes - 1], 0xaa);
  }
  EXPECT_EQ(ledger.used(), 0u);
}

TEST(Buffer, LargeOnesAreAlignedAndTheRoundingIsCharged) {
  Ledger ledger;
  std::vector<Buffer> held;
  uint64_t charged = 0;
  for (uint64_t bytes : {kHuge, kHuge + 1, 5 * kHuge - 1}) {
    held.push_back(std::move(Buffer::allocate(ledger, "weights", bytes)).value());
    EXPECT_EQ(address(held.back()) % kHuge, 0u);
    charged += (bytes + kHuge - 1) / kHuge * (kHuge + 4096);  // with a page table for each 2 MiB
    EXPECT_EQ(ledger.used(), charged);
  }
  held.clear();
  EXPECT_EQ(ledger.used(), 0u);
}

TEST(Buffer, TheMostThatARoomTakes) {
  for (uint64_t room : {uint64_t{0}, uint64_t{4095}, uint64_t{4096}, kHuge - 1, kHuge, kHuge + 4096, 2 * kHuge + 4096,
                        2 * kHuge + 8192, 1000 * kHuge}) {
    const uint64_t most = Buffer::most_within(room);
    EXPECT_LE(Buffer::charged(most), room) << room;
    EXPECT_GT(Buffer::charged(most + 1), room) << room;
  }
}

TEST(Buffer, SmallOnesAreChargedInPages) {
  Ledger ledger;
  Result<Buffer> buffer = Buffer::allocate(ledger, "small", 1);
  EXPECT_GE(ledger.used(), 4096u);
  EXPECT_LE(ledger.used(), 65536u);
}

TEST(Buffer, ZeroBytesAreAnEmptyBuffer) {
  Ledger ledger(1);
  Result<Buffer> buffer = Buffer::allocate(ledger, "none", 0);
  ASSERT_TRUE(buffer);
  EXPECT_EQ(buffer->size(), 0u);
  EXPECT_TRUE(ledger.lines().empty());
}

TEST(Buffer, TheLedgerRefuses) {
  Ledger ledger(kHuge);
  const Result<Buffer> buffer = Buffer::allocate(ledger, "kv", kHuge + 1);  // rounded to twice the limit
  ASSERT_FALSE(buffer);
  EXPECT_EQ(buffer.error().code, ErrorCode::kOutOfMemory);
  EXPECT_NE(buffer.error().message.find("kv wants 4 MiB"), std::string::npos) << buffer.error().message;
  EXPECT_EQ(ledger.used(), 0u);
}

TEST(Buffer, TheSystemRefuses) {
  Ledger ledger;
  // More than the address space of a process has.
  for (uint64_t bytes : {uint64_t{1} << 57, std::numeric_limits<uint64_t>::max() - 5, uint64_t{1} << 63}) {
    const Result<Buffer> buffer = Buffer::allocate(ledger, "experts", bytes);
    ASSERT_FALSE(buffer);
    EXPECT_EQ(buffer.error().code, ErrorCode::kOutOfMemory);
    EXPECT_EQ(buffer.error().message.find("experts: "), 0u) << buffer.error().message;
    EXPECT_EQ(ledger.used(), 0u);
  }
}

TEST(Buffer, MovesCarryMemoryAndCharge) {
  Ledger ledger;
  Buffer a = std::move(Buffer::allocate(ledger, "a", 100)).value();
  a.data()[0] = std::byte{7};
  Buffer b = std::move(a);
  EXPECT_EQ(a.data(), nullptr);  // NOLINT(bugprone-use-after-move): that is the point
  EXPECT_EQ(a.size(), 0u);
  EXPECT_EQ(b.data()[0], std::byte{7});
  b = std::move(Buffer::allocate(ledger, "b", 100)).value();  // the first is given back
  EXPECT_EQ(ledger.lines()[0].bytes, 0u);
  EXPECT_GT(ledger.lines()[1].bytes, 0u);
  b.reset();
  EXPECT_EQ(ledger.used(), 0u);
}

}  // namespace
}  // namespace stoker
