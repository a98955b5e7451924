#include "gguf/metadata.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "tests/gguf/raw.h"

namespace stoker::gguf {
namespace {

using enum ErrorCode;

/// A file of one key, so far without its value.
Raw one_key(ValueType type, std::string_view name = "a.key") {
  Raw raw;
  raw.header(0, 1).key(name, type);
  return raw;
}

Raw one_array(uint32_t element, uint64_t count) {
  Raw raw = one_key(ValueType::kArray);
  raw.u32(element).u64(count);
  return raw;
}

const Value& only_value(const Result<File>& file) {
  EXPECT_TRUE(file) << (file ? "" : file.error().message);
  return file->metadata().at(0).second;
}

template <class T>
void expect_number(ValueType type, T number) {
  const Result<File> file = parse(one_key(type).number(number).bytes());
  const Value& value = only_value(file);
  EXPECT_EQ(value.type, type);
  if constexpr (std::floating_point<T>) {
    EXPECT_EQ(std::get<double>(value.data), static_cast<double>(number));
  } else {
    EXPECT_EQ(std::get<int64_t>(value.data), static_cast<int64_t>(number));
  }
}

template <class T>
void expect_extremes(ValueType type) {
  expect_number(type, std::numeric_limits<T>::lowest());
  expect_number(type, std::numeric_limits<T>::max());
}

TEST(Metadata, ReadsEveryNumberType) {
  expect_extremes<uint8_t>(ValueType::kU8);
  expect_extremes<int8_t>(ValueType::kI8);
  expect_extremes<uint16_t>(ValueType::kU16);
  expect_extremes<int16_t>(ValueType::kI16);
  expect_extremes<uint32_t>(ValueType::kU32);
  expect_extremes<int32_t>(ValueType::kI32);
  expect_extremes<int64_t>(ValueType::kI64);
  expect_extremes<float>(ValueType::kF32);
  expect_extremes<double>(ValueType::kF64);
  expect_number(ValueType::kU64, uint64_t{0});
  expect_number(ValueType::kU64, ~uint64_t{0} >> 1);
}

TEST(Metadata, BoolsAreOneByteAndNonZeroIsTrue) {
  for (uint8_t byte : std::initializer_list<uint8_t>{0, 1, 2, 255}) {
    const Result<File> file = parse(one_key(ValueType::kBool).u8(byte).bytes());
    EXPECT_EQ(std::get<bool>(only_value(file).data), byte != 0);
  }
  const Result<File> file = parse(one_array(7, 3).u8(0).u8(1).u8(7).bytes());
  EXPECT_EQ(std::get<Array>(only_value(file).data).ints, (std::vector<int64_t>{0, 1, 1}));
}

TEST(Metadata, IntegersThatDoNotFitAreRefused) {
  expect_refused(one_key(ValueType::kU64).u64(uint64_t{1} << 63).bytes(), kUnsupported,
                 {"'a.key', value at byte 41", "9223372036854775808", "2^63 - 1"});
  expect_refused(one_array(10, 2).u64(0).u64(~uint64_t{0}).bytes(), kUnsupported, {"element 1", "2^63 - 1"});
}

// llama.cpp#28517: lengths are exact, a NUL is a byte like any other.
TEST(Metadata, StringsAreBytes) {
  const std::string text("a\0b\xff\xc3\n", 6);
  const Result<File> file = parse(one_key(ValueType::kString).text(text).bytes());
  EXPECT_EQ(std::get<std::string>(only_value(file).data), text);
}

TEST(Metadata, ReadsArraysLongerThanTheWindow) {
  constexpr uint64_t kCount = 700'000;  // 2.8 MB of floats, 7 MB of strings
  Raw raw;
  raw.header(0, 2).key("floats", ValueType::kArray).u32(6).u64(kCount);
  for (uint64_t i = 0; i < kCount; ++i) raw.number(static_cast<float>(i));
  raw.key("strings", ValueType::kArray).u32(8).u64(kCount);
  for (uint64_t i = 0; i < kCount; ++i) raw.text(i % 2 ? "ab" : "c");

  const auto begin = std::chrono::steady_clock::now();
  const Result<File> file = parse(raw.bytes());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_LT(took.count(), 2.0) << "seconds; about 0.03 where this was written, 0.5 under sanitizers";
  EXPECT_EQ((*file->array("floats"))->floats[kCount - 1], static_cast<double>(kCount - 1));
  EXPECT_EQ((*file->array("strings"))->strings[kCount - 1], "ab");
}

TEST(Metadata, AStringMayBeLongerThanTheWindow) {
  const std::string text(3'000'000, 'x');
  const Result<File> file = parse(one_key(ValueType::kString).text(text).bytes());
  EXPECT_EQ(std::get<std::string>(only_value(file).data), text);
}

// CVE-2024-23496, ggml#1516, llama.cpp#19003: lengths beyond the file, some wrapping when one is added.
TEST(Metadata, StringLengthsAreCheckedBeforeAnythingIsAllocated) {
  for (uint64_t length : {~uint64_t{0}, uint64_t{1} << 63, uint64_t{1} << 30, uint64_t{17}}) {
    expect_refused(one_key(ValueType::kString).u64(length).zeros(16).bytes(), kCorrupt,
                   {"key 'a.key', value at byte 41", "bytes, 16 are left", "download it again"});
    expect_refused(one_array(8, 1).u64(length).zeros(16).bytes(), kCorrupt, {"element 0 at byte 53", "16 are left"});
    expect_refused(Raw().header(0, 1).u64(length).zeros(16).bytes(), kCorrupt, {"key #0, name at byte 24"});
  }
}

// CVE-2024-21825, llama.cpp#27188, #19856
TEST(Metadata, ArrayCountsAreCheckedBeforeAnythingIsAllocated) {
  for (uint64_t count : {~uint64_t{0}, uint64_t{1} << 63, uint64_t{1} << 62, (uint64_t{1} << 61) + 1, uint64_t{33}})
    for (uint32_t element : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 10u, 11u, 12u})
      expect_refused(one_array(element, count).zeros(32).bytes(), kCorrupt,
                     {"'a.key', element count at byte 45", str_cat(count, " elements"), "fit"});
  EXPECT_TRUE(parse(one_array(4, 8).zeros(32).bytes()));
  expect_refused(one_array(4, 9).zeros(32).bytes(), kCorrupt, {"9 elements of type u32, at most 8 fit"});
  expect_refused(one_array(8, 5).zeros(32).bytes(), kCorrupt, {"5 elements of type string, at most 4 fit"});
}

TEST(Metadata, ArraysOfArraysAreRefused) {
  expect_refused(one_array(9, 1).u32(0).u64(0).bytes(), kUnsupported, {"element type at byte 41", "array of arrays"});
  // Deep nesting costs nothing: the first level is refused.
  Raw deep = one_array(9, 1);
  for (int i = 0; i < 100'000; ++i) deep.u32(9).u64(1);
  expect_refused(deep.bytes(), kUnsupported, {"array of arrays"});
}

TEST(Metadata, UnknownValueTypesAreRefused) {
  for (uint32_t type : {13u, 14u, 255u, 0x80000000u, ~0u}) {
    expect_refused(one_key(static_cast<ValueType>(type)).zeros(16).bytes(), kCorrupt,
                   {"value type at byte 37", str_cat("value type ", type, " does not exist")});
    expect_refused(one_array(type, 1).zeros(16).bytes(), kCorrupt, {"element type at byte 41", "does not exist"});
  }
}

TEST(Metadata, KeysAreUniquePrintableAndNotEmpty) {
  Raw twice;
  twice.header(0, 3).u32_key("a", 1).u32_key("b", 2).u32_key("a", 3);
  expect_refused(twice.bytes(), kCorrupt, {"key 'a' at byte 58", "a second time"});
  expect_refused(one_key(ValueType::kU8, "").zeros(8).bytes(), kCorrupt, {"key #0, name at byte 24", "is empty"});
  for (std::string_view bad : {"a\xff", "caf\xc3\xa9", "a b", "a\nb", "\x7f"})
    expect_refused(one_key(ValueType::kU8, bad).u8(0).bytes(), kCorrupt, {"printable ASCII"});
  expect_refused(one_key(ValueType::kU8, std::string_view("a\0", 2)).u8(0).bytes(), kCorrupt, {"'a\\x00'"});
  EXPECT_TRUE(parse(one_key(ValueType::kU8, std::string(65535, 'k')).u8(0).bytes()));
  expect_refused(one_key(ValueType::kU8, std::string(65536, 'k')).u8(0).bytes(), kCorrupt,
                 {"65536 bytes, at most 65535"});
  EXPECT_TRUE(parse(one_key(ValueType::kU8, "ernie4_5-moe.block_count").u8(0).bytes()));
}

TEST(Metadata, ManyKeysAreFast) {
  constexpr int kCount = 200'000;
  Raw raw;
  raw.header(0, kCount);
  for (int i = 0; i < kCount; ++i) raw.u32_key(str_cat("k", i), static_cast<uint32_t>(i));
  const auto begin = std::chrono::steady_clock::now();
  const Result<File> file = parse(raw.bytes());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_LT(took.count(), 5.0) << "seconds; quadratic duplicate checks take minutes";
  EXPECT_EQ(**file->integer("k123456"), 123456);
}

// Each array is fine by itself; together they would take 520 MiB as integers. Refused before the second is allocated.
TEST(Metadata, WhatAHeaderKeepsIsBounded) {
  constexpr uint64_t kFirst = 1u << 20, kSecond = 64u << 20;
  Raw raw;
  raw.header(0, 2).key("a", ValueType::kArray).u32(0).u64(kFirst).zeros(kFirst);
  raw.key("b", ValueType::kArray).u32(0).u64(kSecond).zeros(kSecond);
  expect_refused(raw.bytes(), kUnsupported, {"key 'b'", "more than 512 MiB"});
}

}  // namespace
}  // namespace stoker::gguf
