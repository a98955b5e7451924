// Generation and scoring on a tiny model.
#include "engine/generate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/score.h"
#include "tests/model/golden.h"

namespace stoker::engine {
namespace {

std::unique_ptr<Engine> open(EngineOptions options = {},
                             Engine::Needs needs = {.positions = 512, .max_rows = 64, .max_logits = 64}) {
  if (options.path.empty()) options.path = model::testing::tiny_path("llama");
  options.memory_bytes = options.memory_bytes ? options.memory_bytes : 1u << 30;
  auto engine = Engine::open(options);
  if (!engine) {
    ADD_FAILURE() << engine.error().message;
    std::abort();
  }
  if (needs.positions) {
    auto status = (*engine)->load(needs);
    if (!status) ADD_FAILURE() << status.error().message;
  }
  return std::move(*engine);
}

const std::vector<int32_t> kPrompt{5, 6, 7, 8, 9};
GenerateOptions greedy(int64_t n) {
  return {.max_tokens = n, .context = 512, .sampler = {.temperature = 0}, .ignore_end = true};
}

TEST(Generate, TokenLimitAndTimings) {
  auto engine = open();
  const auto out = generate(*engine, kPrompt, greedy(10));
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ(out->tokens.size(), 10u);
  EXPECT_EQ(out->prompt_tokens, 5);
  EXPECT_EQ(out->decode_tokens, 9);  // the last token is not forwarded
  EXPECT_EQ(out->stop, Stop::kTokenLimit);
  EXPECT_EQ(engine->kv().n_free(), engine->kv().n_pages());
}

TEST(Generate, ZeroTokensOnlyReads) {
  auto engine = open();
  Digest digest;
  GenerateOptions options = greedy(0);
  const auto out = generate(*engine, kPrompt, options);
  ASSERT_TRUE(out);
  EXPECT_TRUE(out->tokens.empty());
  EXPECT_EQ(out->decode_tokens, 0);
}

TEST(Generate, WithoutLimitEndsAtTheContext) {
  auto engine = open();
  GenerateOptions options = greedy(0);
  options.max_tokens.reset();
  options.context = 40;
  EXPECT_EQ(*positions_for(*engine, kPrompt, options), 40);
  const auto out = generate(*engine, kPrompt, options);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->tokens.size(), 35u);
  EXPECT_EQ(out->stop, Stop::kContext);
}

TEST(Generate, SameTokensHoweverThePromptIsCut) {
  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < 150; ++i) prompt.push_back(i % 200);
  std::vector<int32_t> want;
  std::string want_digest;
  for (int64_t rows : {1, 7, 64, 150}) {
    for (int threads : {1, 2}) {
      auto engine = open({.threads = threads, .threads_exact = true}, {.positions = 512, .max_rows = rows});
      Digest digest;
      GenerateOptions options = greedy(20);
      options.digest = &digest;
      const auto out = generate(*engine, prompt, options);
      ASSERT_TRUE(out);
      if (want.empty()) {
        want = out->tokens;
        want_digest = digest.hex();
      }
      EXPECT_EQ(out->tokens, want) << rows << " rows, " << threads << " threads";
      EXPECT_EQ(digest.hex(), want_digest);
    }
  }
}

TEST(Generate, RefusesWhatCannotBe) {
  auto engine = open();
  const auto code = [&](std::vector<int32_t> prompt, GenerateOptions options) {
    auto out = generate(*engine, prompt, options);
    return out ? ErrorCode::kIo : out.error().code;
  };
  EXPECT_EQ(code({}, greedy(1)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({-1}, greedy(1)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({1000000}, greedy(1)), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({1}, greedy(-1)), ErrorCode::kInvalidArgument);
  GenerateOptions options = greedy(1);
  options.context = 0;
  EXPECT_EQ(code({1}, options), ErrorCode::kInvalidArgument);
  options.context = 3;
  const auto out = generate(*engine, std::vector<int32_t>{1, 2, 3}, options);
  ASSERT_FALSE(out);
  EXPECT_NE(out.error().message.find("3 tokens"), std::string::npos) << out.error().message;
  EXPECT_NE(out.error().message.find("context of 3"), std::string::npos) << out.error().message;
}

TEST(Generate, CancelStopsWithWhatThereIs) {
  auto engine = open();
  std::atomic<bool> cancel{false};
  int pieces = 0;
  GenerateOptions options = greedy(200);
  options.cancel = &cancel;
  options.on_text = [&](std::string_view) {
    cancel = ++pieces == 5;
    return true;
  };
  const auto out = generate(*engine, kPrompt, options);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->stop, Stop::kCancelled);
  EXPECT_GE(out->tokens.size(), 5u);
  EXPECT_LT(out->tokens.size(), 200u);
}

TEST(Generate, EndTokenIsNeitherKeptNorCounted) {
  auto engine = open();
  const int32_t end = engine->tokenizer()->eos();
  // With a temperature so high that all tokens are alike, the end token comes up sooner or later.
  GenerateOptions options = greedy(0);
  options.max_tokens = 500;
  options.ignore_end = false;
  bool ended = false;
  for (uint64_t seed = 0; seed < 20 && !ended; ++seed) {
    options.sampler = {.temperature = 1e6, .top_k = 0, .top_p = 1, .min_p = 0, .seed = seed};
    const auto out = generate(*engine, kPrompt, options);
    ASSERT_TRUE(out);
    EXPECT_EQ(std::count(out->tokens.begin(), out->tokens.end(), end), 0);
    ended = out->stop == Stop::kEndOfSequence;
    if (ended) {
      EXPECT_LT(out->tokens.size(), 500u);
    }
  }
  EXPECT_TRUE(ended);
  options.ignore_end = true;
  const auto out = generate(*engine, kPrompt, options);
  EXPECT_EQ(out->tokens.size(), 500u);
}

TEST(Engine, RefusesBeforeLoadingWithATable) {
  auto engine = open({.memory_bytes = Ledger::kProcessBytes + (2u << 20)}, {});
  const auto status = engine->load({.positions = 4096, .max_rows = 512});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kOutOfMemory);
  const std::string& message = status.error().message;
  EXPECT_NE(message.find("weights"), std::string::npos) << message;
  EXPECT_NE(message.find("--memory"), std::string::npos) << message;
  EXPECT_LE(std::count(message.begin(), message.end(), '\n'), 11);
  for (const Ledger::Line& line : engine->ledger().lines()) {
    const bool stays = line.name == "process" || line.name == "vocabulary";
    EXPECT_TRUE(stays || line.bytes == 0) << line.name;
  }
}

TEST(Engine, DefaultContextIsWhatFits) {
  auto roomy = open({}, {});
  EXPECT_EQ(*roomy->context(), 4096);  // the model's, below the default of 8192
  auto asked = open({.context = 100}, {});
  EXPECT_EQ(*asked->context(), 100);
  // 512 B of K and V per position: a tight limit leaves fewer than 4096 of them.
  auto tight = open({.memory_bytes = Ledger::kProcessBytes + (9u << 20), .batch = 16}, {});
  const auto context = tight->context();
  ASSERT_TRUE(context) << context.error().message;
  EXPECT_GT(*context, 0);
  EXPECT_TRUE(tight->load({.positions = *context, .max_rows = 16}));
}

TEST(Score, MatchesTheReferenceAndKnowsWindows) {
  const auto golden = model::testing::read_golden("llama");
  auto engine = open({.kv_type = kernels::KvType::kF32});
  ScoreOptions options{.context = 512, .top = 5};
  const auto scores = score(*engine, golden.tokens, options);
  ASSERT_TRUE(scores) << scores.error().message;
  ASSERT_EQ(scores->logprobs.size(), golden.logprobs.size());
  double sum = 0;
  for (size_t i = 0; i < golden.logprobs.size(); ++i) {
    EXPECT_NEAR(scores->logprobs[i], golden.logprobs[i], 1e-3);
    sum += golden.logprobs[i];
  }
  EXPECT_NEAR(std::log(scores->perplexity), -sum / static_cast<double>(golden.logprobs.size()), 1e-4);
  for (size_t i = 0; i < golden.top.size(); ++i) {
    ASSERT_EQ(scores->top[i].size(), 5u);
    EXPECT_EQ(scores->top[i][0].first, golden.top[i][0].first);
    EXPECT_NEAR(scores->top[i][0].second, golden.top[i][0].second, 1e-3);
  }
  options.context = 50;  // windows from an empty state: the first entry of each is not given
  const auto windows = score(*engine, golden.tokens, options);
  ASSERT_TRUE(windows);
  for (size_t i = 0; i < windows->logprobs.size(); ++i) {
    EXPECT_EQ(std::isnan(windows->logprobs[i]), (i + 1) % 50 == 0) << i;
    if (i < 49) {
      EXPECT_EQ(windows->logprobs[i], scores->logprobs[i]);
    }
  }
}

TEST(Score, RefusesTooLittle) {
  auto engine = open();
  EXPECT_EQ(score(*engine, std::vector<int32_t>{1}, {.context = 512}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(score(*engine, std::vector<int32_t>{1, -2}, {.context = 512}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(score(*engine, std::vector<int32_t>{1, 2}, {.context = 1}).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace stoker::engine
