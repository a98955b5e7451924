// Readers of files: each kind gives the same bytes, and says what is wrong in the same words.
#include "model/experts/reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/buffer.h"
#include "base/bulk_reader.h"
#include "gguf/writer.h"
#include "model/experts/file_reader.h"
#include "tests/base/temp_dir.h"

namespace stoker::model {
namespace {

constexpr uint64_t kFloats = 100003, kBytes = 4 * kFloats, kWindow = 64 << 10;
constexpr int kDepth = 5;

class Reader : public ::testing::TestWithParam<ReaderKind> {
 protected:
  Reader() {
    for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<std::byte>(i * 7 % 251 + i / 4096);
    gguf::Writer writer("llama");
    EXPECT_TRUE(writer.add_tensor("weights", gguf::TensorType::kF32, {kFloats}, bytes_));
    EXPECT_TRUE(writer.write(path_));
    file_.emplace(std::move(gguf::File::open(path_)).value());
    make_cold();
  }
  void make_cold() {
    const auto file = File::open(path_);
    ::fsync(file->fd());
    file->drop_cache(0, file->size());
  }
  const gguf::TensorInfo& tensor() const { return file_->tensors()[0]; }
  std::span<std::byte> window(int i) { return windows_.bytes().subspan(static_cast<size_t>(i) * kRoom, kRoom); }

  static constexpr size_t kRoom = BulkReader::window_bytes(kWindow);
  test::TempDir dir_;
  const std::string path_ = dir_ / "f.gguf";
  std::vector<std::byte> bytes_ = std::vector<std::byte>(kBytes);
  std::optional<gguf::File> file_;
  Ledger ledger_;
  Buffer windows_ = std::move(Buffer::allocate(ledger_, "windows", kDepth* kRoom)).value();
};

TEST_P(Reader, SaysHowItReads) {
  FileReader reader(*file_, BulkReader::Cache::kSpare, GetParam(), kDepth);
  if (reader.queue()) {
    EXPECT_EQ(GetParam(), ReaderKind::kRing);
    EXPECT_EQ(reader.mode(), "direct, by io_uring");
  } else if (GetParam() == ReaderKind::kRing) {
    EXPECT_NE(reader.mode().find("by threads: io_uring: "), std::string::npos) << reader.mode();
  } else {
    EXPECT_EQ(reader.mode().find("io_uring"), std::string::npos) << reader.mode();
  }
  FileReader buffered(*file_, BulkReader::Cache::kFill, GetParam(), kDepth);
  EXPECT_EQ(buffered.queue(), nullptr);
  EXPECT_EQ(buffered.mode().find("through the page cache"), 0u) << buffered.mode();
}

TEST_P(Reader, AnyRangeHasItsBytes) {
  FileReader reader(*file_, BulkReader::Cache::kSpare, GetParam(), kDepth);
  uint64_t seen = 0, wanted = 0;
  std::vector<ExpertRead> reads;
  for (const uint64_t begin :
       {uint64_t{0}, uint64_t{1}, uint64_t{31}, uint64_t{4064}, uint64_t{70001}, kBytes - 5000}) {
    for (const uint64_t n : {uint64_t{1}, uint64_t{4095}, uint64_t{4096}, uint64_t{4097}, kWindow}) {
      reads.push_back({.tensor = &tensor(), .begin = begin, .bytes = std::min(n, kBytes - begin)});
      wanted += reads.back().bytes;
    }
  }
  const auto check = [&](const ExpertRead& read, std::span<const std::byte> got) {
    ASSERT_EQ(got.size(), read.bytes);
    EXPECT_EQ(std::memcmp(got.data(), bytes_.data() + read.begin, got.size()), 0) << read.begin << " " << read.bytes;
    seen += got.size();
  };
  for (size_t i = 0; i < reads.size(); ++i) {
    make_cold();
    ExpertRead read = reads[i];
    read.window = window(static_cast<int>(i) % kDepth);
    if (reader.queue() && reader.queue()->begin(static_cast<int>(i) % kDepth, read)) {
      ReadQueue::Done done;
      ASSERT_EQ(reader.queue()->wait({&done, 1}), 1u);
      EXPECT_EQ(done.i, static_cast<int>(i) % kDepth);
      check(read, done.bytes);
    } else {
      const auto got = reader.read(read);
      ASSERT_TRUE(got) << got.error().message;
      check(read, *got);
    }
  }
  EXPECT_EQ(seen, wanted);
  make_cold();
  size_t next = 0;
  const uint64_t all = read_all(reader, kDepth, windows_.bytes(), kRoom, [&](ExpertRead& read) {
    if (next == reads.size()) return false;
    read = reads[next++];
    return true;
  });
  EXPECT_EQ(all, wanted);
}

// Two at once, one of them to an address that direct reads refuse: an error of the system's, in a real ring.
TEST_P(Reader, AFailedReadIsHandedBackAndTheOthersEnd) {
  FileReader reader(*file_, BulkReader::Cache::kSpare, GetParam(), kDepth);
  make_cold();
  ReadQueue* queue = reader.queue();
  if (queue == nullptr) return;  // SaysHowItReads tells why.
  ExpertRead bad{.tensor = &tensor(), .begin = 100, .bytes = 9000, .window = window(0).subspan(1)};
  const ExpertRead good{.tensor = &tensor(), .begin = 70001, .bytes = 9000, .window = window(1)};
  if (!queue->begin(0, bad) || !queue->begin(1, good)) return;  // The page cache has them all the same.
  std::array<ReadQueue::Done, 2> done;
  for (size_t n = 0; n < done.size();) n += queue->wait(std::span(done).subspan(n));
  if (done[0].i != 0) std::swap(done[0], done[1]);
  EXPECT_TRUE(done[0].bytes.empty() || std::memcmp(done[0].bytes.data(), bytes_.data() + bad.begin, bad.bytes) == 0);
  ASSERT_EQ(done[1].bytes.size(), good.bytes);
  EXPECT_EQ(std::memcmp(done[1].bytes.data(), bytes_.data() + good.begin, good.bytes), 0);
  // As the store does.
  bad.window = window(0);
  const auto got = reader.read(bad);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(std::memcmp(got->data(), bytes_.data() + bad.begin, bad.bytes), 0);
}

TEST_P(Reader, AShortenedFileNamesTheTensor) {
  FileReader reader(*file_, BulkReader::Cache::kSpare, GetParam(), kDepth);
  ASSERT_EQ(::truncate(path_.c_str(), static_cast<off_t>(tensor().offset + kBytes / 2)), 0);
  make_cold();
  const ExpertRead lost{.tensor = &tensor(), .begin = kBytes / 2 + 100, .bytes = 9000, .window = window(0)};
  const ExpertRead half{.tensor = &tensor(), .begin = kBytes / 2 - 100, .bytes = 9000, .window = window(1)};
  for (const ExpertRead& read : {lost, half}) {
    ReadQueue::Done done;
    if (reader.queue() && reader.queue()->begin(0, read)) {
      ASSERT_EQ(reader.queue()->wait({&done, 1}), 1u);
      EXPECT_TRUE(done.bytes.empty());
    }
    const auto got = reader.read(read);
    ASSERT_FALSE(got);
    EXPECT_NE(got.error().message.find("tensor 'weights'"), std::string::npos) << got.error().message;
  }
  // What is left can be read.
  const auto got = reader.read({.tensor = &tensor(), .begin = 100, .bytes = 9000, .window = window(0)});
  ASSERT_TRUE(got);
  EXPECT_EQ(std::memcmp(got->data(), bytes_.data() + 100, 9000), 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Reader, ::testing::Values(ReaderKind::kThreads, ReaderKind::kRing),
                         [](const auto& kind) { return kind.param == ReaderKind::kRing ? "ring" : "threads"; });

}  // namespace
}  // namespace stoker::model
