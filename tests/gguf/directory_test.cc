#include "gguf/directory.h"

#include "gguf/writer.h"
#include "tests/gguf/raw.h"

namespace stoker::gguf {
namespace {

using enum ErrorCode;

constexpr uint32_t kF32 = 0, kQ4K = 12;

/// A file of one tensor with `data` zero bytes.
std::string one_tensor(std::initializer_list<uint64_t> dims, uint32_t type, uint64_t offset, size_t data = 64) {
  return Raw().header(1, 0).tensor("t", dims, type, offset).pad().zeros(data).bytes();
}

TEST(Directory, TurnsShapesOutermostFirst) {
  const auto shape_of = [](std::initializer_list<uint64_t> dims) {
    const Result<File> file = parse(one_tensor(dims, kF32, 0, 4 * 24));
    EXPECT_TRUE(file) << file.error().message;
    return file->tensors()[0].shape;
  };
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(shape_of({3, 2}), (Shape{2, 3}));
  EXPECT_EQ(shape_of({4, 3, 2}), (Shape{2, 3, 4}));
  EXPECT_EQ(shape_of({4, 3, 1, 1}), (Shape{3, 4}));
  EXPECT_EQ(shape_of({1, 1, 4}), (Shape{4, 1, 1}));
  EXPECT_EQ(shape_of({1, 1}), (Shape{1}));
  EXPECT_EQ(shape_of({}), (Shape{1}));
}

TEST(Directory, NamesAreCheckedAndUnique) {
  const auto with_name = [](std::string_view name) {
    return Raw().header(1, 0).tensor(name, {1}, kF32, 0).pad().zeros(4).bytes();
  };
  EXPECT_TRUE(parse(with_name(std::string(64, 'n'))));
  EXPECT_TRUE(parse(with_name("caf\xc3\xa9 \xff")));
  expect_refused(with_name(std::string(65, 'n')), kCorrupt, {"tensor #0, name at byte 24", "65 bytes, at most 64"});
  expect_refused(with_name(""), kCorrupt, {"tensor #0, name", "is empty"});
  expect_refused(with_name(std::string_view("a\0b", 3)), kCorrupt, {"NUL"});

  Raw twice;
  twice.header(2, 0).tensor("t", {1}, kF32, 0).tensor("t", {1}, kF32, 32).pad().zeros(64);
  expect_refused(twice.bytes(), kCorrupt, {"tensor 't'", "twice"});
}

TEST(Directory, DimensionsAreBounded) {
  expect_refused(one_tensor({1, 1, 1, 1, 1}, kF32, 0), kCorrupt,
                 {"tensor 't', number of dimensions", "is 5, at most 4"});
  expect_refused(Raw().header(1, 0).text("t").u32(~0u).zeros(64).bytes(), kCorrupt, {"4294967295, at most 4"});
  expect_refused(one_tensor({0}, kF32, 0), kCorrupt, {"'t', dimension 0 at byte 37", "is 0"});
  expect_refused(one_tensor({2, 0}, kF32, 0), kCorrupt, {"dimension 1", "is 0"});
  expect_refused(one_tensor({uint64_t{1} << 63}, kF32, 0), kCorrupt, {"is 9223372036854775808"});
  expect_refused(one_tensor({~uint64_t{0}}, kF32, 0), kCorrupt, {"dimension 0"});
  expect_refused(one_tensor({uint64_t{1} << 32, uint64_t{1} << 32}, kF32, 0), kCorrupt,
                 {"dimension 1", "more than 2^63 - 1 elements"});
  expect_refused(one_tensor({1u << 16, 1u << 16, 1u << 16, 1u << 16}, kF32, 0), kCorrupt, {"dimension 3", "2^63 - 1"});
}

// llama.cpp#18674: a row stride that wraps to 0.
TEST(Directory, SizesDoNotWrap) {
  expect_refused(one_tensor({1u << 20, (uint64_t{1} << 42) + 1}, kF32, 0), kCorrupt,
                 {"tensor 't', shape", "[4398046511105, 1048576]", "more than 2^64 bytes"});
  expect_refused(one_tensor({1u << 10, (uint64_t{1} << 42) + 1}, kF32, 0), kCorrupt, {"tensor 't'", "truncated"});
  expect_refused(one_tensor({uint64_t{1} << 62}, kF32, 0), kCorrupt, {"tensor 't', shape", "more than 2^64 bytes"});
  expect_refused(one_tensor({(uint64_t{1} << 62) + 1}, kF32, 0), kCorrupt, {"more than 2^64 bytes"});
  expect_refused(one_tensor({uint64_t{1} << 61}, kF32, 0), kCorrupt, {"the file has only", "truncated"});
}

// CVE-2025-53630, CVE-2026-27940: each size is fine, the padded sum wraps.
TEST(Directory, TheSumOfSizesDoesNotWrap) {
  constexpr uint64_t kHalf = uint64_t{1} << 61;  // 2^63 bytes
  Raw raw;
  raw.header(3, 0).tensor("a", {kHalf}, kF32, 0).tensor("b", {kHalf}, kF32, uint64_t{1} << 63);
  raw.tensor("c", {8}, kF32, 0).pad().zeros(64);
  expect_refused(raw.bytes(), kCorrupt, {"tensor 'a'", "9223372036854775808 bytes", "the file has only"});
}

TEST(Directory, RowsAreWholeBlocks) {
  EXPECT_TRUE(parse(one_tensor({256, 2}, kQ4K, 0, 288)));
  expect_refused(one_tensor({128, 4}, kQ4K, 0, 288), kCorrupt,
                 {"tensor 't', shape", "[4, 128]", "Q4_K", "multiples of 256"});
}

// ik_llama.cpp#605, llama.cpp#19856: unknown and negative types.
TEST(Directory, UnknownTypesAreRefusedByNumber) {
  expect_refused(one_tensor({32}, 156, 0), kUnsupported,
                 {"tensor 't', type at byte 45", "type 156 is not known (possibly another program's own format)"});
  expect_refused(one_tensor({32}, 43, 0), kUnsupported, {"type 43 is not known"});
  expect_refused(one_tensor({32}, ~0u, 0), kUnsupported, {"type 4294967295 is not known"});
  for (uint32_t removed : {4u, 5u, 31u, 32u, 33u, 36u, 37u, 38u})
    expect_refused(one_tensor({32}, removed, 0), kUnsupported,
                   {str_cat("type ", removed, " ("), "was removed", "convert"});
}

TEST(Directory, AHeaderAloneIsEnoughWhereItIsAskedFor) {
  Raw raw;
  raw.header(2, 0).tensor("a", {1024, 4096}, kF32, 0).tensor("b", {8}, kF32, uint64_t{1} << 40).pad();
  expect_refused(raw.bytes(), kCorrupt, {"tensor 'a'", "truncated"});
  const Result<File> file = parse(raw.bytes(), {.header_only = true});
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->tensors()[0].bytes, uint64_t{16} << 20);
  std::array<std::byte, 8> nothing;
  EXPECT_FALSE(file->read_tensor(file->tensors()[0], 0, nothing));
  Raw far;
  far.header(1, 0).tensor("a", {8}, kF32, ~uint64_t{0} - 31).pad();
  const Result<File> beyond = parse(far.bytes(), {.header_only = true});
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, kCorrupt);
}

TEST(Directory, UnknownTypesCanBeListed) {
  Raw raw;
  raw.header(3, 0).tensor("a", {8}, kF32, 0).tensor("b", {7, 3}, 156, 32).tensor("c", {8}, kF32, 64).pad().zeros(96);
  const Result<File> file = parse(raw.bytes(), {.allow_unknown_types = true});
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->tensors().size(), 3u);
  EXPECT_EQ(file->tensors()[1].type_id, 156u);
  EXPECT_EQ(file->tensors()[1].bytes, 0u);
  EXPECT_EQ(file->tensors()[1].shape, (std::vector<int64_t>{3, 7}));
  EXPECT_EQ(file->tensors()[2].bytes, 32u);
  EXPECT_EQ(type_name(file->tensors()[1].type()), "?");
}

TEST(Directory, OffsetsAreAligned) {
  for (uint64_t offset : {1u, 16u, 33u})
    expect_refused(one_tensor({2}, kF32, offset, 256), kCorrupt,
                   {"tensor 't', offset at byte 49", str_cat(offset, " is no multiple of the file's alignment, 32")});
  // Where another alignment is asked for, it counts.
  Raw raw;
  raw.header(1, 1).u32_key("general.alignment", 64).tensor("t", {2}, kF32, 32).pad(64).zeros(256);
  expect_refused(raw.bytes(), kCorrupt, {"32 is no multiple of the file's alignment, 64"});
}

// CVE-2026-7482, llama.cpp#6774
TEST(Directory, TensorsLieInsideTheFile) {
  const std::string good = one_tensor({16}, kF32, 0, 64);
  EXPECT_TRUE(parse(good));
  expect_refused(
      std::string_view(good).substr(0, good.size() - 1), kCorrupt,
      {"tensor 't' (F32, [16], 64 bytes)", "begin at byte 64", "the file has only 127 bytes", "download it again"});
  expect_refused(std::string_view(good).substr(0, 60), kCorrupt,
                 {"tensor 't'", "only 60 bytes"});  // inside the padding
  expect_refused(one_tensor({16}, kF32, 32, 64), kCorrupt, {"byte 32 of the data"});
  expect_refused(one_tensor({16}, kF32, uint64_t{1} << 40, 64), kCorrupt, {"the file has only"});
  expect_refused(one_tensor({16}, kF32, ~uint64_t{31}, 64), kCorrupt, {"the file has only"});  // offset + start wraps
}

TEST(Directory, TensorsDoNotOverlap) {
  Raw raw;
  raw.header(3, 0).tensor("a", {8}, kF32, 64).tensor("b", {9}, kF32, 0).tensor("c", {8}, kF32, 32).pad().zeros(96);
  expect_refused(raw.bytes(), kCorrupt, {"tensor 'c'", "inside tensor 'b'"});
  Raw same;
  same.header(2, 0).tensor("a", {8}, kF32, 0).tensor("b", {8}, kF32, 0).pad().zeros(96);
  expect_refused(same.bytes(), kCorrupt, {"tensor 'b'", "inside tensor 'a'"});
}

TEST(Directory, AnyOrderAndGapsAreFineButNoted) {
  Raw raw;
  raw.header(2, 0).tensor("a", {8}, kF32, 64).tensor("b", {8}, kF32, 0).pad().zeros(96);
  const Result<File> file = parse(raw.bytes());
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->notes().size(), 1u);
  EXPECT_NE(file->notes()[0].find("tensor 'a' is at byte 160 where the one before it would put it at 96"),
            std::string::npos)
      << file->notes()[0];
  EXPECT_EQ(file->find_tensor("a")->offset, file->find_tensor("b")->offset + 64);
}

TEST(Directory, ManyTensorsAreFast) {
  Writer writer("");
  const std::vector<std::byte> bytes(32);
  for (int i = 0; i < 50'000; ++i) ASSERT_TRUE(writer.add_tensor(str_cat("t", i), TensorType::kF32, {8}, bytes));
  const std::string text = *writer.bytes();
  const Result<File> file = parse(text);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(file->find_tensor("t49999"));
  EXPECT_FALSE(file->find_tensor("t50000"));
}

}  // namespace
}  // namespace stoker::gguf
