#include "gguf/header.h"

#include "tests/gguf/raw.h"

namespace stoker::gguf {
namespace {

using enum ErrorCode;

/// One key, one tensor 't' of 2 x 3 floats.
Raw example() {
  Raw raw;
  raw.header(1, 1).key("general.architecture", ValueType::kString).text("llama").tensor("t", {3, 2}, 0, 0).pad();
  for (float value : {1.f, 2.f, 3.f, 4.f, 5.f, 6.f}) raw.number(value);
  return raw.pad();
}

TEST(Header, ReadsTheExampleOfTheFormat) {
  const std::string bytes = example().bytes();
  ASSERT_EQ(bytes.size(), 160u);
  const Result<File> file = parse(bytes);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->version(), 3u);
  EXPECT_FALSE(file->big_endian());
  EXPECT_TRUE(file->notes().empty());
  EXPECT_EQ(**file->string("general.architecture"), "llama");

  const TensorInfo* tensor = file->find_tensor("t");
  ASSERT_TRUE(tensor);
  EXPECT_EQ(tensor->type(), TensorType::kF32);
  EXPECT_EQ(tensor->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(tensor->offset, 128u);
  EXPECT_EQ(tensor->bytes, 24u);
  float row[3];
  ASSERT_TRUE(file->read_tensor(*tensor, 12, std::as_writable_bytes(std::span(row))));
  EXPECT_EQ(row[0], 4.f);
  EXPECT_EQ(row[2], 6.f);
}

TEST(Header, Version2IsTheSame) {
  std::string bytes = example().bytes();
  bytes[4] = 2;
  const Result<File> file = parse(bytes);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->version(), 2u);
  EXPECT_TRUE(file->find_tensor("t"));
}

TEST(Header, EmptyModelIsLegal) {
  const Result<File> file = parse(Raw().header(0, 0).bytes());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(file->tensors().empty());
}

TEST(Header, OtherFilesAreNamed) {
  expect_refused("", kCorrupt, {"empty"});
  expect_refused("# My model\n\nThis is a readme.\n", kCorrupt, {"text that begins", "# My model"});
  expect_refused("GG", kCorrupt, {"not a GGUF file"});
  expect_refused(std::string("\x7f\x45LF\x02\x01\x01\x00\x00", 9), kCorrupt, {"it begins with", "not with 'GGUF'"});
  expect_refused("FUGG\x03\x00", kCorrupt, {"backwards"});
  for (std::string_view magic : {"lmgg", "fmgg", "tjgg", "ggml", "ggjt"})
    expect_refused(std::string(magic) + std::string(40, '\1'), kCorrupt, {"old GGML file", "convert"});
  expect_refused(std::string("PK\x03\x04\x14\x00\x00", 7), kCorrupt, {"zip"});
  expect_refused("<!DOCTYPE html><html>", kCorrupt, {"web page"});
  expect_refused("version https://git-lfs.x/spec/v1\noid", kCorrupt, {"Git LFS pointer"});
  expect_refused(std::string("\x40\x00\x00\x00\x00\x00\x00\x00{\"__metadata__\"", 22), kCorrupt, {"safetensors"});
}

TEST(Header, VersionsHaveTheirOwnMessages) {
  const auto with_version = [](uint32_t version) { return Raw().header(0, 0, version).bytes(); };
  expect_refused(with_version(0), kCorrupt, {"version at byte 4", "0 does not exist"});
  expect_refused(with_version(1), kUnsupported, {"version at byte 4", "obsolete", "convert"});
  expect_refused(with_version(4), kUnsupported, {"version at byte 4", "4 is newer", "update Stoker"});
  expect_refused(with_version(0x01000000), kUnsupported, {"obsolete"});    // 1, big-endian
  expect_refused(with_version(0x04000000), kUnsupported, {"4 is newer"});  // 4, big-endian
  expect_refused(with_version(0x00030000), kCorrupt, {"in either byte order"});
}

TEST(Header, CountsAreCheckedAgainstTheFile) {
  expect_refused(Raw().header(1, 0).bytes(), kCorrupt, {"tensor count at byte 8", "1, the file has room for 0"});
  expect_refused(Raw().header(0, 1).bytes(), kCorrupt, {"key count at byte 16", "1, the file has room for 0"});
  // CVE-2024-21836, CVE-2024-23605: counts times entry sizes wrap.
  for (uint64_t count : {uint64_t{1} << 63, ~uint64_t{0}, (~uint64_t{0}) / 14 + 1, uint64_t{1} << 32}) {
    expect_refused(Raw().header(count, 0).zeros(4096).bytes(), kCorrupt, {"tensor count"});
    expect_refused(Raw().header(0, count).zeros(4096).bytes(), kCorrupt, {"key count"});
  }
}

TEST(Header, ShorterThanTheHeaderIsTruncated) {
  const std::string bytes = Raw().header(0, 0).bytes();
  for (size_t size = 4; size < bytes.size(); ++size)
    expect_refused(std::string_view(bytes).substr(0, size), kCorrupt, {"header", "truncated", "download it again"});
}

TEST(Header, AlignmentIsAPowerOfTwoOfTypeU32) {
  const auto with_alignment = [](uint32_t alignment) {
    return Raw().header(0, 1).u32_key("general.alignment", alignment).bytes();
  };
  for (uint32_t good : {8u, 32u, 64u, 4096u, 1u << 20}) EXPECT_TRUE(parse(with_alignment(good))) << good;
  for (uint32_t bad : {0u, 1u, 4u, 24u, 33u, 1u << 21, ~0u})
    expect_refused(with_alignment(bad), kCorrupt, {"'general.alignment' is", "power of two"});
  expect_refused(Raw().header(0, 1).key("general.alignment", ValueType::kU64).u64(32).bytes(), kCorrupt,
                 {"'general.alignment' has type u64, wanted u32"});
}

TEST(Header, AlignmentPlacesTheData) {
  Raw raw;
  raw.header(1, 1).u32_key("general.alignment", 256).tensor("t", {2}, 0, 0).pad(256).number(1.f).number(2.f);
  const Result<File> file = parse(raw.bytes());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->tensors()[0].offset, 256u);
}

TEST(Header, NewerQuantizationVersionIsRefused) {
  const auto with_version = [](uint32_t v) {
    return Raw().header(0, 1).u32_key("general.quantization_version", v).bytes();
  };
  EXPECT_TRUE(parse(with_version(2)));
  expect_refused(with_version(3), kUnsupported, {"'general.quantization_version' is 3", "update Stoker"});
}

TEST(Header, BytesAfterTheLastTensorAreNoted) {
  EXPECT_TRUE(parse(example().bytes().substr(0, 152))) << "the last padding may be missing";
  const Result<File> file = parse(example().zeros(100).bytes());
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->notes().size(), 1u);
  EXPECT_EQ(file->notes()[0], "100 bytes follow the last tensor");
}

// llama.cpp#9613
TEST(Header, ShardsJoinedWithCatAreRecognised) {
  const auto shard = [](uint16_t no) {
    Raw raw;
    raw.header(1, 3).key("split.no", ValueType::kU16).u16(no).key("split.count", ValueType::kU16).u16(2);
    raw.key("split.tensors.count", ValueType::kI32).u32(2).tensor(no ? "b" : "a", {3}, 0, 0).pad().zeros(12);
    return raw;
  };
  expect_refused(shard(0).pad().bytes() + shard(1).bytes(), kCorrupt, {"joined end to end", "first of the 2", "merge"});
  expect_refused(shard(0).bytes() + shard(1).bytes(), kCorrupt, {"joined end to end"});  // last padding missing
  // A first shard without tensors.
  Raw first;
  first.header(0, 1).key("split.count", ValueType::kU16).u16(2);
  expect_refused(first.bytes() + shard(1).bytes(), kCorrupt, {"joined end to end"});
  // Not split: only noted, as other bytes are.
  const Result<File> file = parse(example().bytes() + example().bytes());
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->notes().size(), 1u);
  EXPECT_NE(file->notes()[0].find("another GGUF"), std::string::npos) << file->notes()[0];
}

}  // namespace
}  // namespace stoker::gguf
