#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "base/checked.h"
#include "base/output_file.h"
#include "base/str_cat.h"
#include "tests/base/temp_dir.h"

namespace stoker {
namespace {

using test::TempDir;

std::string text_of(const std::string& path) { return std::move(read_text(path, 1u << 30)).value(); }

bool mentions(const Error& error, std::string_view part) { return error.message.find(part) != std::string::npos; }

TEST(File, ReadsAnywhere) {
  TempDir dir;
  std::string bytes(300000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 % 251);
  Result<File> file = File::open(dir.write("f", bytes));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->size(), bytes.size());
  std::vector<std::byte> out(100000);
  for (uint64_t offset : {0u, 1u, 12345u, 200000u}) {
    ASSERT_TRUE(file->read_at(offset, out));
    EXPECT_EQ(std::memcmp(out.data(), bytes.data() + offset, out.size()), 0);
  }
  EXPECT_TRUE(file->read_at(bytes.size(), {}));
  file->drop_cache(0, file->size());
}

TEST(File, RefusesWhatIsNoRegularFile) {
  TempDir dir;
  EXPECT_EQ(File::open(dir / "missing").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(File::open(dir.write("plain", "x") + "/below").error().code, ErrorCode::kNotFound);
  const Error directory = File::open(dir.path()).error();
  EXPECT_EQ(directory.code, ErrorCode::kIo);
  EXPECT_TRUE(mentions(directory, dir.path()) && mentions(directory, "is a directory")) << directory.message;
  ASSERT_EQ(mkfifo((dir / "fifo").c_str(), 0600), 0);
  EXPECT_TRUE(mentions(File::open(dir / "fifo").error(), "is a pipe or device"));  // and does not block
  EXPECT_TRUE(mentions(File::open("/dev/null").error(), "is a pipe or device"));
  EXPECT_FALSE(File::open(""));
}

TEST(File, NamesWhatWasWantedBeyondTheEnd) {
  TempDir dir;
  Result<File> file = File::open(dir.write("f", std::string(100, 'x')));
  std::vector<std::byte> out(10);
  const Error error = file->read_at(95, out).error();
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_EQ(error.message, str_cat(dir / "f", ": wanted 10 bytes at 95, the file ends at 100"));
  EXPECT_EQ(file->read_at(UINT64_MAX - 3, out).error().code, ErrorCode::kCorrupt);
}

TEST(File, AFileThatShrinksIsCorrupt) {
  TempDir dir;
  Result<File> file = File::open(dir.write("f", std::string(100, 'x')));
  ASSERT_EQ(truncate((dir / "f").c_str(), 40), 0);
  std::vector<std::byte> out(100);
  const Error error = file->read_at(0, out).error();
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_EQ(error.message,
            str_cat(dir / "f", ": wanted 100 bytes at 0, the file ends at 40; it was cut short while in use"));
  EXPECT_EQ(Mapping::map(*file).error().code, ErrorCode::kCorrupt);
}

TEST(File, MovesCarryTheDescriptor) {
  TempDir dir;
  Result<File> a = File::open(dir.write("a", "one")), b = File::open(dir.write("b", "second"));
  const int fd = a->fd();
  File moved = std::move(*a);
  EXPECT_EQ(moved.fd(), fd);
  EXPECT_EQ(a->fd(), -1);
  moved = std::move(*b);
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);  // the first one is closed
  EXPECT_EQ(moved.path(), dir / "b");
  EXPECT_EQ(moved.size(), 6u);
}

TEST(File, ThreadsReadAtOnce) {
  TempDir dir;
  std::vector<uint32_t> numbers(100000);
  std::iota(numbers.begin(), numbers.end(), 0u);
  const std::string_view bytes(reinterpret_cast<const char*>(numbers.data()), numbers.size() * 4);
  Result<File> file = File::open(dir.write("f", bytes));
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint32_t i = t; i < numbers.size(); i += 1009) {
        uint32_t got = 0;
        EXPECT_TRUE(file->read_at(uint64_t{i} * 4, std::as_writable_bytes(std::span(&got, 1))));
        EXPECT_EQ(got, i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Mapping, ShowsTheWholeFile) {
  TempDir dir;
  Result<File> file = File::open(dir.write("f", "hello"));
  Result<Mapping> mapping = Mapping::map(*file);
  ASSERT_TRUE(mapping);
  Mapping moved = std::move(*mapping);
  EXPECT_TRUE(mapping->bytes().empty());
  ASSERT_EQ(moved.bytes().size(), 5u);
  EXPECT_EQ(std::memcmp(moved.bytes().data(), "hello", 5), 0);
  Result<File> empty = File::open(dir.write("empty", ""));
  EXPECT_TRUE(Mapping::map(*empty)->bytes().empty());
}

TEST(ReadText, WholeFilesUpToALimit) {
  TempDir dir;
  const std::string big(200001, 'x');
  EXPECT_EQ(*read_text(dir.write("big", big), 200001), big);
  EXPECT_EQ(*read_text(dir.write("empty", ""), 0), "");
  const Error error = read_text(dir / "big", 200000).error();
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.message, str_cat(dir / "big", ": is longer than the 200000 bytes allowed here"));
  EXPECT_EQ(*read_text(dir / "big", UINT64_MAX), big);
  EXPECT_EQ(read_text("/dev/zero", 1000).error().code, ErrorCode::kInvalidArgument);  // endless, still bounded
  EXPECT_EQ(read_text(dir / "missing", 10).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(read_text(dir.path(), 10).error().code, ErrorCode::kIo);
}

TEST(ReadText, StandardInput) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int saved = dup(STDIN_FILENO);
  dup2(ends[0], STDIN_FILENO);
  close(ends[0]);
  std::thread writer([&] {
    for (int i = 0; i < 100; ++i) EXPECT_EQ(write(ends[1], std::string(1000, 'a').data(), 1000), 1000);
    close(ends[1]);
  });
  const Result<std::string> text = read_text("-", 1u << 20);
  writer.join();
  EXPECT_EQ(*text, std::string(100000, 'a'));
  ASSERT_GE(fcntl(STDIN_FILENO, F_GETFD), 0);  // still open
  dup2(saved, STDIN_FILENO);
  close(saved);
}

TEST(WriteFile, ReplacesInOneStep) {
  TempDir dir;
  ASSERT_TRUE(write_file(dir / "f", "first"));
  EXPECT_EQ(text_of(dir / "f"), "first");
  ASSERT_EQ(chmod((dir / "f").c_str(), 0640), 0);
  ASSERT_TRUE(write_file(dir / "f", "second"));
  EXPECT_EQ(text_of(dir / "f"), "second");
  struct stat info;
  ASSERT_EQ(stat((dir / "f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
  EXPECT_EQ(dir.n_entries(), 1u);
}

TEST(WriteFile, FollowsLinksInsteadOfReplacingThem) {
  TempDir dir;
  dir.write("real", "old");
  ASSERT_EQ(symlink("real", (dir / "link").c_str()), 0);
  ASSERT_TRUE(write_file(dir / "link", "new"));
  EXPECT_TRUE(std::filesystem::is_symlink(dir / "link"));
  EXPECT_EQ(text_of(dir / "real"), "new");
}

TEST(WriteFile, RefusesWhatItCannotReplace) {
  TempDir dir;
  EXPECT_EQ(write_file(dir / "no/such/folder", "x").error().message,
            str_cat(dir / "no/such/folder", ": cannot be written: No such file or directory"));
  EXPECT_TRUE(mentions(write_file(dir.path(), "x").error(), "is a directory"));
  EXPECT_TRUE(mentions(write_file("/dev/full", "x").error(), "is a pipe or device"));
  EXPECT_FALSE(write_file("/proc/stoker-test", "x"));
}

TEST(OutputFile, WritesAtPlacesPastThePageCacheOrNot) {
  TempDir dir;
  std::string bytes(3 * OutputFile::kDirect + 1000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 % 251);
  // Pieces that meet within pages, from memory that lies as the file does, or does not.
  for (const size_t shift : {0u, 1u}) {
    for (const bool reserve : {false, true}) {
      Result<OutputFile> file = OutputFile::create(dir / "f");
      ASSERT_TRUE(file);
      if (reserve) {
        ASSERT_TRUE(file->reserve(bytes.size() + 24));
      }
      OutputFile moved = std::move(*file);
      const size_t cuts[] = {0, 100, OutputFile::kDirect + 2000, 2 * OutputFile::kDirect + 17, bytes.size()};
      for (int i = 3; i >= 0; --i) {
        const size_t begin = cuts[i], size = cuts[i + 1] - begin;
        std::string memory(size + 3 * OutputFile::kDirect, '\0');
        const auto base = round_up(reinterpret_cast<uintptr_t>(memory.data()), OutputFile::kDirect);
        char* at = reinterpret_cast<char*>(base) + begin % OutputFile::kDirect + shift;
        std::memcpy(at, bytes.data() + begin, size);
        const Status status = moved.write_at(begin, {at, size});
        ASSERT_TRUE(status) << status.error().message;
      }
      *file = std::move(moved);
      ASSERT_TRUE(file->set_size(bytes.size() + 24));
      ASSERT_TRUE(file->commit());
      EXPECT_EQ(text_of(dir / "f"), bytes + std::string(24, '\0'));
    }
  }
  EXPECT_EQ(dir.n_entries(), 1u);
}

TEST(OutputFile, SaysWhatTheDiskLacks) {
  TempDir dir;
  {
    Result<OutputFile> file = OutputFile::create(dir / "f");
    ASSERT_TRUE(file);
    const Status status = file->reserve(uint64_t{1} << 62);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kIo);
    EXPECT_TRUE(mentions(status.error(), "free, 4 EiB are needed: make room")) << status.error().message;
  }
  EXPECT_EQ(dir.n_entries(), 0u);
}

TEST(WriteFile, AFailureKeepsTheOldFileAndLeavesNothingBehind) {
  TempDir dir;
  dir.write("f", "precious");
  signal(SIGXFSZ, SIG_IGN);
  rlimit saved;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &saved), 0);
  rlimit small = saved;
  small.rlim_cur = 1000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = write_file(dir / "f", std::string(5000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &saved), 0);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
  EXPECT_EQ(status.error().message, str_cat(dir / "f", ": writing failed: File too large"));
  EXPECT_EQ(text_of(dir / "f"), "precious");
  EXPECT_EQ(dir.n_entries(), 1u);
}

}  // namespace
}  // namespace stoker
