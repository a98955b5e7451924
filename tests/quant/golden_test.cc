// Decoders and encoders against the Python package gguf, from the hashes that tools/quant_golden.py wrote.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <sstream>

#include "quant/all.h"

namespace stoker::quant {
namespace {

constexpr int kBlocks = 64;

// splitmix64, number i of the stream `seed`.
uint64_t number(uint64_t seed, uint64_t i) {
  uint64_t z = ((seed << 32) + i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

class Hash {
 public:
  void add(uint32_t word) { value_ = (value_ ^ word) * 0x100000001b3u; }
  void add_bytes(std::span<const std::byte> bytes) {
    for (std::byte b : bytes) add(std::to_integer<uint32_t>(b));
  }
  void add_floats(std::span<const float> values) {
    for (float v : values) add(std::isnan(v) ? 0x7fc00000u : std::bit_cast<uint32_t>(v));
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325u;
};

template <class Type>
std::vector<size_t> half_fields() {
  using Block = typename Type::Block;
  if constexpr (Type::kType == gguf::TensorType::kF16) {
    return {0};
  } else if constexpr (PlainType<Type> || Type::kType == gguf::TensorType::kMXFP4) {
    return {};
  } else if constexpr (!Type::kHasMin) {
    return {offsetof(Block, d)};
  } else if constexpr (SuperType<Type>) {
    return {offsetof(Block, d), offsetof(Block, dmin)};
  } else {
    return {offsetof(Block, d), offsetof(Block, m)};
  }
}

// The same bytes as blocks_of in the tool.
template <class Type>
std::vector<std::byte> blocks_of(int part) {
  constexpr uint16_t kSpecial[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x7bff,
                                   0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfd01};
  constexpr uint8_t kExponents[] = {0, 1, 2, 254, 255};
  constexpr size_t kSize = sizeof(typename Type::Block);
  const uint64_t seed = static_cast<uint64_t>(Type::kType) * 16 + static_cast<uint64_t>(part);
  std::vector<std::byte> bytes(kBlocks * kSize);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(number(seed, i));
  for (size_t block = 0; block < kBlocks; block += 2) {
    size_t field = 0;
    for (size_t at : half_fields<Type>()) {
      const uint16_t value = kSpecial[(block / 2 + 3 * field++ + static_cast<size_t>(part)) % std::size(kSpecial)];
      std::memcpy(bytes.data() + block * kSize + at, &value, sizeof value);
    }
    if constexpr (Type::kType == gguf::TensorType::kMXFP4) {
      bytes[block * kSize] = std::byte{kExponents[(block / 2 + static_cast<size_t>(part)) % 5]};
    }
  }
  return bytes;
}

// The same values as values_of in the tool.
template <class Type>
std::vector<float> values_of(int part) {
  constexpr size_t kPerBlock = std::max(Type::kWeights, 32);
  const uint64_t seed = static_cast<uint64_t>(Type::kType) * 16 + static_cast<uint64_t>(part) + 1024;
  std::vector<float> values;
  for (size_t i = 0; i < kBlocks * kPerBlock; ++i) {
    int64_t sum = -2 * (1 << 21);
    for (uint64_t draw = 0; draw < 4; ++draw) sum += static_cast<int64_t>(number(seed, 4 * i + draw) >> 43);
    const int power = (static_cast<int>(i / kPerBlock) * 7 + part) % 30 - 36;
    values.push_back(std::ldexp(static_cast<float>(sum), power));
  }
  std::fill_n(values.begin() + 5 * kPerBlock, kPerBlock, 0.0f);
  std::fill_n(values.begin() + 6 * kPerBlock, kPerBlock, values[6 * kPerBlock]);
  std::fill_n(values.begin() + 7 * kPerBlock + 1, kPerBlock - 1, 0.0f);
  return values;
}

struct Line {
  std::string kind, type;
  int part;
  uint64_t before, after;
};

std::vector<Line> read_golden() {
  std::ifstream file(STOKER_QUANT_GOLDEN);
  std::vector<Line> lines;
  for (std::string text; std::getline(file, text);) {
    if (text.starts_with('#')) continue;
    std::istringstream in(text);
    Line line;
    in >> line.kind >> line.type >> line.part >> std::hex >> line.before >> line.after;
    EXPECT_FALSE(in.fail()) << text;
    lines.push_back(line);
  }
  return lines;
}

template <class Type>
void check_decode(const Line& line) {
  const std::vector<std::byte> bytes = blocks_of<Type>(line.part);
  Hash before, after;
  before.add_bytes(bytes);
  ASSERT_EQ(before.value(), line.before) << "the test does not make the blocks that the tool made";
  std::vector<float> out(kBlocks * Type::kWeights);
  ASSERT_TRUE(dequantize_row(Type::kType, bytes, static_cast<int64_t>(out.size()), out.data()));
  after.add_floats(out);
  EXPECT_EQ(after.value(), line.after);
}

template <class Type>
void check_encode(const Line& line) {
  const std::vector<float> values = values_of<Type>(line.part);
  Hash before, after;
  before.add_floats(values);
  ASSERT_EQ(before.value(), line.before) << "the test does not make the values that the tool made";
  std::vector<std::byte> out(values.size() / Type::kWeights * sizeof(typename Type::Block));
  ASSERT_TRUE(quantize_row(Type::kType, values, out));
  after.add_bytes(out);
  EXPECT_EQ(after.value(), line.after);
}

TEST(Golden, SameBitsAsThePackage) {
  const std::vector<Line> lines = read_golden();
  ASSERT_EQ(lines.size(), 8u * (20 + 8));
  for (const Line& line : lines) {
    SCOPED_TRACE(line.kind + " " + line.type + " part " + std::to_string(line.part));
    EXPECT_TRUE(AllQuants::any([&]<class Type>() {
      if (Type::kName != line.type) return false;
      line.kind == "decode" ? check_decode<Type>(line) : check_encode<Type>(line);
      return true;
    }));
  }
}

}  // namespace
}  // namespace stoker::quant
