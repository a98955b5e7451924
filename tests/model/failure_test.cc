// Values that are not finite fail the request that met them, by name, and nobody else.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/str_cat.h"
#include "gguf/file.h"
#include "gguf/writer.h"
#include "model/entry.h"
#include "tests/model/golden.h"

namespace stoker::model {
namespace {

using namespace testing;

/// The bytes of a tiny model with the F32 tensor `name` changed: `change(values)`.
template <class F>
std::string edited(const std::string& model, const std::string& name, F change) {
  auto file = gguf::File::open(tiny_path(model));
  gguf::Writer writer(**file->string("general.architecture"));
  for (const auto& [key, value] : file->metadata()) {
    if (key != "general.architecture" && key != "general.quantization_version") writer.add(key, value);
  }
  for (const auto& tensor : file->tensors()) {
    std::vector<std::byte> bytes(tensor.bytes);
    EXPECT_TRUE(file->read_tensor(tensor, 0, bytes));
    if (tensor.name == name) change(std::span(reinterpret_cast<float*>(bytes.data()), bytes.size() / 4));
    EXPECT_TRUE(writer.add_tensor(tensor.name, tensor.type(), tensor.shape, bytes));
  }
  auto out = writer.bytes();
  EXPECT_TRUE(out);
  return *out;
}

/// A model out of edited bytes, as the binary would run it: best kernels, f16 K and V.
struct Broken : Loaded {
  explicit Broken(const std::string& bytes)
      : Loaded(*gguf::File::parse(std::as_bytes(std::span(bytes)), "edited"),
               {.isa = available_isas().back(), .threads = 2, .kv = kernels::KvType::kF16}) {}
};

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr int32_t kBadToken = 17;

/// Three sequences in one batch, the middle one with the bad token at its position 2.
struct Mixed {
  std::vector<std::vector<int32_t>> texts{{1, 2, 3, 4}, {5, 6, kBadToken, 7, 8}, {9, 10}};
  std::vector<Sequence> sequences;
  std::vector<Span> batch;
  explicit Mixed(KvPool& kv) {
    for (size_t i = 0; i < texts.size(); ++i) sequences.emplace_back(kv);
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto n = static_cast<int64_t>(texts[i].size());
      batch.push_back({.sequence = &sequences[i], .tokens = texts[i], .logits = {n - 1, n}});
    }
  }
};

TEST(Failure, OnlyTheSequenceConcernedFails) {
  // llama-bias is not tied, so that the NaN reaches whoever reads the token and nobody else.
  const std::string bytes =
      edited("llama-bias", "token_embd.weight", [](std::span<float> values) { values[kBadToken * 96] = kNan; });
  Broken broken(bytes);
  Loaded fine(tiny_path("llama-bias"), {.isa = available_isas().back(), .threads = 2, .kv = kernels::KvType::kF16});
  Mixed bad(*broken.kv), good(*fine.kv);
  const auto outputs = broken.runner->forward(bad.batch);
  const auto want = fine.runner->forward(good.batch);
  ASSERT_TRUE(outputs && want);
  ASSERT_EQ(outputs->failures.size(), 1u);
  EXPECT_EQ(outputs->failures[0].span, 1u);
  EXPECT_EQ(outputs->failures[0].position, 2);
  EXPECT_NE(outputs->failures[0].message.find("layer 0"), std::string::npos) << outputs->failures[0].message;
  EXPECT_NE(outputs->failures[0].message.find("position 2"), std::string::npos) << outputs->failures[0].message;
  EXPECT_EQ(bad.sequences[0].length(), 4);
  EXPECT_EQ(bad.sequences[1].length(), 0);  // as before the call
  EXPECT_EQ(bad.sequences[2].length(), 2);
  EXPECT_TRUE(want->failures.empty());
  const auto bytes_of_row = static_cast<size_t>(fine.n_vocab()) * sizeof(float);
  for (int64_t row : {0, 2})
    EXPECT_EQ(std::memcmp(outputs->logits_row(row), want->logits_row(row), bytes_of_row), 0) << row;
  // The failed sequence's pages are as before: with other tokens it goes on like one that never failed.
  const std::vector<int32_t> other{5, 6, 7};
  const Span retry{.sequence = &bad.sequences[1], .tokens = other, .logits = {2, 3}};
  const auto again = broken.runner->forward({&retry, 1});
  ASSERT_TRUE(again && again->failures.empty());
  const std::vector<float> got(again->logits_row(0), again->logits_row(0) + fine.n_vocab());
  Sequence fresh(*fine.kv);
  const Span first{.sequence = &fresh, .tokens = other, .logits = {2, 3}};
  const auto expected = fine.runner->forward({&first, 1});
  EXPECT_EQ(std::memcmp(got.data(), expected->logits_row(0), bytes_of_row), 0);
}

TEST(Failure, InDecodingTheSequenceStaysAsLongAsItWas) {
  Broken broken(edited("llama-bias", "token_embd.weight", [](std::span<float> v) { v[kBadToken * 96] = kNan; }));
  const std::vector<int32_t> prompt{1, 2, 3};
  const int32_t fine_token = 4, bad_token = kBadToken;
  std::vector<Sequence> sequences;
  for (int i = 0; i < 3; ++i) {
    sequences.emplace_back(*broken.kv);
    const Span span{.sequence = &sequences.back(), .tokens = prompt};
    const auto outputs = broken.runner->forward({&span, 1});
    ASSERT_TRUE(outputs && outputs->failures.empty());
  }
  const auto step = [&](size_t i, const int32_t& token) {
    return Span{.sequence = &sequences[i], .tokens = {&token, 1}, .position = sequences[i].length(), .logits = {0, 1}};
  };
  const Span batch[] = {step(0, fine_token), step(1, bad_token)};
  const auto outputs = broken.runner->forward(batch);
  ASSERT_TRUE(outputs);
  ASSERT_EQ(outputs->failures.size(), 1u);
  EXPECT_EQ(outputs->failures[0].span, 1u);
  EXPECT_EQ(outputs->failures[0].position, 3);
  EXPECT_NE(outputs->failures[0].message.find("position 3"), std::string::npos) << outputs->failures[0].message;
  EXPECT_EQ(sequences[0].length(), 4);
  EXPECT_EQ(sequences[1].length(), 3);
  const std::vector<float> want(outputs->logits_row(0), outputs->logits_row(0) + broken.model->vocab_size());
  // With another token it goes on with the bits of one that never failed.
  const Span retry = step(1, fine_token);
  const auto again = broken.runner->forward({&retry, 1});
  ASSERT_TRUE(again && again->failures.empty());
  EXPECT_EQ(std::memcmp(again->logits_row(0), want.data(), want.size() * sizeof(float)), 0);
}

/// The first failure's message when the first `n` values of a tensor are `value`; empty when there is none.
std::string first_failure(const std::string& model, const std::string& tensor, float value, size_t n = 1) {
  Broken broken(edited(
      model, tensor, [&](std::span<float> values) { std::fill_n(values.begin(), std::min(n, values.size()), value); }));
  Sequence sequence(*broken.kv);
  const std::vector<int32_t> text{1, 2, 3};
  const Span span{.sequence = &sequence, .tokens = text, .logits = {2, 3}};
  const auto outputs = broken.runner->forward({&span, 1});
  EXPECT_EQ(sequence.length(), outputs->failures.empty() ? 3 : 0);
  return outputs->failures.empty() ? "" : outputs->failures[0].message;
}

TEST(Failure, NamesTheStepAndLayer) {
  const float inf = std::numeric_limits<float>::infinity();
  struct Case {
    const char *tensor, *where;
    float value;
  };
  for (const Case& c :
       {Case{"blk.1.attn_norm.weight", "of layer 1", kNan}, Case{"blk.2.attn_v.weight", "rope+store of layer 2", inf},
        Case{"blk.0.attn_k.weight", "rope+store of layer 0", 1e30f}, Case{"blk.0.ffn_down.weight", "of layer 1", kNan},
        Case{"blk.3.ffn_gate.weight", "of layer 3", kNan}, Case{"output_norm.weight", "norm", kNan},
        Case{"output.weight", "head", kNan}}) {
    const std::string message = first_failure("llama-bias", c.tensor, c.value);
    EXPECT_NE(message.find(c.where), std::string::npos) << c.tensor << ": " << message;
  }
}

/// What a softmax or a sigmoid would make an ordinary number of.
TEST(Failure, OfStreamsAndCompressedRowsToo) {
  const char* const compress = "compress of layer ";
  const std::pair<const char*, std::string> cases[] = {
      {"blk.1.attn_compressor_gate.weight", str_cat(compress, 1)},
      {"blk.1.attn_compressor_ape.weight", str_cat(compress, 1)},
      {"blk.1.indexer_compressor_kv.weight", str_cat(compress, 1)},
      {"blk.2.attn_compressor_kv.weight", str_cat(compress, 2)},
      {"blk.0.attn_kv_a_norm.weight", "store kv, attention of layer 0"},
      {"blk.1.hc_ffn_fn.weight", "mix, norm of layer 1"},
      {"blk.1.hc_attn_base.weight", "mix, norm of layer 1"},
      {"output_hc_scale.weight", "mix, norm at"}};
  for (const auto& [tensor, where] : cases) {
    const std::string message = first_failure("deepseek4", tensor, kNan);
    EXPECT_NE(message.find(where), std::string::npos) << tensor << ": " << message;
  }
}

TEST(Failure, SoftCapDoesNotHideInfinity) {
  // Finite hidden states whose products with the head overflow; after the cap of 30 they would look like good logits.
  EXPECT_NE(first_failure("gemma2", "output_norm.weight", 1.0e38f, 1000).find("head"), std::string::npos);
}

TEST(Failure, ValuesThatOverflowHalfPrecisionAreFound) {
  // 1e6 fits f32 but not the f16 cache.
  EXPECT_NE(first_failure("llama-bias", "blk.0.attn_v.bias", 1e6f).find("rope+store of layer 0"), std::string::npos);
}

}  // namespace
}  // namespace stoker::model
