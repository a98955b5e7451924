// A run that goes on from a saved state has the bits of one that was never interrupted, for every kind of state.
#include "engine/saved_state.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "base/str_cat.h"
#include "engine/generate.h"
#include "tests/base/temp_dir.h"
#include "tests/model/golden.h"

namespace stoker::engine {
namespace {

using kernels::KvType;

std::unique_ptr<Engine> open(const std::string& name, EngineOptions options = {}, int64_t max_rows = 64,
                             int64_t positions = 512) {
  options.path = model::testing::tiny_path(name);
  options.memory_bytes = uint64_t{1} << 30;
  auto engine = Engine::open(std::move(options));
  if (!engine) {
    ADD_FAILURE() << name << ": " << engine.error().message;
    std::abort();
  }
  const auto status = (*engine)->load({.positions = positions, .max_rows = max_rows});
  if (!status) ADD_FAILURE() << status.error().message;
  return std::move(*engine);
}

std::vector<int32_t> prompt_of(int32_t n) {
  std::vector<int32_t> prompt(static_cast<size_t>(n));
  for (int32_t i = 0; i < n; ++i) prompt[static_cast<size_t>(i)] = (i * 37 + i / 9) % 200;
  return prompt;
}

struct Ran {
  std::vector<int32_t> tokens;
  std::string digest;
  int64_t restored = 0;
};

class SavedState : public ::testing::Test {
 protected:
  GenerateOptions greedy(int64_t n) const {
    return {.max_tokens = n, .context = 512, .sampler = {.temperature = 0}, .ignore_end = true};
  }
  Ran run(Engine& engine, const std::vector<int32_t>& prompt, GenerateOptions options) {
    Digest digest;
    options.digest = &digest;
    const auto out = generate(engine, prompt, options);
    EXPECT_TRUE(out) << out.error().message;
    return out ? Ran{out->tokens, digest.hex(), out->restored_tokens} : Ran{};
  }
  /// Reads the prompt, answers `n` tokens and saves.
  void save(Engine& engine, const std::vector<int32_t>& prompt, int64_t n) {
    auto file = OutputFile::create(path_);
    ASSERT_TRUE(file);
    GenerateOptions options = greedy(n);
    options.save_to = &*file;
    const auto out = generate(engine, prompt, options);
    ASSERT_TRUE(out) << out.error().message;
    ASSERT_FALSE(out->not_saved) << out->not_saved->message;
  }
  /// Goes on from the file with `more` behind its tokens.
  Ran go_on(Engine& engine, const std::vector<int32_t>& more, int64_t n) {
    const auto state = open_state(engine, path_);
    EXPECT_TRUE(state) << state.error().message;
    if (!state) return {};
    std::vector<int32_t> prompt = state->tokens();
    prompt.insert(prompt.end(), more.begin(), more.end());
    GenerateOptions options = greedy(n);
    options.from = &*state;
    return run(engine, prompt, options);
  }

  test::TempDir folder_;
  const std::string path_ = folder_ / "state";
};

struct Kind {
  const char* name;
  KvType type = KvType::kF16;
};
// Heads, in every type; heads of two sizes and shared ones; latents of both layouts, keys of indexers; all kinds of
// fixed size, alone, beside attention and in other layers; compressed rows and windows; several residuals.
constexpr Kind kKinds[] = {{"llama"},
                           {"llama", KvType::kBf16},
                           {"llama", KvType::kF32},
                           {"llama", KvType::kQ8_0},
                           {"gemma3"},
                           {"gemma4"},
                           {"gpt-oss"},
                           {"deepseek2"},
                           {"deepseek2", KvType::kQ8_0},
                           {"glm-dsa"},
                           {"glm-dsa", KvType::kBf16},
                           {"qwen3next"},
                           {"qwen3next", KvType::kQ8_0},
                           {"kimi-linear"},
                           {"granitehybrid"},
                           {"falcon-h1"},
                           {"lfm2"},
                           {"nemotron_h_moe"},
                           {"deepseek4"},
                           {"deepseek4", KvType::kBf16},
                           {"deepseek4", KvType::kF32},
                           {"kimi-k3"}};

// Without new tokens: what was pending is read, and the run is the one that would have been. Other pages, another cut
// of the prompt.
TEST_F(SavedState, BitsOfAnUninterruptedRunForEveryKindOfState) {
  const std::vector<int32_t> prompt = prompt_of(150);
  for (const Kind& kind : kKinds) {
    const std::string what = str_cat(kind.name, " in ", model::kv_type_name(kind.type));
    auto whole = open(kind.name, {.kv_type = kind.type}, 64);
    const Ran answer = run(*whole, prompt, greedy(20));
    std::vector<int32_t> half = prompt;
    half.insert(half.end(), answer.tokens.begin(), answer.tokens.begin() + 8);
    const Ran want = run(*whole, half, greedy(12));
    auto first = open(kind.name, {.kv_type = kind.type}, 40);
    save(*first, prompt, 8);
    auto second = open(kind.name, {.kv_type = kind.type}, 7);
    const Ran got = go_on(*second, {}, 12);
    EXPECT_EQ(got.tokens, std::vector<int32_t>(answer.tokens.begin() + 8, answer.tokens.end())) << what;
    EXPECT_EQ(got.digest, want.digest) << what;
    EXPECT_EQ(got.restored, 157) << what;
    EXPECT_EQ(second->kv().n_free(), second->kv().n_pages()) << what;
  }
}

// The prompt alone, with more text behind it.
TEST_F(SavedState, MoreTextBehindAPrompt) {
  const std::vector<int32_t> prompt = prompt_of(140), more = {5, 6, 7, 8, 9};
  std::vector<int32_t> all = prompt;
  all.insert(all.end(), more.begin(), more.end());
  for (const char* name : {"llama", "glm-dsa", "qwen3next", "falcon-h1", "deepseek4"}) {
    auto engine = open(name);
    const Ran want = run(*engine, all, greedy(6));
    save(*engine, prompt, 0);
    const Ran got = go_on(*engine, more, 6);
    EXPECT_EQ(got.tokens, want.tokens) << name;
    EXPECT_EQ(got.digest, want.digest) << name;
    EXPECT_EQ(got.restored, 139) << name;
    const Ran alone = go_on(*engine, {}, 6);  // its last token is still to be read
    EXPECT_EQ(alone.digest, run(*engine, prompt, greedy(6)).digest) << name;
  }
}

// Each time it is written anew, over itself.
TEST_F(SavedState, AgainAndAgain) {
  for (const char* name : {"llama", "qwen3next", "deepseek4"}) {
    auto engine = open(name);
    const Ran want = run(*engine, prompt_of(100), greedy(30));
    save(*engine, prompt_of(100), 10);
    std::vector<int32_t> tokens;
    for (int part = 0; part < 2; ++part) {
      const auto state = open_state(*engine, path_);
      ASSERT_TRUE(state);
      auto file = OutputFile::create(path_);
      ASSERT_TRUE(file);
      GenerateOptions options = greedy(10);
      options.from = &*state, options.save_to = &*file;
      const auto out = generate(*engine, state->tokens(), options);
      ASSERT_TRUE(out) << out.error().message;
      tokens.insert(tokens.end(), out->tokens.begin(), out->tokens.end());
    }
    EXPECT_EQ(tokens, std::vector<int32_t>(want.tokens.begin() + 10, want.tokens.end())) << name;
  }
}

// Where logits of the last row were wanted all has been read, and a state that cannot be cut by one token is cut to
// where the last call began.
TEST_F(SavedState, AStateThatHasReadEverything) {
  const std::vector<int32_t> prompt = prompt_of(100);
  for (const auto& [name, restored] : {std::pair("llama", 99), std::pair("qwen3next", 64)}) {
    auto engine = open(name, {}, 64);
    const Ran want = run(*engine, prompt, greedy(5));
    auto file = OutputFile::create(path_);
    ASSERT_TRUE(file);
    GenerateOptions options = greedy(0);
    options.save_to = &*file;
    run(*engine, prompt, options);
    const Ran got = go_on(*engine, {}, 5);
    EXPECT_EQ(got.digest, want.digest) << name;
    EXPECT_EQ(got.restored, restored) << name;
  }
}

TEST_F(SavedState, OfACancelledRun) {
  auto engine = open("llama", {}, 20);
  const std::vector<int32_t> prompt = prompt_of(100);
  const Ran want = run(*engine, prompt, greedy(5));
  std::atomic<bool> cancel{false};
  auto file = OutputFile::create(path_);
  ASSERT_TRUE(file);
  GenerateOptions options = greedy(5);
  options.save_to = &*file;
  options.cancel = &cancel;
  options.on_prefill = [&](int64_t done, int64_t) { cancel = done >= 40; };
  const auto out = generate(*engine, prompt, options);
  ASSERT_TRUE(out) << out.error().message;
  EXPECT_EQ(out->stop, Stop::kCancelled);
  const Ran got = go_on(*engine, {}, 5);
  EXPECT_EQ(got.digest, want.digest);
  EXPECT_EQ(got.restored, 40);
}

TEST_F(SavedState, OneTokenAndNothingRead) {
  auto engine = open("qwen3next");
  save(*engine, {5}, 0);
  const Ran got = go_on(*engine, {}, 3);
  EXPECT_EQ(got.digest, run(*engine, {5}, greedy(3)).digest);
  EXPECT_EQ(got.restored, 0);
}

TEST_F(SavedState, WhoseItIs) {
  save(*open("llama"), prompt_of(20), 2);
  const auto refused = [&](const std::string& name, EngineOptions options = {}) {
    const auto state = open_state(*open(name, std::move(options)), path_);
    EXPECT_FALSE(state);
    return state ? std::string() : state.error().message;
  };
  EXPECT_NE(refused("qwen3").find("another model, 'tiny llama', not of 'tiny qwen3'"), std::string::npos);
  EXPECT_NE(refused("llama-d64-mqa").find("another model"), std::string::npos);
  EXPECT_NE(refused("llama", {.overrides = {{"rope.freq_base", "500"}}}).find("another model"), std::string::npos);
  EXPECT_NE(refused("llama", {.kv_type = KvType::kF32}).find("in f16, this run in f32"), std::string::npos);
  EXPECT_TRUE(open_state(*open("llama", {.threads = 1, .context = 100, .batch = 3}), path_));
}

TEST_F(SavedState, APromptThatBeginsOtherwise) {
  auto engine = open("llama");
  save(*engine, prompt_of(20), 2);
  const auto state = open_state(*engine, path_);
  ASSERT_TRUE(state);
  GenerateOptions options = greedy(2);
  options.from = &*state;
  for (const int32_t n : {10, 30}) {
    const auto out = generate(*engine, std::vector<int32_t>(static_cast<size_t>(n), 7), options);
    ASSERT_FALSE(out);
    EXPECT_NE(out.error().message.find("does not begin with the tokens of the saved state"), std::string::npos);
  }
}

}  // namespace
}  // namespace stoker::engine
