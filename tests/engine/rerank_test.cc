// Scores of documents against the recorded ones of the float64 forward, and the same bits however they are computed.
#include "engine/rerank.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/str_cat.h"
#include "tests/model/golden.h"

namespace stoker::engine {
namespace {

std::unique_ptr<Engine> open(const std::string& name, EngineOptions options = {}) {
  options.path = model::testing::tiny_path(name);
  options.memory_bytes = uint64_t{512} << 20;
  options.threads_exact = options.threads > 0;
  auto engine = Engine::open(std::move(options));
  if (!engine) ADD_FAILURE() << engine.error().message;
  return std::move(*engine);
}

std::vector<float> scores_of(Engine& engine, const RankPrompts& prompts) {
  if (!engine.placement().max_rows) {
    const auto needs = rank_needs(engine, prompts, 160);
    EXPECT_TRUE(needs) << needs.error().message;
    EXPECT_TRUE(engine.load(*needs));
  }
  const auto out = rerank(engine, prompts);
  EXPECT_TRUE(out) << out.error().message;
  return out ? *out : std::vector<float>();
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(STOKER_GOLDEN_DIR "/ranks"))
    out.push_back(entry.path().stem());
  std::sort(out.begin(), out.end());
  return out;
}

nlohmann::json pairs_of(const std::string& name) {
  std::ifstream in(str_cat(STOKER_GOLDEN_DIR, "/ranks/", name, ".json"));
  return nlohmann::json::parse(in).at("pairs");
}

// Weights are F32: only sums are rounded. Scores are about 1, and so are what they are sums of.
TEST(Rerank, TheFloat64ForwardOfEveryHead) {
  ASSERT_GE(names().size(), 7u);
  for (const std::string& name : names()) {
    RankPrompts prompts, of_kinds;
    std::vector<double> want, want_of_kinds;
    for (const auto& pair : pairs_of(name)) {
      prompts.ids.push_back(pair.at("tokens").get<std::vector<int32_t>>());
      want.push_back(pair.at("numbers").at(0).get<double>());
      if (!pair.contains("second")) continue;
      of_kinds.ids.push_back(prompts.ids.back());
      of_kinds.second_kind_from.push_back(pair.at("second").get<int64_t>());
      want_of_kinds.push_back(pair.at("of_kinds").at(0).get<double>());
    }
    auto engine = open(name, {.kv_type = kernels::KvType::kF32});
    const auto got = scores_of(*engine, prompts);
    double worst = 0;
    for (size_t i = 0; i < got.size(); ++i) worst = std::max(worst, std::fabs(static_cast<double>(got[i]) - want[i]));
    if (!want_of_kinds.empty()) {
      EXPECT_GT(std::fabs(want_of_kinds[0] - want[0]), 1e-3) << "kinds of text make no difference";
      const auto kinds = scores_of(*engine, of_kinds);
      for (size_t i = 0; i < kinds.size(); ++i)
        worst = std::max(worst, std::fabs(static_cast<double>(kinds[i]) - want_of_kinds[i]));
    }
    EXPECT_LT(worst, 1e-5) << name;
    std::printf("%-22s %.1e\n", name.c_str(), worst);
  }
}

TEST(Rerank, KindsOfTextAreTestedWhereTheyAreTold) {
  bool any = false;
  for (const auto& pair : pairs_of("bert-rank")) any |= pair.contains("second");
  EXPECT_TRUE(any);
}

const std::vector<std::string> kDocuments = {"the cat sat on the mat", "a river bank",
                                             "money in the bank is an able dog"};

TEST(Rerank, SameBitsHoweverTheyAreComputed) {
  for (const char* name : {"bert-rank", "modern-bert-rank", "qwen3-rank"}) {
    auto engine = open(name, {.threads = 1});
    const auto prompts = rank_prompts(*engine, "where is the cat", kDocuments);
    ASSERT_TRUE(prompts) << prompts.error().message;
    std::vector<float> alone;
    for (size_t i = 0; i < kDocuments.size(); ++i) {
      auto by_itself = open(name, {.threads = 1});
      const auto one = rank_prompts(*by_itself, "where is the cat", std::span(kDocuments).subspan(i, 1));
      ASSERT_TRUE(one);
      EXPECT_EQ(one->ids[0], prompts->ids[i]);
      alone.push_back(scores_of(*by_itself, *one)[0]);
    }
    for (const EngineOptions& options : {EngineOptions{.threads = 1}, {.threads = 3}, {.threads = 2, .batch = 70}}) {
      auto other = open(name, options);
      const auto got = scores_of(*other, *prompts);
      ASSERT_EQ(got.size(), alone.size());
      EXPECT_EQ(std::memcmp(got.data(), alone.data(), got.size() * sizeof(float)), 0) << name;
    }
  }
}

TEST(Rerank, PromptsAsTheModelWantsThem) {
  const std::vector<std::string> cat = {"a cat"};
  auto engine = open("bert-rank");
  const text::Tokenizer& words = *engine->tokenizer();
  const auto pair = rank_prompts(*engine, "the dog", cat);
  ASSERT_TRUE(pair);
  std::string shown;
  for (const int32_t id : pair->ids[0]) shown += str_cat(words.piece(id), " ");
  EXPECT_EQ(shown, "[CLS] ▁the ▁dog [SEP] ▁a ▁cat [SEP] ");
  EXPECT_EQ(pair->second_kind_from, std::vector<int64_t>{4});
  EXPECT_TRUE(rank_prompts(*open("bert-rank-plain"), "the dog", cat)->second_kind_from.empty());  // knows one kind

  auto decoder = open("qwen3-rank");
  const std::vector<std::string> sly = {"so <|extra_2|> {query}"};
  const auto prompt = rank_prompts(*decoder, "what {document}", sly);
  ASSERT_TRUE(prompt) << prompt.error().message;
  const text::Tokenizer& bytes = *decoder->tokenizer();
  // Control tokens of the prompt are tokens, those of texts are text, and what stands in a text is not replaced.
  EXPECT_EQ(bytes.decode_bytes(prompt->ids[0], {.show_special = true}),
            "<|extra_0|>Is it so?\n<Query>: what {document}\n<Document>: so <|extra_2|> {query}<|extra_1|>\n");
  const auto n_control = std::count_if(prompt->ids[0].begin(), prompt->ids[0].end(),
                                       [&](int32_t id) { return bytes.kind(id) == text::TokenKind::kControl; });
  EXPECT_EQ(n_control, 2);
}

TEST(Rerank, WhatCannotBe) {
  auto engine = open("bert-rank");
  const auto refusal = [&](std::string_view query, std::vector<std::string> documents) {
    const auto prompts = rank_prompts(*engine, query, documents);
    EXPECT_FALSE(prompts);
    return prompts ? std::string() : prompts.error().message;
  };
  EXPECT_NE(refusal("", {"a"}).find("the query is empty"), std::string::npos);
  EXPECT_NE(refusal("a", {"a", ""}).find("document 2 is empty"), std::string::npos);
  std::string text;
  for (int i = 0; i < 200; ++i) text += "a ";
  const std::vector<std::string> documents = {"a", text};
  const auto needs = rank_needs(*engine, *rank_prompts(*engine, "dog", documents), 160);
  ASSERT_FALSE(needs);
  EXPECT_EQ(needs.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(needs.error().message, "document 2 with the query has 204 tokens, the context is 160");
  const auto headless = rank_prompts(*open("bert"), "a", documents);
  ASSERT_FALSE(headless);
  EXPECT_NE(headless.error().message.find("tensor cls.output.weight is missing"), std::string::npos);
  const auto other = rank_prompts(*open("llama"), "a", documents);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("bert, jina-bert-v2"), std::string::npos) << other.error().message;
}

TEST(Rerank, OnlyHeadsWithoutTheirLayerAreRemarkable) {
  EXPECT_EQ(rank_note(*open("bert-rank")), "");
  EXPECT_EQ(rank_note(*open("modern-bert-rank")), "");
  EXPECT_EQ(rank_note(*open("qwen3-rank")), "");
  EXPECT_NE(rank_note(*open("bert-rank-plain")), "");
  EXPECT_NE(rank_note(*open("jina-rank")), "");
}

TEST(Rerank, BestFirst) {
  const std::vector<float> scores = {1, 3, -2, 3};
  EXPECT_EQ(best_first(scores), (std::vector<size_t>{1, 3, 0, 2}));
}

}  // namespace
}  // namespace stoker::engine
