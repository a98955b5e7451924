#include "gguf/byte_order.h"

#include <random>

#include "gguf/writer.h"
#include "tests/gguf/raw.h"

namespace stoker::gguf {
namespace {

std::vector<TypeInfo> all_types() {
  std::vector<TypeInfo> out;
  for (uint32_t id = 0; id < 64; ++id)
    if (const auto info = type_info(id)) out.push_back(*info);
  return out;
}

std::vector<std::byte> random_bytes(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> out(n);
  for (std::byte& b : out) b = static_cast<std::byte>(random());
  return out;
}

TEST(ByteOrder, LoadsAndStores) {
  std::byte bytes[8];
  store(uint32_t{0x01020304}, true, bytes);
  EXPECT_EQ(bytes[0], std::byte{1});
  EXPECT_EQ(load<uint32_t>(bytes, true), 0x01020304u);
  EXPECT_EQ(load<uint32_t>(bytes, false), 0x04030201u);
  store(-2.5, true, bytes);
  EXPECT_EQ(load<double>(bytes, true), -2.5);
}

// The places of multi-byte fields, spelled out for the block types with one or two of them.
TEST(ByteOrder, SwapsTheFieldsOfABlock) {
  const auto moved = [](TensorType type) {
    std::vector<std::byte> block(static_cast<size_t>(type_info(type)->n_bytes));
    for (size_t i = 0; i < block.size(); ++i) block[i] = static_cast<std::byte>(i);
    const auto before = block;
    swap_blocks(type, block);
    std::vector<size_t> out;
    for (size_t i = 0; i < block.size(); ++i)
      if (block[i] != before[i]) out.push_back(i);
    return out;
  };
  using Places = std::vector<size_t>;
  EXPECT_EQ(moved(TensorType::kF32), (Places{0, 1, 2, 3}));
  EXPECT_EQ(moved(TensorType::kQ8_0), (Places{0, 1}));
  EXPECT_EQ(moved(TensorType::kQ4_1), (Places{0, 1, 2, 3}));
  EXPECT_EQ(moved(TensorType::kQ5_0), (Places{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(moved(TensorType::kQ2K), (Places{80, 81, 82, 83}));
  EXPECT_EQ(moved(TensorType::kQ3K), (Places{108, 109}));
  EXPECT_EQ(moved(TensorType::kQ6K), (Places{208, 209}));
  EXPECT_EQ(moved(TensorType::kIQ4XS), (Places{0, 1, 2, 3}));
  EXPECT_EQ(moved(TensorType::kMXFP4), Places{});
}

TEST(ByteOrder, SwappingTwiceChangesNothing) {
  for (const TypeInfo& info : all_types()) {
    if (!can_swap(info.type)) continue;
    std::vector<std::byte> bytes = random_bytes(static_cast<size_t>(5 * info.n_bytes), 7);
    const auto before = bytes;
    swap_blocks(info.type, bytes);
    swap_blocks(info.type, bytes);
    EXPECT_EQ(bytes, before) << info.name;
  }
}

/// All types that have a big-endian form, three rows of two blocks each, and all kinds of metadata.
Writer sample(bool big_endian) {
  Writer writer("llama", {.big_endian = big_endian});
  writer.add("i16", {ValueType::kI16, int64_t{-300}});
  writer.add("u64", {ValueType::kU64, int64_t{1} << 40});
  writer.add("f64", {ValueType::kF64, 1e-300});
  writer.add_f32s("floats", {1.5f, -2.f});
  writer.add_strings("strings", {"one", ""});
  for (const TypeInfo& info : all_types()) {
    if (!can_swap(info.type)) continue;
    const auto bytes = random_bytes(static_cast<size_t>(6 * info.n_bytes), static_cast<uint32_t>(info.type));
    const Status status = writer.add_tensor(std::string(info.name), info.type, {3, 2 * info.n_weights}, bytes);
    EXPECT_TRUE(status) << status.error().message;
  }
  return writer;
}

TEST(ByteOrder, ABigEndianFileReadsLikeALittleEndianOne) {
  const std::string little_bytes = *sample(false).bytes(), big_bytes = *sample(true).bytes();
  EXPECT_NE(little_bytes, big_bytes);
  const Result<File> little = parse(little_bytes), big = parse(big_bytes);
  ASSERT_TRUE(little) << little.error().message;
  ASSERT_TRUE(big) << big.error().message;
  EXPECT_TRUE(big->big_endian());
  EXPECT_FALSE(little->big_endian());
  EXPECT_EQ(**big->integer("i16"), -300);
  EXPECT_EQ(**big->integer("u64"), int64_t{1} << 40);
  EXPECT_EQ(**big->real("f64"), 1e-300);
  EXPECT_EQ((*big->array("floats"))->floats, (std::vector<double>{1.5, -2.0}));
  EXPECT_EQ((*big->array("strings"))->strings, (std::vector<std::string>{"one", ""}));

  std::mt19937 random(1);
  ASSERT_EQ(little->tensors().size(), big->tensors().size());
  for (size_t i = 0; i < little->tensors().size(); ++i) {
    const TensorInfo& a = little->tensors()[i];
    const TensorInfo& b = big->tensors()[i];
    EXPECT_EQ(a.offset, b.offset);
    for (int k = 0; k < 200; ++k) {  // any range, not only whole blocks; the first is all of it
      const uint64_t begin = k == 0 ? 0 : random() % (a.bytes + 1);
      const uint64_t size = k == 0 ? a.bytes : random() % (a.bytes - begin + 1);
      std::vector<std::byte> from_a(size), from_b(size);
      ASSERT_TRUE(little->read_tensor(a, begin, from_a));
      ASSERT_TRUE(big->read_tensor(b, begin, from_b));
      ASSERT_EQ(from_a, from_b) << a.name << " " << begin << " " << size;
    }
  }
}

TEST(ByteOrder, TypesWithoutABigEndianFormAreRefusedByName) {
  for (TensorType type : {TensorType::kIQ2XXS, TensorType::kIQ3XXS, TensorType::kIQ1M}) {
    const std::vector<std::byte> bytes(static_cast<size_t>(type_info(type)->n_bytes));
    Writer writer("llama", {.big_endian = true});
    ASSERT_TRUE(writer.add_tensor("t", type, {256}, bytes));
    ASSERT_FALSE(writer.bytes());
    EXPECT_EQ(writer.bytes().error().code, ErrorCode::kUnsupported);

    Raw raw(true);
    raw.header(1, 0).tensor("t", {256}, static_cast<uint32_t>(type), 0).pad().zeros(128);
    expect_refused(raw.bytes(), ErrorCode::kUnsupported, {"tensor 't'", type_name(type), "big-endian"});
    // It can still be listed, but not read.
    const Result<File> file = parse(raw.bytes(), {.allow_unknown_types = true});
    ASSERT_TRUE(file) << file.error().message;
    std::byte out[4];
    const Status status = file->read_tensor(file->tensors()[0], 0, out);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
  }
}

}  // namespace
}  // namespace stoker::gguf
