#include "gguf/split.h"

#include <filesystem>
#include <limits>

#include "gguf/writer.h"
#include "tests/gguf/raw.h"
#include "tests/gguf/temp_dir.h"

namespace stoker::gguf {
namespace {

using enum ErrorCode;

TEST(ShardName, IsReadAndWritten) {
  const auto name = parse_shard_name("dir/a-b-00002-of-00013.gguf");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->prefix, "dir/a-b");
  EXPECT_EQ(name->number, 2);
  EXPECT_EQ(name->count, 13);
  EXPECT_EQ(shard_path(name->prefix, 13, 13), "dir/a-b-00013-of-00013.gguf");
  EXPECT_TRUE(parse_shard_name("x-65535-of-65535.gguf"));
  for (std::string_view bad :
       {"", ".gguf", "a.gguf", "-of-00002.gguf", "a-0002-of-0002.gguf", "a-00002-of-00001.gguf",
        "a-00000-of-00001.gguf", "a-00001-of-00000.gguf", "a-00001-of-00002", "a-00001of-00002.gguf",
        "a-0000x-of-00002.gguf", "a-00001-of-70000.gguf", "a-+0001-of-00002.gguf", "00001-of-00002.gguf",
        "a_00001-of-00002.gguf", "a- 0001-of-00002.gguf"})
    EXPECT_FALSE(parse_shard_name(bad)) << bad;
}

/// Tensor `i` holds the float i.
Writer model(int n_tensors, Writer::Options options = {}) {
  Writer writer("llama", options);
  writer.add_string("general.name", "split");
  for (int i = 0; i < n_tensors; ++i) {
    const float value = static_cast<float>(i);
    EXPECT_TRUE(writer.add_tensor(str_cat("t", i), TensorType::kF32, {1}, std::as_bytes(std::span(&value, 1))));
  }
  return writer;
}

void expect_error(const std::string& path, ErrorCode code, std::initializer_list<std::string_view> words) {
  const Result<File> file = File::open(path);
  ASSERT_FALSE(file) << "was accepted";
  EXPECT_EQ(file.error().code, code) << file.error().message;
  for (std::string_view word : words)
    EXPECT_NE(file.error().message.find(word), std::string::npos) << word << " not in: " << file.error().message;
}

// vllm-metal#720: any shard will do.
TEST(Split, AnyShardOpensTheModel) {
  const TempDir dir;
  ASSERT_TRUE(model(5).write_split(dir / "m", std::vector<size_t>{0, 2, 3}));
  for (int number : {1, 2, 3}) {
    const Result<File> file = File::open(shard_path(dir / "m", number, 3));
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->shards().size(), 3u);
    EXPECT_EQ(**file->string("general.name"), "split");
    ASSERT_EQ(file->tensors().size(), 5u);
    for (int i = 0; i < 5; ++i) {
      const TensorInfo* tensor = file->find_tensor(str_cat("t", i));
      ASSERT_TRUE(tensor);
      EXPECT_EQ(tensor->shard, i < 2 ? 1 : 2);
      float value = -1;
      ASSERT_TRUE(file->read_tensor(*tensor, 0, std::as_writable_bytes(std::span(&value, 1))));
      EXPECT_EQ(value, static_cast<float>(i));
    }
  }
}

TEST(Split, OneShardOfOneIsAWholeModel) {
  const TempDir dir;
  ASSERT_TRUE(model(2).write_split(dir / "m", std::vector<size_t>{2}));
  EXPECT_TRUE(File::open(dir / "m-00001-of-00001.gguf"));
  ASSERT_TRUE(model(2).write(dir / "n-00001-of-00001.gguf"));  // without the keys
  EXPECT_TRUE(File::open(dir / "n-00001-of-00001.gguf"));
}

// Each shard has its own alignment, 32 where its own keys say nothing.
TEST(Split, AlignmentIsEachShardsOwn) {
  const TempDir dir;
  ASSERT_TRUE(model(4, {.alignment = 64}).write_split(dir / "a", std::vector<size_t>{2, 2}));
  ASSERT_TRUE(model(4).write_split(dir / "b", std::vector<size_t>{2, 2}));
  std::filesystem::copy_file(dir / "b-00002-of-00002.gguf", dir / "a-00002-of-00002.gguf",
                             std::filesystem::copy_options::overwrite_existing);
  const Result<File> file = File::open(dir / "a-00001-of-00002.gguf");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->find_tensor("t1")->offset % 64, 0u);
}

TEST(Split, MissingShardsAreNamed) {
  const TempDir dir;
  ASSERT_TRUE(model(3).write_split(dir / "m", std::vector<size_t>{1, 1, 1}));
  std::filesystem::remove(dir / "m-00002-of-00003.gguf");
  expect_error(dir / "m-00003-of-00003.gguf", kNotFound, {"shard 2 of 3", "m-00002-of-00003.gguf", "one folder"});
  expect_error(dir / "m-00002-of-00003.gguf", kNotFound, {"m-00002-of-00003.gguf"});
}

// vllm#9558: a shard under another name says what it is.
TEST(Split, ShardsWithOtherNamesAreExplained) {
  const TempDir dir;
  ASSERT_TRUE(model(3).write_split(dir / "m", std::vector<size_t>{1, 1, 1}));
  std::filesystem::copy_file(dir / "m-00002-of-00003.gguf", dir / "second.gguf");
  expect_error(dir / "second.gguf", kUnsupported, {"second.gguf: is shard 2 of 3", "original names", "00001-of-00003"});
  std::filesystem::copy_file(dir / "m-00002-of-00003.gguf", dir / "x-00001-of-00001.gguf");
  expect_error(dir / "x-00001-of-00001.gguf", kUnsupported, {"is shard 2 of 3"});
}

TEST(Split, NumbersAndNamesMustAgree) {
  const TempDir dir;
  ASSERT_TRUE(model(2).write_split(dir / "m", std::vector<size_t>{1, 1}));
  const std::string first = dir / "m-00001-of-00002.gguf", second = dir / "m-00002-of-00002.gguf";
  std::filesystem::rename(first, dir / "keep");
  std::filesystem::rename(second, first);
  std::filesystem::rename(dir / "keep", second);
  expect_error(first, kCorrupt, {"'split.no' is 1, wanted 0", "renamed"});

  ASSERT_TRUE(model(3).write_split(dir / "n", std::vector<size_t>{1, 1, 1}));
  ASSERT_TRUE(model(2).write_split(dir / "m", std::vector<size_t>{1, 1}));
  std::filesystem::copy_file(dir / "n-00002-of-00003.gguf", second, std::filesystem::copy_options::overwrite_existing);
  expect_error(first, kCorrupt, {"m-00002-of-00002.gguf", "'split.count' is 3", "another set"});

  ASSERT_TRUE(model(1).write(second));
  expect_error(first, kCorrupt, {"'split.count' is missing", "whole model"});
}

TEST(Split, TheUnionMustBeWhatIsPromised) {
  const TempDir dir;
  const std::string first = dir / "m-00001-of-00002.gguf";
  ASSERT_TRUE(model(2).write_split(dir / "m", std::vector<size_t>{1, 1}));
  ASSERT_TRUE(model(3).write_split(dir / "n", std::vector<size_t>{1, 2}));
  std::filesystem::copy_file(dir / "n-00002-of-00002.gguf", dir / "m-00002-of-00002.gguf",
                             std::filesystem::copy_options::overwrite_existing);
  expect_error(first, kCorrupt, {"'split.tensors.count' is 3, in the first shard 2"});

  // The same counts, and t0 in both.
  ASSERT_TRUE(model(2).write_split(dir / "n", std::vector<size_t>{0, 2}));
  std::filesystem::copy_file(dir / "n-00002-of-00002.gguf", dir / "m-00002-of-00002.gguf",
                             std::filesystem::copy_options::overwrite_existing);
  expect_error(first, kCorrupt, {"'split.tensors.count' is 2, the 2 shards have 3 tensors"});

  ASSERT_TRUE(model(2).write_split(dir / "n", std::vector<size_t>{1, 1}));
  ASSERT_TRUE(model(2).write_split(dir / "m", std::vector<size_t>{1, 1}));
  std::string bytes = *read_text(dir / "m-00002-of-00002.gguf", 1 << 20);
  const size_t at = bytes.find("t1");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 1] = '0';
  ASSERT_TRUE(write_file(dir / "m-00002-of-00002.gguf", bytes));
  expect_error(first, kCorrupt, {"m-00002-of-00002.gguf", "tensor 't0'", "earlier shard"});
}

TEST(Split, ByteOrdersMustAgree) {
  const TempDir dir;
  ASSERT_TRUE(model(2).write_split(dir / "m", std::vector<size_t>{1, 1}));
  ASSERT_TRUE(model(2, {.big_endian = true}).write_split(dir / "n", std::vector<size_t>{1, 1}));
  EXPECT_TRUE(File::open(dir / "n-00001-of-00002.gguf"));
  std::filesystem::copy_file(dir / "n-00002-of-00002.gguf", dir / "m-00002-of-00002.gguf",
                             std::filesystem::copy_options::overwrite_existing);
  expect_error(dir / "m-00001-of-00002.gguf", kCorrupt, {"big-endian", "do not belong together"});
}

TEST(Split, HostileCountsAreRefused) {
  const auto with = [](int64_t no, int64_t count) {
    Writer writer("llama");
    writer.add("split.no", {ValueType::kI64, no});
    writer.add("split.count", {ValueType::kI64, count});
    return *writer.bytes();
  };
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_TRUE(parse(with(0, 0)));
  EXPECT_TRUE(parse(with(0, 1)));
  expect_refused(with(0, 2), kUnsupported, {"is shard 1 of 2", "...-00001-of-00002.gguf"});
  expect_refused(with(0, 65536), kCorrupt, {"'split.count' is 65536, wanted 0 to 65535"});
  expect_refused(with(0, kMax), kCorrupt, {"'split.count' is 9223372036854775807"});
  expect_refused(with(0, -1), kCorrupt, {"'split.count' is -1"});
  expect_refused(with(kMax, 2), kCorrupt, {"'split.no' is 9223372036854775807, wanted 0 to 1"});
  expect_refused(with(-1, 2), kCorrupt, {"'split.no' is -1"});
  Writer missing("llama");
  missing.add_u32("split.count", 2);
  expect_refused(*missing.bytes(), kCorrupt, {"'split.no' is missing"});
  Writer text("llama");
  text.add_string("split.count", "3");
  expect_refused(*text.bytes(), kCorrupt, {"'split.count' has type string"});
}

}  // namespace
}  // namespace stoker::gguf
