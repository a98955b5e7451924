// The same bytes through the cache and past it, for every alignment; and what is left in the page cache afterwards.
#include "base/bulk_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "base/buffer.h"
#include "tests/base/temp_dir.h"

namespace stoker {
namespace {

using Cache = BulkReader::Cache;

constexpr uint64_t kSize = 1000003;  // Ends inside a sector.

std::string some_bytes() {
  std::string bytes(kSize, '\0');
  for (size_t i = 0; i < kSize; ++i) bytes[i] = static_cast<char>(i * 7 % 251 + i / 4096);
  return bytes;
}

/// Writes the file down to the disk and drops it from the page cache, as far as the file system does that.
void make_cold(const File& file) {
  ::fsync(file.fd());
  posix_fadvise(file.fd(), 0, 0, POSIX_FADV_DONTNEED);
}

size_t pages_in_memory(const File& file) {
  std::vector<unsigned char> pages((file.size() + 4095) / 4096);
  void* map = mmap(nullptr, file.size(), PROT_READ, MAP_SHARED, file.fd(), 0);
  EXPECT_EQ(mincore(map, file.size(), pages.data()), 0);
  munmap(map, file.size());
  return static_cast<size_t>(std::count_if(pages.begin(), pages.end(), [](unsigned char p) { return p & 1; }));
}

class BulkReaderTest : public testing::TestWithParam<Cache> {
 protected:
  test::TempDir dir_;
  const std::string bytes_ = some_bytes();
  Result<File> file_ = File::open(dir_.write("f", bytes_));
  Ledger ledger_;
  Buffer window_ = std::move(Buffer::allocate(ledger_, "window", BulkReader::window_bytes(kSize))).value();
};

TEST_P(BulkReaderTest, AnyRangeHasItsBytes) {
  const BulkReader reader(*file_, GetParam());
  for (uint64_t offset :
       {uint64_t{0}, uint64_t{1}, uint64_t{4095}, uint64_t{4096}, uint64_t{70001}, kSize - 5000, kSize}) {
    for (uint64_t n :
         {uint64_t{0}, uint64_t{1}, uint64_t{4095}, uint64_t{4096}, uint64_t{4097}, uint64_t{300000}, kSize}) {
      if (offset + n > kSize) n = kSize - offset;
      make_cold(*file_);
      const auto read = reader.read(offset, n, window_.bytes());
      ASSERT_TRUE(read) << offset << " " << n << ": " << read.error().message;
      ASSERT_EQ(read->size(), n);
      ASSERT_EQ(std::memcmp(read->data(), bytes_.data() + offset, n), 0) << offset << " " << n;
    }
  }
}

TEST_P(BulkReaderTest, BeyondTheEndIsRefused) {
  const BulkReader reader(*file_, GetParam());
  for (uint64_t offset : {kSize - 10, kSize, uint64_t{1} << 63}) {
    const auto read = reader.read(offset, 11, window_.bytes());
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  }
}

TEST_P(BulkReaderTest, AFileThatIsCutShortIsRefused) {
  const BulkReader reader(*file_, GetParam());
  ASSERT_EQ(::truncate(file_->path().c_str(), 500000), 0);
  EXPECT_TRUE(reader.read(0, 500000, window_.bytes()));
  for (uint64_t offset : {uint64_t{499999}, uint64_t{600000}, kSize - 100}) {
    const auto read = reader.read(offset, 100, window_.bytes());
    ASSERT_FALSE(read) << offset;
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  }
}

INSTANTIATE_TEST_SUITE_P(Both, BulkReaderTest, testing::Values(Cache::kFill, Cache::kSpare, Cache::kPast));

using BulkReaderCache = BulkReaderTest;

TEST_F(BulkReaderCache, SpareLeavesThePageCacheAsItWas) {
  const BulkReader reader(*file_, Cache::kSpare);
  make_cold(*file_);
  const size_t before = pages_in_memory(*file_);
  for (uint64_t at = 0; at < kSize; at += 100000)
    ASSERT_TRUE(reader.read(at, std::min<uint64_t>(100000, kSize - at), window_.bytes()));
  EXPECT_LE(pages_in_memory(*file_), before);
}

TEST_F(BulkReaderCache, SpareKeepsWhatOthersHaveThere) {
  const BulkReader reader(*file_, Cache::kSpare);
  ASSERT_TRUE(file_->read_at(0, window_.bytes().first(kSize)));
  const size_t before = pages_in_memory(*file_);
  EXPECT_EQ(before, (kSize + 4095) / 4096);
  ASSERT_TRUE(reader.read(0, kSize, window_.bytes()));
  EXPECT_EQ(pages_in_memory(*file_), before);
}

// What the system has read ahead ends with a mark, and a read of the marked page has it go on: so rows of a table in
// the first megabytes of a file, small and anywhere, filled the page cache beyond a limit. Any of them may come by.
TEST_F(BulkReaderCache, PastAsksForNothingAhead) {
  make_cold(*file_);
  std::vector<std::byte> start(4096);
  ASSERT_TRUE(file_->read_at(0, start));
  const size_t before = pages_in_memory(*file_);
  const BulkReader reader(*file_, Cache::kPast);
  for (uint64_t offset = 0; offset + 5000 < before * 4096; offset += 5000) {
    const auto read = reader.read(offset, 5000, window_.bytes());
    ASSERT_TRUE(read);
    ASSERT_EQ(std::memcmp(read->data(), bytes_.data() + offset, 5000), 0);
  }
  for (int i = 0; i < 10 && pages_in_memory(*file_) == before; ++i) usleep(5'000);  // which the disk would take
  EXPECT_EQ(pages_in_memory(*file_), before);
}

TEST_F(BulkReaderCache, FillLeavesItThere) {
  const BulkReader reader(*file_, Cache::kFill);
  make_cold(*file_);
  ASSERT_TRUE(reader.read(0, kSize, window_.bytes()));
  EXPECT_EQ(pages_in_memory(*file_), (kSize + 4095) / 4096);
}

TEST_F(BulkReaderCache, FillSendsTheDiskAhead) {
  constexpr size_t kMiB = 1 << 20;
  const auto file = File::open(dir_.write("large", std::string(12 * kMiB, 'x')));
  make_cold(*file);
  if (pages_in_memory(*file) > 0) GTEST_SKIP() << "the file system keeps the file in memory";
  const BulkReader reader(*file, Cache::kFill);
  ASSERT_TRUE(reader.read(0, kMiB / 2, window_.bytes()));
  const size_t wanted = 7 * kMiB / 8 / 4096;  // The system alone would read 128 KiB more than was asked for.
  for (int i = 0; i < 1000 && pages_in_memory(*file) < wanted; ++i) usleep(10'000);
  EXPECT_GE(pages_in_memory(*file), wanted);
  EXPECT_LT(pages_in_memory(*file), 4 * kMiB / 4096);
}

}  // namespace
}  // namespace stoker
