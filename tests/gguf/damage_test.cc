// Small files with something broken at every place: whatever comes out, it is an error or a file that can be read.
#include <random>

#include "gguf/writer.h"
#include "tests/gguf/raw.h"

namespace stoker::gguf {
namespace {

/// Every kind of value and several tensor types.
Writer sample(Writer::Options options = {}) {
  Writer writer("llama", options);
  writer.add_u32("llama.block_count", 2);
  writer.add_f32("llama.rope.freq_base", 10000.f);
  writer.add_bool("flag", true);
  writer.add_strings("tokenizer.ggml.tokens", {"<s>", "a", "b\xff"});
  writer.add_f32s("tokenizer.ggml.scores", {0.f, -1.f, -2.f});
  writer.add_i32s("tokenizer.ggml.token_type", {3, 1, 1});
  const std::vector<std::byte> bytes(1024, std::byte{0x11});
  const auto add = [&](std::string name, TensorType type, std::vector<int64_t> shape, size_t size) {
    const Status status = writer.add_tensor(std::move(name), type, std::move(shape), std::span(bytes).first(size));
    EXPECT_TRUE(status) << status.error().message;
  };
  add("output_norm.weight", TensorType::kF32, {8}, 32);
  add("blk.0.attn_q.weight", TensorType::kQ4_0, {2, 64}, 72);
  add("token_embd.weight", TensorType::kQ6K, {1, 256}, 210);
  return writer;
}

/// Touches all that a reader of the file would.
void use(const File& file) {
  std::vector<std::byte> bytes;
  for (const TensorInfo& tensor : file.tensors()) {
    bytes.resize(tensor.bytes);
    EXPECT_TRUE(file.read_tensor(tensor, 0, bytes));
    EXPECT_EQ(file.find_tensor(tensor.name), &tensor);
  }
  for (const auto& [key, value] : file.metadata()) {
    EXPECT_EQ(file.find(key), &value);
    static_cast<void>(file.integer(key).has_value() + file.real(key).has_value() + file.boolean(key).has_value() +
                      file.string(key).has_value() + file.array(key).has_value());
  }
}

void expect_one_line(const Result<File>& file) {
  EXPECT_EQ(file.error().message.find('\n'), std::string::npos) << file.error().message;
  EXPECT_LT(file.error().message.size(), 600u) << file.error().message;
}

TEST(Damage, EveryTruncationIsAnError) {
  for (bool big_endian : {false, true}) {
    const std::string bytes = *sample({.big_endian = big_endian}).bytes();
    const Result<File> whole = parse(bytes);
    ASSERT_TRUE(whole) << whole.error().message;
    const uint64_t end = whole->tensors().back().offset + whole->tensors().back().bytes;
    for (size_t size = 0; size < end; ++size) {
      // A copy of its own, so that reading past the end is seen by the sanitizer.
      const std::vector<char> part(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
      const Result<File> file = parse({part.data(), part.size()});
      ASSERT_FALSE(file) << size << " of " << bytes.size() << " bytes were accepted";
      expect_one_line(file);
    }
  }
}

TEST(Damage, AnyByteMayBeWrong) {
  const std::string good = *sample().bytes();
  std::mt19937 random(20260731);
  int n_refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string bad = good;
    bad[random() % bad.size()] = static_cast<char>(random());
    const Result<File> file = parse(bad, {.allow_unknown_types = i % 2 == 0});
    if (file) {
      use(*file);
    } else {
      ++n_refused;
      expect_one_line(file);
    }
  }
  EXPECT_GT(n_refused, 1000);
}

TEST(Damage, AnyWordMayBeExtreme) {
  const std::string good = *sample().bytes();
  for (size_t at = 0; at + 8 <= good.size(); ++at)
    for (uint64_t word : {uint64_t{0}, ~uint64_t{0}, uint64_t{1} << 63, uint64_t{0x7fffffff}, uint64_t{1} << 32}) {
      std::string bad = good;
      store(word, false, reinterpret_cast<std::byte*>(bad.data()) + at);
      if (const Result<File> file = parse(bad)) use(*file);
    }
}

}  // namespace
}  // namespace stoker::gguf
