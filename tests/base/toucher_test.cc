#include "base/toucher.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/buffer.h"

namespace stoker {
namespace {

constexpr size_t kBytes = (9u << 20) + 100;

size_t pages_in_memory(const Buffer& buffer) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> flags((buffer.size() + page - 1) / page);
  EXPECT_EQ(mincore(buffer.data(), buffer.size(), flags.data()), 0);
  return static_cast<size_t>(std::count_if(flags.begin(), flags.end(), [](unsigned char f) { return (f & 1) != 0; }));
}

TEST(Toucher, AllPagesAreThere) {
  for (int n_threads : {1, 3}) {
    Ledger ledger;
    const Buffer buffer = *Buffer::allocate(ledger, "buffer", kBytes);
    EXPECT_EQ(pages_in_memory(buffer), 0u);
    Toucher toucher;
    toucher.start(buffer.bytes(), n_threads);
    toucher.wait();
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    EXPECT_EQ(pages_in_memory(buffer), (kBytes + page - 1) / page);
  }
}

TEST(Toucher, BytesStayAsTheyAre) {
  Ledger ledger;
  const Buffer buffer = *Buffer::allocate(ledger, "buffer", kBytes);
  Toucher toucher;
  toucher.start(buffer.bytes(), 2);
  std::fill(buffer.bytes().begin(), buffer.bytes().end(), std::byte{7});
  toucher.wait();
  EXPECT_EQ(std::count(buffer.bytes().begin(), buffer.bytes().end(), std::byte{7}), static_cast<int64_t>(kBytes));
}

TEST(Toucher, EndsEarly) {
  Ledger ledger;
  const Buffer buffer = *Buffer::allocate(ledger, "buffer", kBytes);
  Toucher toucher;
  toucher.start(buffer.bytes(), 2);
}

}  // namespace
}  // namespace stoker
