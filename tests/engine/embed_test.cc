// Vectors of texts against the recorded ones of the float64 forward, and the same bits however they are computed.
#include "engine/embed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/str_cat.h"
#include "kernels/table.h"
#include "model/arch/arch.h"
#include "tests/model/golden.h"

namespace stoker::engine {
namespace {

using Tokens = std::vector<std::vector<int32_t>>;
constexpr std::pair<const char*, Pooling> kWays[] = {
    {"mean", Pooling::kMean}, {"cls", Pooling::kFirst}, {"last", Pooling::kLast}};

std::unique_ptr<Engine> open(const std::string& name, EngineOptions options = {}) {
  options.path = model::testing::tiny_path(name);
  options.memory_bytes = options.memory_bytes ? options.memory_bytes : uint64_t{512} << 20;
  auto engine = Engine::open(std::move(options));
  if (!engine) ADD_FAILURE() << engine.error().message;
  return std::move(*engine);
}

std::vector<Embedding> vectors(Engine& engine, const Tokens& texts, const EmbedOptions& options) {
  if (!engine.placement().max_rows) {
    const auto needs = needs_of(engine, texts, 512);
    EXPECT_TRUE(needs) << needs.error().message;
    EXPECT_TRUE(engine.load(*needs));
  }
  auto out = embed(engine, texts, options);
  EXPECT_TRUE(out) << out.error().message;
  return std::move(*out);
}

nlohmann::json read_golden(const std::string& name) {
  std::ifstream in(str_cat(STOKER_GOLDEN_DIR, "/vectors/", name, ".json"));
  return nlohmann::json::parse(in);
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(STOKER_GOLDEN_DIR "/vectors"))
    out.push_back(entry.path().stem());
  std::sort(out.begin(), out.end());
  return out;
}

Tokens texts_of(const nlohmann::json& golden) {
  Tokens texts;
  for (const auto& text : golden.at("texts")) texts.push_back(text.at("tokens").get<std::vector<int32_t>>());
  return texts;
}

/// Mean and largest difference over the mean magnitude, and 1 less the cosine.
struct Apart {
  double mean = 0, largest = 0, angle = 0;
};
Apart apart(const std::vector<float>& got, const std::vector<double>& want) {
  EXPECT_EQ(got.size(), want.size());
  double sum = 0, largest = 0, size = 0, aa = 0, bb = 0, ab = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const auto a = static_cast<double>(got[i]), b = want[i];
    sum += std::fabs(a - b), largest = std::max(largest, std::fabs(a - b)), size += std::fabs(b);
    aa += a * a, bb += b * b, ab += a * b;
  }
  return {sum / size, largest * static_cast<double>(want.size()) / size, 1 - ab / std::sqrt(aa * bb)};
}

// With weights in F32 and F16 nothing is rounded but sums, and the recorded numbers to seven digits. Where weights are
// quantized activations are too, to 8 bits.
TEST(Embed, TheFloat64ForwardOfEveryFamily) {
  for (const std::string& name : names()) {
    const auto golden = read_golden(name);
    const Tokens texts = texts_of(golden);
    auto engine = open(name);
    const bool quantized = name.find("q8_0") != std::string::npos;
    Apart worst;
    for (const auto& [way, pooling] : kWays) {
      const auto got = vectors(*engine, texts, {.pooling = pooling, .normalize = false});
      ASSERT_EQ(got.size(), texts.size());
      for (size_t i = 0; i < texts.size(); ++i) {
        const Apart a = apart(got[i].values, golden.at("texts").at(i).at(way).get<std::vector<double>>());
        worst = {std::max(worst.mean, a.mean), std::max(worst.largest, a.largest), std::max(worst.angle, a.angle)};
      }
    }
    EXPECT_LT(worst.mean, quantized ? 2e-2 : 1e-5) << name;
    EXPECT_LT(worst.largest, quantized ? 1e-1 : 1e-4) << name;
    EXPECT_LT(worst.angle, quantized ? 2e-4 : 1e-9) << name;
    std::printf("%-20s mean %.1e, largest %.1e, 1 - cosine %.1e\n", name.c_str(), worst.mean, worst.largest,
                worst.angle);
  }
}

TEST(Embed, EveryEncoderHasAGolden) {
  const auto known = names();
  for (const model::Arch* arch : model::all_archs()) {
    model::ModelConfig config;
    arch->defaults(config);
    if (config.causal) continue;
    EXPECT_NE(std::find(known.begin(), known.end(), arch->name), known.end()) << arch->name;
  }
}

void expect_bits(const std::vector<Embedding>& got, const std::vector<Embedding>& want, const std::string& how) {
  ASSERT_EQ(got.size(), want.size()) << how;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].values.size(), want[i].values.size()) << how;
    EXPECT_EQ(std::memcmp(got[i].values.data(), want[i].values.data(), got[i].values.size() * sizeof(float)), 0)
        << how << ", text " << i;
  }
}

Tokens made_texts(std::initializer_list<size_t> sizes) {
  Tokens out;
  for (size_t n : sizes) {
    auto& text = out.emplace_back(n);
    for (size_t i = 0; i < n; ++i) text[i] = static_cast<int32_t>((i * 37 + n * 11) % 150);
  }
  return out;
}

// Promises P1 and P2 for vectors: alone on one thread with scalar kernels, in every other way.
TEST(Embed, SameBitsHoweverTheyAreComputed) {
  const Tokens texts = made_texts({3, 70, 1});
  for (const char* name : {"bert-q8_0", "nomic-bert-moe", "jina-bert-v2", "modern-bert", "gemma-embedding"}) {
    const auto loaded = [&](Isa isa, EngineOptions options) {
      EXPECT_EQ(setenv("STOKER_ISA", std::string(isa_name(isa)).c_str(), 1), 0);
      options.threads_exact = true;
      auto engine = open(name, std::move(options));
      unsetenv("STOKER_ISA");
      return engine;
    };
    std::vector<Embedding> alone;
    for (const auto& text : texts) {
      auto engine = loaded(Isa::kScalar, {.threads = 1});
      auto one = vectors(*engine, {text}, {.pooling = Pooling::kNone, .normalize = false});
      alone.push_back(std::move(one[0]));
    }
    for (const kernels::Table* table : kernels::runnable_tables()) {
      const int threads = table->isa == Isa::kScalar ? 1 : 3;
      auto engine = loaded(table->isa, {.threads = threads, .batch = threads == 1 ? 600 : 72});
      expect_bits(vectors(*engine, texts, {.pooling = Pooling::kNone, .normalize = false}), alone,
                  str_cat(name, " on ", isa_name(table->isa)));
    }
    // Rows that nobody pools are left out behind the last keys.
    auto engine = open(name, {.threads = 2, .threads_exact = true});
    const auto first = vectors(*engine, texts, {.pooling = Pooling::kFirst, .normalize = false});
    const bool dense = static_cast<bool>(engine->model().weights().dense_2);
    for (size_t i = 0; !dense && i < texts.size(); ++i) {
      EXPECT_EQ(std::memcmp(first[i].values.data(), alone[i].values.data(), first[i].values.size() * sizeof(float)), 0)
          << name << ", text " << i;
    }
  }
}

TEST(Embed, OneEntryIntoThePoolPerCall) {
  const Tokens texts = made_texts({20, 30, 40});
  auto engine = open("bert");
  vectors(*engine, texts, {});
  const uint64_t before = engine->pool().entries();
  vectors(*engine, texts, {});
  EXPECT_EQ(engine->pool().entries(), before + 1);
}

TEST(Embed, LengthOneUnlessAskedOtherwise) {
  auto engine = open("bert");
  const auto got = vectors(*engine, made_texts({5}), {});
  double sum = 0;
  for (float x : got[0].values) sum += static_cast<double>(x) * static_cast<double>(x);
  EXPECT_NEAR(sum, 1, 1e-6);
  EXPECT_EQ(got[0].n, 1);
  EXPECT_EQ(got[0].dim, 96);
}

TEST(Embed, PoolingAsTheFileSays) {
  const Tokens texts = made_texts({9});
  for (const auto& [name, pooling] : {std::pair("bert", Pooling::kMean), std::pair("bert-cls", Pooling::kFirst),
                                      std::pair("jina-bert-v2-fused", Pooling::kLast)}) {
    auto engine = open(name);
    EXPECT_EQ(*pooling_of(*engine, {}), pooling) << name;
    expect_bits(vectors(*engine, texts, {}), vectors(*engine, texts, {.pooling = pooling}), name);
  }
  auto decoder = open("llama");
  EXPECT_EQ(*pooling_of(*decoder, {}), Pooling::kLast);
  const auto ranks = pooling_of(*decoder, {.pooling = Pooling::kRank});
  ASSERT_FALSE(ranks);
  EXPECT_EQ(ranks.error().code, ErrorCode::kUnsupported);
}

// A model that continues texts gives vectors too, and reads a long one in pieces.
TEST(Embed, OfADecoderWhateverThePieces) {
  const Tokens texts = made_texts({5, 150, 70});
  for (const char* name : {"llama", "qwen3next"}) {
    for (const Pooling pooling : {Pooling::kMean, Pooling::kLast, Pooling::kFirst, Pooling::kNone}) {
      auto whole = open(name);
      const auto want = vectors(*whole, texts, {.pooling = pooling});
      auto pieces = open(name, {.batch = 40});
      expect_bits(vectors(*pieces, texts, {.pooling = pooling}), want, name);
    }
  }
}

TEST(Embed, TextsThatCannotBe) {
  auto engine = open("bert");
  auto needs = needs_of(*engine, made_texts({4, 0}), 160);
  ASSERT_FALSE(needs);
  EXPECT_NE(needs.error().message.find("text 2 is empty"), std::string::npos) << needs.error().message;
  needs = needs_of(*engine, made_texts({161}), 160);
  ASSERT_FALSE(needs);
  EXPECT_NE(needs.error().message.find("text 1 has 161 tokens, the context is 160"), std::string::npos)
      << needs.error().message;
}

TEST(Embed, WhatAnEncoderCannot) {
  auto engine = open("bert");
  const auto status = engine->check_logits();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(status.error().message.find("stoker embed"), std::string::npos);
  const Tokens texts = made_texts({10});
  vectors(*engine, texts, {});
  model::Sequence sequence(engine->kv());
  const auto forward = [&](model::Span span) { return engine->runner().forward({&span, 1}); };
  auto logits = forward({.sequence = &sequence, .tokens = texts[0], .logits = {9, 10}});
  ASSERT_FALSE(logits);
  EXPECT_NE(logits.error().message.find("logits"), std::string::npos);
  ASSERT_TRUE(forward({.sequence = &sequence, .tokens = texts[0], .hidden = {0, 10}}));
  const auto more = forward({.sequence = &sequence, .tokens = texts[0], .position = 10, .hidden = {0, 10}});
  ASSERT_FALSE(more);
  EXPECT_NE(more.error().message.find("one call"), std::string::npos) << more.error().message;
}

TEST(Embed, Cancelled) {
  const std::atomic<bool> cancel{true};
  auto engine = open("bert");
  const Tokens texts = made_texts({5});
  ASSERT_TRUE(engine->load(*needs_of(*engine, texts, 160)));
  const auto got = embed(*engine, texts, {.cancel = &cancel});
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace stoker::engine
