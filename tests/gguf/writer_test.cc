#include "gguf/writer.h"

#include "tests/gguf/raw.h"
#include "tests/gguf/temp_dir.h"

namespace stoker::gguf {
namespace {

TEST(Writer, WritesTheExampleOfTheFormatByteForByte) {
  Writer writer("llama");
  const float values[] = {1, 2, 3, 4, 5, 6};
  ASSERT_TRUE(writer.add_tensor("t", TensorType::kF32, {2, 3}, std::as_bytes(std::span(values))));
  // Header, one key, one tensor of 3 x 2 as the file lists it, padded to 128; 24 bytes of data, padded to 160.
  static constexpr unsigned char kExpected[160] = {
      0x47, 0x47, 0x55, 0x46, 3,   0,   0,    0,    1,   0,   0,    0,    0,   0,   0,    0,     //
      1,    0,    0,    0,    0,   0,   0,    0,    20,  0,   0,    0,    0,   0,   0,    0,     //
      'g',  'e',  'n',  'e',  'r', 'a', 'l',  '.',  'a', 'r', 'c',  'h',  'i', 't', 'e',  'c',   //
      't',  'u',  'r',  'e',  8,   0,   0,    0,    5,   0,   0,    0,    0,   0,   0,    0,     //
      'l',  'l',  'a',  'm',  'a', 1,   0,    0,    0,   0,   0,    0,    0,   't', 2,    0,     //
      0,    0,    3,    0,    0,   0,   0,    0,    0,   0,   2,    0,    0,   0,   0,    0,     //
      0,    0,    0,    0,    0,   0,   0,    0,    0,   0,   0,    0,    0,   0,   0,    0,     //
      0,    0,    0,    0,    0,   0,   0,    0,    0,   0,   0,    0,    0,   0,   0,    0,     //
      0,    0,    0x80, 0x3f, 0,   0,   0,    0x40, 0,   0,   0x40, 0x40, 0,   0,   0x80, 0x40,  //
      0,    0,    0xa0, 0x40, 0,   0,   0xc0, 0x40, 0,   0,   0,    0,    0,   0,   0,    0};
  const Result<std::string> bytes = writer.bytes();
  ASSERT_TRUE(bytes) << bytes.error().message;
  EXPECT_EQ(*bytes, std::string(reinterpret_cast<const char*>(kExpected), sizeof kExpected));
}

TEST(Writer, TheHeaderOfDeclaredTensorsIsWhatTheFileBeginsWith) {
  const float values[] = {1, 2, 3, 4, 5, 6};
  Writer whole("llama"), declared("llama");
  ASSERT_TRUE(whole.add_tensor("t", TensorType::kF32, {2, 3}, std::as_bytes(std::span(values))));
  ASSERT_TRUE(declared.declare_tensor("t", TensorType::kF32, {2, 3}));
  ASSERT_TRUE(whole.add_tensor("u", TensorType::kF32, {6}, std::as_bytes(std::span(values))));
  ASSERT_TRUE(declared.declare_tensor("u", TensorType::kF32, {6}));
  const Result<std::string> header = declared.header();
  ASSERT_TRUE(header) << header.error().message;
  const std::string bytes = *whole.bytes();
  EXPECT_EQ(*header, bytes.substr(0, bytes.size() - 64));
  EXPECT_EQ(*header, *whole.header());
  EXPECT_EQ(declared.bytes().error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(declared.declare_tensor("t", TensorType::kF32, {1}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(declared.declare_tensor("v", TensorType::kQ8_0, {33}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(Writer("llama", {.big_endian = true}).header().error().code, ErrorCode::kUnsupported);
  // A tensor that was refused may be added again.
  EXPECT_FALSE(whole.add_tensor("v", TensorType::kF32, {5}, std::as_bytes(std::span(values))));
  EXPECT_TRUE(whole.add_tensor("v", TensorType::kF32, {6}, std::as_bytes(std::span(values))));
}

Value array(ValueType element, std::vector<int64_t> ints, std::vector<double> floats = {},
            std::vector<std::string> strings = {}) {
  return {ValueType::kArray, Array{element, std::move(ints), std::move(floats), std::move(strings)}};
}

std::vector<std::pair<std::string, Value>> every_value() {
  using enum ValueType;
  const int64_t max = std::numeric_limits<int64_t>::max(), min = std::numeric_limits<int64_t>::min();
  return {
      {"u8", {kU8, int64_t{255}}},
      {"i8", {kI8, int64_t{-128}}},
      {"u16", {kU16, int64_t{65535}}},
      {"i16", {kI16, int64_t{-32768}}},
      {"u32", {kU32, int64_t{4294967295}}},
      {"i32", {kI32, int64_t{-2147483648}}},
      {"u64", {kU64, max}},
      {"i64", {kI64, min}},
      {"f32", {kF32, 0.1f}},
      {"f64", {kF64, 0.1}},
      {"yes", {kBool, true}},
      {"no", {kBool, false}},
      {"text", {kString, std::string("a\0\xff", 3)}},
      {"empty", {kString, std::string()}},
      {"a.u8", array(kU8, {0, 255})},
      {"a.i8", array(kI8, {-128, 127})},
      {"a.u16", array(kU16, {0, 65535})},
      {"a.i16", array(kI16, {-32768, 1})},
      {"a.u32", array(kU32, {0, 4294967295})},
      {"a.i32", array(kI32, {-1, 1})},
      {"a.u64", array(kU64, {0, max})},
      {"a.i64", array(kI64, {min, max})},
      {"a.bool", array(kBool, {0, 1})},
      {"a.f32", array(kF32, {}, {0.5, -1e30f})},
      {"a.f64", array(kF64, {}, {0.1, 1e300})},
      {"a.text", array(kString, {}, {}, {"", "x", std::string(1000, 'y')})},
      {"a.none", array(kI32, {})},
  };
}

void expect_equal(const Value& a, const Value& b, const std::string& key) {
  EXPECT_EQ(a.type, b.type) << key;
  ASSERT_EQ(a.data.index(), b.data.index()) << key;
  if (const auto* x = std::get_if<Array>(&a.data)) {
    const Array& y = std::get<Array>(b.data);
    EXPECT_TRUE(x->element == y.element && x->ints == y.ints && x->floats == y.floats && x->strings == y.strings)
        << key;
  } else if (const auto* i = std::get_if<int64_t>(&a.data)) {
    EXPECT_EQ(*i, std::get<int64_t>(b.data)) << key;
  } else if (const auto* d = std::get_if<double>(&a.data)) {
    EXPECT_EQ(*d, std::get<double>(b.data)) << key;
  } else if (const auto* f = std::get_if<bool>(&a.data)) {
    EXPECT_EQ(*f, std::get<bool>(b.data)) << key;
  } else {
    EXPECT_EQ(std::get<std::string>(a.data), std::get<std::string>(b.data)) << key;
  }
}

TEST(Writer, EveryValueComesBack) {
  const auto values = every_value();
  for (uint32_t version : {2u, 3u})
    for (bool big_endian : {false, true}) {
      Writer writer("", {.version = version, .big_endian = big_endian});
      for (const auto& [key, value] : values) writer.add(key, value);
      const Result<std::string> bytes = writer.bytes();
      ASSERT_TRUE(bytes) << bytes.error().message;
      const Result<File> file = parse(*bytes);
      ASSERT_TRUE(file) << file.error().message;
      EXPECT_EQ(file->version(), version);
      EXPECT_EQ(file->big_endian(), big_endian);
      ASSERT_EQ(file->metadata().size(), values.size());
      for (size_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ(file->metadata()[i].first, values[i].first);
        expect_equal(file->metadata()[i].second, values[i].second, values[i].first);
      }
    }
}

TEST(Writer, ValuesThatDoNotFitAreRefused) {
  using enum ValueType;
  const std::vector<Value> bad = {
      {kU8, int64_t{256}},
      {kU8, int64_t{-1}},
      {kI8, int64_t{128}},
      {kU64, int64_t{-1}},
      {kBool, int64_t{2}},
      {kU32, 1.0},
      {kF32, int64_t{1}},
      {kString, int64_t{}},
      {kU32, std::string("1")},
      {kArray, int64_t{}},
      {kU32, array(kU32, {}).data},
      array(kU8, {256}),
      array(kF32, {1}),
      array(kU32, {}, {1.0}),
      array(kString, {1}),
      array(kArray, {}),
      array(static_cast<ValueType>(13), {}),
      {static_cast<ValueType>(13), int64_t{}},
  };
  for (size_t i = 0; i < bad.size(); ++i) {
    Writer writer("llama");
    writer.add("bad", bad[i]);
    const Result<std::string> bytes = writer.bytes();
    ASSERT_FALSE(bytes) << i;
    EXPECT_EQ(bytes.error().code, ErrorCode::kInvalidArgument) << i;
    EXPECT_NE(bytes.error().message.find("key 'bad'"), std::string::npos) << bytes.error().message;
  }
  Writer twice("llama");
  twice.add_string("general.architecture", "qwen2");
  EXPECT_FALSE(twice.bytes());
}

TEST(Writer, TensorsThatDoNotFitAreRefused) {
  Writer writer("llama");
  const std::vector<std::byte> bytes(144);
  const auto refused = [&](std::string name, TensorType type, std::vector<int64_t> shape, size_t size) {
    const Status status = writer.add_tensor(std::move(name), type, std::move(shape), std::span(bytes).first(size));
    return !status && status.error().code == ErrorCode::kInvalidArgument;
  };
  ASSERT_TRUE(writer.add_tensor("a", TensorType::kQ4K, {256}, bytes));
  EXPECT_TRUE(refused("a", TensorType::kQ4K, {256}, 144));
  EXPECT_TRUE(refused("b", TensorType::kQ4K, {256}, 143));
  EXPECT_TRUE(refused("b", TensorType::kQ4K, {2, 128}, 144));
  EXPECT_TRUE(refused("b", TensorType::kF32, {}, 4));
  EXPECT_TRUE(refused("b", TensorType::kF32, {1, 1, 1, 1, 1}, 4));
  EXPECT_TRUE(refused("b", TensorType::kF32, {0}, 0));
  EXPECT_TRUE(refused("b", TensorType::kF32, {-1}, 4));
  EXPECT_TRUE(refused("b", TensorType::kF32, {int64_t{1} << 62, 4}, 4));
  EXPECT_TRUE(refused("b", TensorType::kF32, {int64_t{1} << 62}, 0));
  EXPECT_TRUE(refused("b", static_cast<TensorType>(4), {32}, 18));
  EXPECT_TRUE(refused("", TensorType::kF32, {1}, 4));
  EXPECT_TRUE(refused(std::string(64, 'n'), TensorType::kF32, {1}, 4));
}

TEST(Writer, AddsWhatReadersMustKnow) {
  Writer writer("llama", {.alignment = 128});
  const std::vector<std::byte> bytes(18);
  ASSERT_TRUE(writer.add_tensor("a", TensorType::kQ4_0, {32}, bytes));
  ASSERT_TRUE(writer.add_tensor("b", TensorType::kQ4_0, {32}, bytes));
  const std::string text = *writer.bytes();
  const Result<File> file = parse(text);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(**file->integer("general.alignment"), 128);
  EXPECT_EQ(**file->integer("general.quantization_version"), 2);
  EXPECT_EQ(file->tensors()[1].offset, file->tensors()[0].offset + 128);
  EXPECT_EQ(file->tensors()[0].offset % 128, 0u);
}

TEST(Writer, AFailedWriteLeavesNothing) {
  const TempDir dir;
  Writer bad("llama");
  bad.add("x", {ValueType::kU8, int64_t{-1}});
  EXPECT_FALSE(bad.write(dir / "bad.gguf"));
  EXPECT_FALSE(std::filesystem::exists(dir / "bad.gguf"));
  EXPECT_FALSE(Writer("llama").write(dir / "no/such/folder/x.gguf"));
  EXPECT_FALSE(Writer("llama").write_split(dir / "m", std::vector<size_t>{1}));
  EXPECT_FALSE(Writer("llama").write_split(dir / "m", {}));
}

}  // namespace
}  // namespace stoker::gguf
