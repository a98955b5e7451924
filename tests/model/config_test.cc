// Metadata: every key of every architecture missing, of the wrong type or out of range in turn; what is not run is
// refused.
#include "model/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "gguf/file.h"
#include "gguf/writer.h"
#include "model/arch/arch.h"
#include "tests/model/golden.h"

namespace stoker::model {
namespace {

using gguf::Value;
using gguf::ValueType;

Value u32(int64_t v) { return {ValueType::kU32, v}; }
Value f32(double v) { return {ValueType::kF32, v}; }
Value text(std::string v) { return {ValueType::kString, std::move(v)}; }
Value list(std::vector<int64_t> v) {
  return {ValueType::kArray,
          gguf::Array{.element = ValueType::kI32, .ints = std::move(v), .floats = {}, .strings = {}}};
}

using Changes = std::map<std::string, std::optional<Value>>;  // nothing: the key is left out

/// A model of this architecture: its tiny file's metadata with some keys changed, and an embedding.
Result<ModelConfig> read(const std::string& arch, const Changes& changes, const Overrides& overrides = {}) {
  const auto tiny = gguf::File::open(testing::tiny_path(arch));
  if (!tiny) return tiny.error();
  gguf::Writer writer(arch);
  std::map<std::string, bool> taken;
  for (const auto& [key, value] : tiny->metadata()) {
    if (key == "general.architecture" || key.starts_with("tokenizer.")) continue;
    const auto change = changes.find(key.starts_with(arch + ".") ? key.substr(arch.size() + 1) : key);
    if (change == changes.end()) {
      writer.add(key, value);
    } else {
      taken[change->first] = true;
      if (change->second) writer.add(key, *change->second);
    }
  }
  for (const auto& [key, value] : changes) {
    if (!taken.contains(key) && value) writer.add(arch + "." + key, *value);
  }
  const std::vector<float> zeros(4 * 96);
  EXPECT_TRUE(writer.add_tensor("token_embd.weight", gguf::TensorType::kF32, {4, 96}, std::as_bytes(std::span(zeros))));
  STOKER_TRY(std::string bytes, writer.bytes());
  STOKER_TRY(gguf::File file, gguf::File::parse(std::as_bytes(std::span(bytes)), "made"));
  return read_config(file, overrides);
}

void expect_refused(const std::string& arch, const Changes& changes, std::initializer_list<std::string> words,
                    const Overrides& overrides = {}) {
  const auto config = read(arch, changes, overrides);
  ASSERT_FALSE(config) << arch << ": " << *words.begin();
  for (const std::string& word : words)
    EXPECT_NE(config.error().message.find(word), std::string::npos) << config.error().message;
}

/// Of norms with or without their mean.
std::string epsilon_key(const std::string& arch) {
  const auto config = read(arch, {});
  const bool usual = config && config->layer_norm && arch != "phimoe";
  return usual ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
}

std::vector<std::string> architectures() {
  std::vector<std::string> names;
  for (const Arch* arch : all_archs()) names.emplace_back(arch->name);
  return names;
}

TEST(Config, TheTinyFilesAreFine) {
  for (const std::string& arch : architectures()) {
    const auto config = read(arch, {});
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->n_vocab, 4);
    EXPECT_EQ(config->arch->name, arch);
  }
}

TEST(Config, EachRequiredKeyIsMissed) {
  for (const std::string& arch : architectures()) {
    std::vector<std::string> required = {"block_count",         "context_length",       "embedding_length",
                                         "feed_forward_length", "attention.head_count", epsilon_key(arch)};
    for (const KeySpec& key : (*find_arch(arch))->keys) {
      std::erase(required, key.key);  // a family may have its own rule for a common key
      if (key.required) required.emplace_back(key.key);
    }
    for (const std::string& key : required) {
      expect_refused(arch, {{key, std::nullopt}}, {arch + "." + key, "missing"});
    }
  }
}

TEST(Config, EachKeyIsCheckedForTypeAndRange) {
  struct Case {
    std::string key;
    Value value;
  };
  const Case cases[] = {
      {"block_count", u32(0)},
      {"block_count", u32(513)},
      {"block_count", text("four")},
      {"context_length", u32(0)},
      {"context_length", {ValueType::kI32, int64_t{-1}}},
      {"embedding_length", u32(0)},
      {"embedding_length", u32(1 << 25)},
      {"feed_forward_length", u32(0)},
      {"feed_forward_length", f32(1.5)},
      {"attention.head_count", u32(0)},
      {"attention.head_count_kv", u32(0)},
      {"attention.head_count_kv", list({2, 2})},
      {"attention.key_length", u32(0)},
      {"rope.freq_base", f32(0)},
      {"rope.freq_base", f32(-10000)},
      {"rope.scaling.factor", f32(-2)},
      {"nextn_predict_layers", u32(512)},
  };
  for (const std::string& arch : architectures()) {
    for (const Case& c : cases) expect_refused(arch, {{c.key, c.value}}, {arch + "." + c.key});
    for (const Value& value : {f32(0), f32(-1e-5), text("small")}) {
      expect_refused(arch, {{epsilon_key(arch), value}}, {arch + "." + epsilon_key(arch)});
    }
    for (const KeySpec& key : (*find_arch(arch))->keys) {
      const std::string name(key.key);
      expect_refused(arch, {{name, text("x")}}, {arch + "." + name});
      if (std::holds_alternative<bool ModelConfig::*>(key.field)) continue;
      const auto below = static_cast<int64_t>(std::min(key.min, 0.0)) - 1;
      expect_refused(arch, {{name, Value{ValueType::kI32, below}}}, {arch + "." + name});
    }
  }
}

TEST(Config, HeadsMustFit) {
  for (const std::string& arch : architectures()) {
    if (const auto config = read(arch, {}); config && (config->latent_dim > 0 || !config->ratios.empty())) {
      continue;  // see Latents, CompressedRowsAndStreams
    }
    expect_refused(arch, {{"attention.head_count_kv", u32(5)}}, {"not a multiple"});
    expect_refused(arch, {{"attention.key_length", u32(20)}, {"rope.dimension_count", u32(20)}},
                   {"20", "multiples of 8"});
    if (arch != "llama") expect_refused(arch, {{"rope.dimension_count", u32(1000)}}, {"rope.dimension_count", "1000"});
  }
  expect_refused("llama", {{"rope.dimension_count", u32(8)}}, {"llama.rope.dimension_count", "8", "16"});
  expect_refused("qwen2", {{"rope.dimension_count", u32(7)}}, {"even"});
}

TEST(Config, PositionsOfPictures) {
  expect_refused("glm4", {{"rope.dimension_sections", list({8, 12, 12, 0})}}, {"glm4.rope.dimension_sections", "axes"});
  EXPECT_TRUE(read("glm4", {{"rope.dimension_sections", list({0, 0, 0, 0})}}));
  EXPECT_TRUE(read("glm4moe", {{"rope.dimension_sections", list({8, 12, 12, 0})}}));
}

TEST(Config, Recurrences) {
  const auto next = read("qwen3next", {});
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_TRUE(next->is_recurrent(0) && next->is_recurrent(2) && !next->is_recurrent(3));
  EXPECT_EQ(next->conv_channels(), 2 * 2 * 16 + 6 * 16);
  const auto layers = read("qwen35", {{"attention.recurrent_layers", list({0, 1, 1, 1})}});
  ASSERT_TRUE(layers) << layers.error().message;
  EXPECT_TRUE(!layers->is_recurrent(0) && layers->is_recurrent(3));
  for (const std::string arch : {"qwen3next", "qwen35", "qwen35moe", "kimi-linear", "kimi-k3"}) {
    for (const int64_t taps : {1, 5}) {
      expect_refused(arch, {{"ssm.conv_kernel", u32(taps)}},
                     {arch + ".ssm.conv_kernel", std::to_string(taps), "2 to 4"});
    }
    if (arch.starts_with("kimi")) continue;
    expect_refused(arch, {{"ssm.state_size", u32(24)}}, {"24", "multiples of 16"});
    expect_refused(arch, {{"ssm.state_size", u32(1024)}}, {"1024", "up to 512"});
    expect_refused(arch, {{"ssm.group_count", u32(4)}}, {"ssm.time_step_rank", "no multiple of 4"});
    expect_refused(arch, {{"ssm.inner_size", u32(100)}}, {arch + ".ssm.inner_size", "100", "wanted 96"});
    expect_refused(arch, {{"full_attention_interval", u32(9)}}, {"none of 4 layers has attention"});
    expect_refused(arch, {{"attention.recurrent_layers", list({0, 1})}}, {arch + ".attention.recurrent_layers", "2"});
    const auto flags = arch == "qwen35moe" ? list({0, 1, 1, 2, 0}) : list({0, 1, 1, 2});  // a draft layer
    expect_refused(arch, {{"attention.recurrent_layers", flags}}, {"recurrent_layers", "0 to 1"});
  }
  for (const std::string arch : {"qwen35", "qwen35moe"}) {
    const std::string key = arch + ".rope.dimension_sections";
    expect_refused(arch, {{"rope.dimension_sections", std::nullopt}}, {"required key " + key + " is missing"});
    for (const Value& value : {list({0, 0, 0, 0}), list({2, 1, 1}), list({2, 1, -1, 0}), u32(4)}) {
      expect_refused(arch, {{"rope.dimension_sections", value}}, {key, "4 numbers"});
    }
  }
  const auto kimi = read("kimi-linear", {});
  ASSERT_TRUE(kimi) << kimi.error().message;
  EXPECT_TRUE(kimi->is_recurrent(0) && !kimi->is_recurrent(3));
  EXPECT_EQ(kimi->conv_channels(), 3 * 5 * 16);
  EXPECT_EQ(kimi->k_dim, 48 + 8);
  EXPECT_FLOAT_EQ(kimi->attn_scale, 1 / std::sqrt(40.0f));
  expect_refused("kimi-linear", {{"attention.head_count_kv", list({0, 0, 0, 0})}},
                 {"kimi-linear.attention.head_count_kv", "0"});
  expect_refused("kimi-linear", {{"kda.head_dim", u32(24)}}, {"24", "multiples of 16"});
  expect_refused("kimi-linear", {{"attention.kv_lora_rank", u32(40)}}, {"40", "multiples of 16"});
  expect_refused("kimi-linear", {{"expert_weights_norm", Value{ValueType::kBool, false}}}, {"expert_weights_norm"});
}

TEST(Config, CompressedRowsAndStreams) {
  const std::string arch = "deepseek4", ratios = "attention.compress_ratios";
  const auto config = read(arch, {});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->ratios, (std::vector<int64_t>{0, 4, 128, 4}));
  EXPECT_EQ(config->index_layers, (std::vector<bool>{false, true, false, true}));
  EXPECT_EQ(config->sliding, (std::vector<bool>{true, false, false, false}));
  EXPECT_FLOAT_EQ(config->attn_scale, 1 / std::sqrt(48.0f));
  EXPECT_EQ(config->expert_limit, std::vector<float>(4, 2.0f));
  EXPECT_EQ(config->shared_limit, config->expert_limit);
  // Published files have an entry more than layers, for what drafts.
  EXPECT_TRUE(read(arch, {{ratios, list({4, 0, 4, 128, 0})}}));
  expect_refused(arch, {{ratios, std::nullopt}}, {arch + "." + ratios, "missing"});
  expect_refused(arch, {{ratios, list({0, 4, 128})}}, {arch + "." + ratios, "list of 4"});
  expect_refused(arch, {{ratios, u32(4)}}, {arch + "." + ratios, "list of 4"});
  expect_refused(arch, {{ratios, list({0, 4, 8, 4})}}, {arch + "." + ratios, "8 of layer 2", "0, 4 and 128"});
  expect_refused(arch, {{ratios, list({0, 0, 0, 0})}}, {arch + "." + ratios, "all 4 layers"});
  expect_refused(arch, {{"swiglu_clamp_exp", std::nullopt}}, {"deepseek4.swiglu_clamp_exp", "missing"});
  expect_refused(arch, {{"swiglu_clamp_exp", f32(-1)}}, {"deepseek4.swiglu_clamp_exp is -1"});
  expect_refused(arch, {{"swiglu_clamp_shexp", list({1})}}, {"deepseek4.swiglu_clamp_shexp", "list of 4"});
  expect_refused(arch, {{"hyper_connection.count", u32(2)}}, {"hyper_connection.count is 2", "runs 4"});
  expect_refused(arch, {{"attention.head_count_kv", u32(2)}}, {"attention.head_count_kv is 2", "runs 1"});
  expect_refused(arch, {{"attention.key_length", u32(40)}}, {"attention.key_length is 40", "multiples of 16"});
  expect_refused(arch, {{"attention.value_length", u32(32)}}, {"attention.value_length is 32", "48"});
  expect_refused(arch, {{"attention.indexer.key_length", u32(8)}}, {"indexer.key_length is 8", "16 rotated"});
  expect_refused(arch, {{"attention.output_lora_rank", u32(12)}}, {"output_lora_rank is 12", "multiples of 16"});
  expect_refused(arch, {{"attention.output_group_count", u32(3)}}, {"output_group_count is 3", "groups of 4 heads"});
  expect_refused(arch, {{"expert_gating_func", u32(2)}}, {"expert_gating_func is 2", "with 4 only"});
  // Files of the trunk may tell of layers that they do not have.
  const auto trunk = read(arch, {{"nextn_predict_layers", u32(1)}});
  ASSERT_TRUE(trunk) << trunk.error().message;
  EXPECT_EQ(trunk->n_layers, 4);
}

TEST(Config, MambaAmongOrBesideOthers) {
  const auto nemotron = read("nemotron_h", {});
  ASSERT_TRUE(nemotron) << nemotron.error().message;
  EXPECT_TRUE(nemotron->is_recurrent(0) && nemotron->is_stateless(1) && !nemotron->is_recurrent(1));
  EXPECT_TRUE(!nemotron->is_recurrent(2) && !nemotron->is_stateless(2));
  const auto experts = read("nemotron_h_moe", {});
  ASSERT_TRUE(experts) << experts.error().message;
  EXPECT_TRUE(experts->has_experts(1) && !experts->has_experts(0) && !experts->has_experts(2));
  EXPECT_EQ(experts->shared_width(), 48);
  const auto nano = read("nemotron_h", {{"attention.layer_norm_rms_epsilon", f32(3e-5f)}});
  ASSERT_TRUE(nano) << nano.error().message;
  EXPECT_FLOAT_EQ(nano->norm_eps, 3e-5f);
  const std::string widths = "nemotron_h.feed_forward_length";
  expect_refused("nemotron_h", {{"feed_forward_length", list({0, 0, 0, 0, 0, 0, 0})}}, {widths, "0 in all layers"});
  expect_refused("nemotron_h", {{"feed_forward_length", list({0, 80})}}, {widths, "2"});
  expect_refused("nemotron_h", {{"attention.head_count_kv", list({0, 0, 0, 0, 0, 0, 0})}},
                 {"nemotron_h.attention.head_count_kv is 0 in all 7 layers"});
  const auto falcon = read("falcon-h1", {});
  ASSERT_TRUE(falcon) << falcon.error().message;
  EXPECT_TRUE(!falcon->is_recurrent(0) && falcon->has_recurrence(0));
  for (const std::string arch : {"nemotron_h", "falcon-h1"}) {
    expect_refused(arch, {{"ssm.inner_size", u32(100)}}, {arch + ".ssm.inner_size", "100", "no multiple of 6"});
    expect_refused(arch, {{"ssm.state_size", u32(1024)}}, {"1024", "up to 512"});
    expect_refused(arch, {{"ssm.conv_kernel", u32(5)}}, {arch + ".ssm.conv_kernel", "2 to 4"});
  }
}

TEST(Config, Llama4) {
  const auto scout = read("llama4", {});
  ASSERT_TRUE(scout) << scout.error().message;
  EXPECT_EQ(scout->window_of(0), 8192);
  EXPECT_EQ(scout->window_of(3), 0);
  EXPECT_TRUE(scout->has_experts(1) && !scout->has_experts(0));
  const auto whole = read("llama4", {{"attention.sliding_window", u32(0)}});
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_FALSE(whole->any_sliding());
  expect_refused("llama4", {{"expert_used_count", u32(2)}}, {"llama4.expert_used_count is 2", "one expert"});
}

TEST(Config, KimiK3) {
  const auto kimi = read("kimi-k3", {});
  ASSERT_TRUE(kimi) << kimi.error().message;
  EXPECT_EQ(kimi->n_kept(0), 0);  // two layers to a residual
  EXPECT_EQ(kimi->n_kept(1), 1);
  EXPECT_EQ(kimi->n_kept(2), 1);
  EXPECT_EQ(kimi->n_kept(kimi->n_layers), 2);
  EXPECT_FLOAT_EQ(kimi->decay_bound, -5);
  const auto plain = read("kimi-k3", {{"attn_res.block_size", u32(0)}});
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(plain->n_kept(plain->n_layers), 0);
  expect_refused("kimi-k3", {{"kda.gate_lower_bound", f32(0.5f)}}, {"kimi-k3.kda.gate_lower_bound", "0.5"});
  expect_refused("kimi-k3", {{"activation.situ_beta", f32(0)}}, {"kimi-k3.activation.situ_beta", "0"});
  expect_refused("kimi-k3", {{"activation.situ_linear_beta", std::nullopt}}, {"kimi-k3.activation.situ_linear_beta"});
  expect_refused("kimi-k3", {{"attn_res.block_size", u32(-1)}}, {"kimi-k3.attn_res.block_size"});
  expect_refused("kimi-k3", {{"expert_latent_length", u32(1u << 30)}}, {"kimi-k3.expert_latent_length"});
}

TEST(Config, LayersThatAreRotated) {
  const auto cohere = read("cohere2", {});
  ASSERT_TRUE(cohere) << cohere.error().message;
  EXPECT_FLOAT_EQ(cohere->logit_divisor, 2.5f);
  EXPECT_EQ(cohere->window_of(2), 9);
  EXPECT_EQ(cohere->window_of(3), 0);
}

TEST(Config, KeysOfAnActivation) {
  const auto apertus = read("apertus", {});
  ASSERT_TRUE(apertus) << apertus.error().message;
  ASSERT_EQ(apertus->xielu.size(), 4u);
  EXPECT_FLOAT_EQ(static_cast<float>(apertus->xielu[2].alpha_n), 1.1f);
  EXPECT_EQ(apertus->xielu[3].beta, 0.5);
  for (const char* key : {"xielu.alpha_p", "xielu.alpha_n", "xielu.beta", "xielu.eps"}) {
    expect_refused("apertus", {{key, std::nullopt}}, {"required key " + std::string(key) + " is missing"});
    expect_refused("apertus", {{key, text("x")}}, {"key " + std::string(key), "no number"});
    expect_refused("apertus", {{key, f32(1e4)}}, {"key " + std::string(key) + " is 10000"});
  }
}

TEST(Config, LayersWithHeadsOfTheirOwn) {
  const auto mimo = read("mimo2", {});
  ASSERT_TRUE(mimo) << mimo.error().message;
  EXPECT_EQ(mimo->n_heads[0], 6);
  EXPECT_EQ(mimo->n_heads[1], 4);
  EXPECT_EQ(mimo->window_of(0), 0);
  EXPECT_EQ(mimo->window_of(1), 9);
  expect_refused("mimo2", {{"attention.sliding_window_pattern", std::nullopt}}, {"sliding_window_pattern", "missing"});
  expect_refused("llama", {{"attention.value_scale", f32(0.7)}}, {"llama.attention.value_scale"});
}

TEST(Config, WhatTheNumberOfLayersSays) {
  EXPECT_FALSE(read("command-r", {})->head_gains);
  EXPECT_TRUE(read("command-r", {{"block_count", u32(64)}})->head_gains);
  const auto baichuan = read("baichuan", {});
  ASSERT_TRUE(baichuan) << baichuan.error().message;
  EXPECT_TRUE(!baichuan->alibi && baichuan->rotates);
  const auto large = read("baichuan", {{"block_count", u32(40)}});
  ASSERT_TRUE(large) << large.error().message;
  EXPECT_TRUE(large->alibi && !large->rotates);
  expect_refused("exaone4", {{"block_count", u32(64)}}, {"exaone4.attention.sliding_window is missing", "64"});
  const auto exaone = read("exaone4", {{"block_count", u32(64)}, {"attention.sliding_window", u32(9)}});
  ASSERT_TRUE(exaone) << exaone.error().message;
  EXPECT_EQ(exaone->window_of(2), 9);
  EXPECT_EQ(exaone->window_of(3), 0);
  const auto minicpm = read(
      "minicpm", {{"embedding_scale", std::nullopt}, {"residual_scale", std::nullopt}, {"logit_scale", std::nullopt}});
  ASSERT_TRUE(minicpm);
  EXPECT_EQ(minicpm->embedding_scale, 12);
  EXPECT_FLOAT_EQ(minicpm->residual_scale, 0.7f);
  EXPECT_FLOAT_EQ(minicpm->logit_divisor, 96 / 256.0f);
}

TEST(Config, Latents) {
  for (const std::string arch : {"deepseek2", "mistral4", "glm-dsa", "deepseek32"}) {
    const auto config = read(arch, {});
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->k_dim, config->latent_dim + config->rope_dims);
    EXPECT_EQ(config->v_dim, config->latent_dim);
    EXPECT_EQ(config->n_kv_heads.max(), 1);
    expect_refused(arch, {{"attention.head_count_kv", u32(5)}}, {"head_count_kv is 5", "wanted 1 or"});
    expect_refused(arch, {{"attention.kv_lora_rank", u32(40)}}, {"latent of 40", "multiples of 16"});
    expect_refused(arch, {{"attention.value_length_mla", u32(24)}}, {"24 value dimensions", "multiples of 16"});
    expect_refused(arch, {{"attention.key_length_mla", u32(44)}}, {"unrotated", "multiples of 16"});
    expect_refused(arch, {{"rope.dimension_count", std::nullopt}}, {"rope.dimension_count"});
    expect_refused(arch, {{"expert_feed_forward_length", std::nullopt}}, {"expert_feed_forward_length is missing"});
    expect_refused(arch, {{"expert_used_count", std::nullopt}}, {"expert_used_count is 0"});
    expect_refused(arch, {{"attention.temperature_scale", f32(0.1)}, {"attention.temperature_length", std::nullopt}},
                   {"attention.temperature_length is missing"});
  }
  // Files from before the cache was one row have the dimensions of a head where others have those of the row.
  const auto old = read("deepseek2", {{"attention.key_length_mla", std::nullopt},
                                      {"attention.value_length_mla", std::nullopt},
                                      {"attention.key_length", u32(40)},
                                      {"attention.value_length", u32(16)},
                                      {"attention.head_count_kv", u32(6)}});
  ASSERT_TRUE(old) << old.error().message;
  EXPECT_EQ(old->head_k_dim, 40);
  EXPECT_EQ(old->head_v_dim, 16);
  EXPECT_EQ(old->k_dim, 56);
}

TEST(Config, Indexers) {
  const auto glm = read("glm-dsa", {});
  ASSERT_TRUE(glm) << glm.error().message;
  EXPECT_EQ(glm->index_layers, std::vector<bool>({true, true, true, false, false, false, true}));
  const std::string types = "attention.indexer.types";
  const auto layers_of = [&](const std::string& arch, int64_t context) {
    const auto config = read(arch, {{types, std::nullopt}, {"context_length", u32(context)}});
    if (!config) ADD_FAILURE() << config.error().message;
    return config->index_layers;
  };
  EXPECT_EQ(layers_of("glm-dsa", 1048575), std::vector<bool>(7, true));
  EXPECT_EQ(layers_of("glm-dsa", 1048576),
            std::vector<bool>({true, true, true, false, false, false, true}));  // GLM-5.2
  EXPECT_EQ(layers_of("deepseek32", 1048576), std::vector<bool>(4, true));
  expect_refused("glm-dsa", {{types, list({1, 1})}}, {types, "list of 7"});
  expect_refused("glm-dsa", {{types, list({0, 1, 1, 1, 1, 1, 1})}}, {types, "layer 0"});
  for (const std::string arch : {"glm-dsa", "deepseek32"}) {
    for (const char* key : {"attention.q_lora_rank", "attention.key_length_mla", "attention.value_length_mla"}) {
      expect_refused(arch, {{key, std::nullopt}}, {key, "is missing"});
    }
    expect_refused(arch, {{"attention.indexer.key_length", u32(36)}}, {"key_length is 36", "multiples of 8"});
    expect_refused(arch, {{"attention.indexer.key_length", u32(8)}, {"rope.dimension_count", u32(16)}},
                   {"key_length is 8", "16 rotated"});
    expect_refused(arch, {{"attention.indexer.top_k", u32(0)}}, {"top_k is 0"});
  }
  expect_refused("deepseek32", {{"expert_gating_func", std::nullopt}}, {"expert_gating_func is missing"});
}

TEST(Config, LayersOfTwoKinds) {
  const auto config = read("gemma4", {});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->k_dim_of(2), 16);
  EXPECT_EQ(config->k_dim_of(3), 24);
  EXPECT_EQ(config->kv_layer(1), 1);
  EXPECT_EQ(config->kv_layer(4), 2);  // the last that slides as it does
  EXPECT_EQ(config->kv_layer(6), 3);
  EXPECT_EQ(config->attn_scale, 1);
  const std::string pattern = "attention.sliding_window_pattern", shared = "attention.shared_kv_layers";
  expect_refused("gemma4", {{pattern, std::nullopt}}, {"gemma4." + pattern, "missing"});
  expect_refused("gemma4", {{shared, u32(7)}}, {shared, "no layer before layer 0"});
  expect_refused("gemma4", {{shared, u32(4)}}, {shared, "no layer before layer 3"});  // the first that sees everything
  expect_refused("gemma4", {{"attention.key_length_swa", u32(20)}}, {"20", "multiples of 8"});
  expect_refused("gemma4", {{"rope.dimension_count_swa", u32(18)}}, {"rope.dimension_count_swa is 18"});
  expect_refused("gemma4", {{"expert_count", u32(8)}, {"expert_used_count", u32(2)}},
                 {"expert_feed_forward_length is missing"});
}

/// How YaRN scales scores and rotations, at the sizes of published models.
TEST(Config, LatentScale) {
  const auto scaled = [](const std::string& arch, const char* type, double factor, double log_multiplier) {
    const auto config = read(arch, {{"attention.key_length_mla", u32(192)},
                                    {"rope.dimension_count", u32(64)},
                                    {"rope.scaling.type", text(type)},
                                    {"rope.scaling.factor", f32(factor)},
                                    {"rope.scaling.yarn_log_multiplier", f32(log_multiplier)}});
    if (!config) ADD_FAILURE() << config.error().message;
    return std::pair(static_cast<double>(config->attn_scale), config->yarn_magnitude);
  };
  EXPECT_NEAR(scaled("deepseek2", "yarn", 40, 0.1).first, 0.1352338, 1e-7);     // DeepSeek-V3
  EXPECT_NEAR(scaled("deepseek2", "yarn", 40, 0.0707).first, 0.1147214, 1e-7);  // V2-Lite
  EXPECT_NEAR(scaled("deepseek2", "yarn", 64, 0.1).first, 0.1446796, 1e-7);     // Kimi K2
  EXPECT_NEAR(scaled("deepseek2", "none", 64, 0.1).first, 0.0721688, 1e-7);
  EXPECT_EQ(scaled("deepseek2", "yarn", 40, 0.0707).second, 1);
  EXPECT_NEAR(scaled("deepseek2", "yarn", 40, 0).second, 1.368888, 1e-6);
  EXPECT_NEAR(scaled("mistral4", "yarn", 40, 0.0707).first, 0.1352338, 1e-7);
  EXPECT_NEAR(scaled("mistral4", "yarn", 40, 0.0707).second, 1.368888 / 1.260804, 1e-6);
}

TEST(Config, PerLayerNumbers) {
  const auto config = read("llama", {{"attention.head_count_kv", list({2, 3, 6, 1})}});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->n_kv_heads[2], 6);
  EXPECT_EQ(config->n_kv_heads.max(), 6);
}

TEST(Config, RopeScaling) {
  expect_refused("llama", {{"rope.scaling.type", text("dynamic")}}, {"rope.scaling.type", "dynamic", "yarn"});
  expect_refused("llama", {{"rope.scaling.type", text("yarn")}}, {"rope.scaling.factor", "YaRN"});
  const auto linear = read("qwen3", {{"rope.scaling.type", text("linear")}, {"rope.scaling.factor", f32(4)}});
  ASSERT_TRUE(linear);
  EXPECT_EQ(linear->rope_scaling, RopeScaling::kLinear);
  const auto none = read("qwen3", {{"rope.scaling.type", text("none")}, {"rope.scaling.factor", f32(4)}});
  ASSERT_TRUE(none);
  EXPECT_EQ(none->rope_scaling, RopeScaling::kNone);
  const auto old = read("llama", {{"rope.scale_linear", f32(2)}});
  ASSERT_TRUE(old);
  EXPECT_EQ(old->rope_scaling, RopeScaling::kLinear);
  EXPECT_EQ(old->rope_factor, 2);
}

TEST(Config, WhatIsNotRunIsRefused) {
  expect_refused("gemma2", {{"expert_count", u32(8)}}, {"gemma2.expert_count", "mixture-of-experts"});
  for (const char* dense : {"llama", "gemma2"}) {
    for (uint32_t count : {0, 1}) EXPECT_TRUE(read(dense, {{"expert_count", u32(count)}})) << dense;  // said aloud
  }
  expect_refused("qwen3moe", {{"expert_shared_feed_forward_length", u32(64)}}, {"expert_shared", "shared experts"});
  expect_refused("olmoe", {{"expert_weights_scale", f32(2.5)}}, {"expert_weights_scale"});
  EXPECT_TRUE(read("olmoe", {{"expert_weights_scale", f32(1)}}));
  expect_refused("llama", {{"attention.clamp_kqv", f32(8)}}, {"clamp_kqv"});
  expect_refused("qwen3", {{"attention.scale", f32(0.1)}}, {"attention.scale"});
  expect_refused("qwen2", {{"logit_scale", f32(0.5)}}, {"logit_scale"});
  expect_refused("qwen3", {{"attention.causal", Value{ValueType::kBool, false}}}, {"attention.causal"});
}

TEST(Config, Experts) {
  expect_refused("llama", {{"expert_count", u32(8)}}, {"llama.expert_used_count", "0", "1 to 8"});
  for (const char* arch : {"bailingmoe", "deepseek", "dots1", "ernie4_5-moe", "glm4moe", "gpt-oss", "minimax-m2",
                           "olmoe", "qwen2moe", "qwen3moe"}) {
    expect_refused(arch, {{"expert_count", std::nullopt}}, {"expert_count", "missing"});
    expect_refused(arch, {{"expert_count", u32(1)}}, {"expert_count is 1"});
    expect_refused(arch, {{"expert_count", u32(1025)}}, {"expert_count is 1025"});
    expect_refused(arch, {{"expert_used_count", std::nullopt}}, {"expert_used_count", "missing"});
    expect_refused(arch, {{"expert_used_count", u32(0)}}, {"expert_used_count is 0", "1 to 8"});
    expect_refused(arch, {{"expert_used_count", u32(9)}}, {"expert_used_count is 9", "1 to 8"});
  }
  // Files may say what the family does anyway.
  EXPECT_TRUE(read("olmoe", {{"expert_gating_func", u32(1)}, {"expert_weights_norm", Value{ValueType::kBool, false}}}));
  EXPECT_TRUE(read("gpt-oss", {{"expert_gating_func", u32(3)}}));
  EXPECT_TRUE(read("qwen3moe", {{"expert_gating_func", u32(0)}, {"expert_weights_norm", u32(1)}}));
  expect_refused("gpt-oss", {{"expert_gating_func", u32(1)}}, {"gpt-oss.expert_gating_func is 1", "with 3 only"});
  expect_refused("olmoe", {{"expert_weights_norm", u32(1)}}, {"olmoe.expert_weights_norm is true", "with false only"});
  expect_refused("olmoe", {{"expert_weights_norm", text("yes")}}, {"olmoe.expert_weights_norm", "bool"});
  expect_refused("gpt-oss", {{"attention.sliding_window", std::nullopt}}, {"sliding_window", "missing"});
  expect_refused("gpt-oss", {{"expert_feed_forward_length", std::nullopt}}, {"expert_feed_forward_length", "missing"});
  const auto oss = read("gpt-oss", {}), rounded = read("gpt-oss", {}, {{"rope.scaling.yarn_truncate", "1"}});
  ASSERT_TRUE(oss && rounded);
  EXPECT_EQ(oss->yarn_truncate, 0);
  EXPECT_EQ(rounded->yarn_truncate, 1);
  EXPECT_GT(oss->window_of(0), 0);
  EXPECT_EQ(oss->window_of(1), 0);
  const auto qwen = read("qwen3moe", {{"expert_feed_forward_length", std::nullopt}});
  ASSERT_TRUE(qwen);
  EXPECT_EQ(qwen->expert_ff_dim, qwen->ff_dim[0] / 3);
}

TEST(Config, GroupsOfExperts) {
  const auto read_groups = [](int64_t n_groups, int64_t n_used) {
    return read("glm4moe", {{"expert_group_count", u32(n_groups)}, {"expert_group_used_count", u32(n_used)}});
  };
  const auto refused = [&](int64_t n_groups, int64_t n_used, std::initializer_list<std::string> words) {
    expect_refused("glm4moe", {{"expert_group_count", u32(n_groups)}, {"expert_group_used_count", u32(n_used)}}, words);
  };
  for (int64_t none : {0, 1}) {
    const auto config = read_groups(none, none);
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->n_groups, 1);
    EXPECT_EQ(config->n_used_groups, 1);
  }
  const auto config = read_groups(4, 2);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->n_groups, 4);
  EXPECT_EQ(config->n_used_groups, 2);
  EXPECT_TRUE(read_groups(2, 2));
  refused(3, 2, {"glm4moe.expert_group_count is 3", "equal groups", "8, which expert_count is"});
  refused(8, 4, {"glm4moe.expert_group_count is 8", "at least 2"});
  refused(16, 4, {"glm4moe.expert_group_count is 16", "at least 2"});
  refused(4, 0, {"glm4moe.expert_group_used_count is 0", "up to 4 groups of 2"});
  refused(4, 5, {"glm4moe.expert_group_used_count is 5", "up to 4 groups of 2"});
  refused(4, 1, {"glm4moe.expert_group_used_count is 1", "hold the 3 of expert_used_count"});
}

TEST(Config, LayersWithExperts) {
  const auto layers = [](const Result<ModelConfig>& config) {
    std::string out;
    for (int64_t layer = 0; config && layer < config->n_layers; ++layer) out += config->has_experts(layer) ? 'x' : '-';
    return config ? out : config.error().message;
  };
  EXPECT_EQ(layers(read("deepseek", {})), "--xx");
  EXPECT_EQ(layers(read("deepseek", {{"leading_dense_block_count", std::nullopt}})), "xxxx");
  EXPECT_EQ(layers(read("ernie4_5-moe", {})), "-xxx");
  EXPECT_EQ(layers(read("ernie4_5-moe", {{"interleave_moe_layer_step", u32(2)}})), "-x-x");
  EXPECT_EQ(layers(read("ernie4_5-moe", {{"interleave_moe_layer_step", u32(3)}})), "--x-");
  expect_refused("ernie4_5-moe", {{"interleave_moe_layer_step", u32(0)}}, {"interleave_moe_layer_step is 0"});
  expect_refused("ernie4_5-moe", {{"interleave_moe_layer_step", std::nullopt}}, {"interleave", "missing"});
  expect_refused("qwen3moe", {{"leading_dense_block_count", u32(1)}}, {"leading_dense_block_count is 1"});
  expect_refused("qwen3moe", {{"interleave_moe_layer_step", u32(2)}}, {"interleave_moe_layer_step is 2"});
  for (const char* arch : {"granite", "granitemoe"}) {
    EXPECT_EQ(layers(read(arch, {{"expert_count", u32(8)}, {"expert_used_count", u32(2)}})), "xxxx");
    for (const std::optional<Value>& none : {std::optional<Value>(), std::optional(u32(0)), std::optional(u32(1))}) {
      EXPECT_EQ(layers(read(arch, {{"expert_count", none}, {"expert_used_count", none}})), "----");
    }
  }
}

TEST(Config, Multipliers) {
  const auto granite = read("granite", {});
  ASSERT_TRUE(granite) << granite.error().message;
  EXPECT_EQ(granite->residual_scale, 0.6f);
  EXPECT_EQ(granite->logit_divisor, 0.4f);
  EXPECT_EQ(granite->attn_scale, 0.4f);
  EXPECT_TRUE(granite->rotates);
  const auto plain = read("granite", {{"attention.scale", f32(0)}, {"rope.scaling.finetuned", u32(0)}});
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->attn_scale, 0.25f);
  EXPECT_FALSE(plain->rotates);
  expect_refused("granite", {{"logit_scale", std::nullopt}}, {"granite.logit_scale", "missing"});
  expect_refused("granitemoe", {{"logit_scale", f32(0)}}, {"granitemoe.logit_scale is 0"});
  expect_refused("llama", {{"residual_scale", f32(0.5)}}, {"llama.residual_scale"});
}

TEST(Config, RoutingByKey) {
  const auto glm = read("glm4moe", {{"expert_gating_func", std::nullopt}, {"expert_weights_norm", std::nullopt}});
  ASSERT_TRUE(glm) << glm.error().message;
  EXPECT_EQ(glm->gating, static_cast<int64_t>(Gating::kSigmoid));
  EXPECT_FALSE(glm->renormalize);
  EXPECT_EQ(glm->shared_width(), 96);
  EXPECT_FALSE(glm->has_experts(0));
  EXPECT_TRUE(glm->has_experts(1));
  EXPECT_EQ(glm->n_layers, 4);  // the fifth predicts further tokens
  const auto softmax = read("glm4moe", {{"expert_gating_func", u32(1)}});
  ASSERT_TRUE(softmax);
  EXPECT_EQ(softmax->gating, static_cast<int64_t>(Gating::kSoftmax));
  expect_refused("glm4moe", {{"expert_gating_func", u32(4)}}, {"glm4moe.expert_gating_func is 4", "sigmoid"});
  expect_refused("glm4moe", {{"expert_gating_func", u32(0)}}, {"glm4moe.expert_gating_func is 0"});
  expect_refused("glm4moe", {{"expert_weights_scale", f32(-1)}}, {"glm4moe.expert_weights_scale is -1"});
  expect_refused("glm4moe", {{"expert_shared_count", std::nullopt}}, {"glm4moe.expert_shared_count", "missing"});
  const auto said = read("glm4moe", {}, {{"expert_weights_norm", "false"}});
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_FALSE(said->renormalize);
  expect_refused("glm4moe", {}, {"expert_weights_norm=maybe", "true or false"}, {{"expert_weights_norm", "maybe"}});
}

TEST(Config, SlidingLayers) {
  const auto gemma3 = read("gemma3", {});
  ASSERT_TRUE(gemma3);
  EXPECT_EQ(gemma3->window_of(0), gemma3->window);
  EXPECT_EQ(gemma3->window_of(5), 0);  // one of six sees everything
  const auto listed = read("gemma3", {{"attention.sliding_window_pattern", list({0, 1, 0, 1, 0, 1, 0, 1})}});
  ASSERT_TRUE(listed);
  EXPECT_EQ(listed->window_of(0), 0);
  EXPECT_EQ(listed->window_of(1), listed->window);
  expect_refused("gemma3", {{"attention.sliding_window_pattern", list({1, 0})}}, {"sliding_window_pattern", "2", "8"});
  const auto none = read("gemma3", {{"attention.sliding_window", std::nullopt}});
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->any_sliding());
  const auto gemma2 = read("gemma2", {{"attention.sliding_window", std::nullopt},
                                      {"attn_logit_softcapping", std::nullopt},
                                      {"final_logit_softcapping", std::nullopt}});
  ASSERT_TRUE(gemma2);
  EXPECT_EQ(gemma2->window, 4096);
  EXPECT_EQ(gemma2->attn_softcap, 50);
  EXPECT_EQ(gemma2->final_softcap, 30);
}

TEST(Config, DraftLayersAreLeftOut) {
  const auto config = read("llama", {{"nextn_predict_layers", u32(1)}});
  ASSERT_TRUE(config);
  EXPECT_EQ(config->n_layers, 3);
  EXPECT_EQ(config->n_file_layers, 4);
}

TEST(Config, Overrides) {
  const auto config = read("llama", {}, {{"rope.freq_base", "5e5"}, {"llama.context_length", "99"}});
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->rope_base, 5e5f);
  EXPECT_EQ(config->context_length, 99);
  expect_refused("llama", {}, {"rope.freq_base", "x"}, {{"rope.freq_base", "x"}});
  expect_refused("llama", {}, {"context_length", "1.5", "whole"}, {{"context_length", "1.5"}});
  expect_refused("llama", {}, {"no_such_key"}, {{"no_such_key", "1"}});
  expect_refused("llama", {}, {"llama.context_length", "0"}, {{"context_length", "0"}});
  const auto yarn = read("llama", {}, {{"rope.scaling.type", "yarn"}, {"rope.scaling.factor", "4"}});
  ASSERT_TRUE(yarn) << yarn.error().message;
  EXPECT_EQ(yarn->rope_scaling, RopeScaling::kYarn);
}

TEST(Config, Encoders) {
  const auto bert = read("bert", {});
  ASSERT_TRUE(bert) << bert.error().message;
  EXPECT_FALSE(bert->causal);
  EXPECT_EQ(bert->pooling, static_cast<int64_t>(Pooling::kMean));
  EXPECT_TRUE(read("bert", {{"attention.layer_norm_epsilon", f32(9.999999960041972e-13)}}));  // 1e-12 as f32
  for (const Value& value : {u32(5), text("mean")}) {
    expect_refused("bert", {{"pooling_type", value}}, {"bert.pooling_type"});
  }
  expect_refused("bert", {{"attention.causal", Value{ValueType::kBool, true}}},
                 {"bert.attention.causal", "with causal"});
  expect_refused("llama", {{"attention.causal", Value{ValueType::kBool, false}}},
                 {"llama.attention.causal", "without"});
  const auto gemma = read("gemma-embedding", {});
  ASSERT_TRUE(gemma) << gemma.error().message;
  EXPECT_EQ(gemma->window_of(4), 12);
  EXPECT_EQ(gemma->window_of(5), 0);
  expect_refused("gemma-embedding", {{"dense_3_feat_in", u32(96)}}, {"dense_2_feat_out", "144", "96"});
  const auto modern = read("modern-bert", {});
  ASSERT_TRUE(modern) << modern.error().message;
  for (const int64_t layer : {0, 3, 6}) EXPECT_EQ(modern->window_of(layer), 0) << layer;
  for (const int64_t layer : {1, 2, 4, 5}) EXPECT_EQ(modern->window_of(layer), 12) << layer;
  expect_refused("modern-bert", {{"hidden_activation", text("relu")}}, {"modern-bert.hidden_activation", "'relu'"});
  const auto moe = read("nomic-bert-moe", {});
  ASSERT_TRUE(moe) << moe.error().message;
  EXPECT_TRUE(!moe->has_experts(0) && moe->has_experts(1) && !moe->has_experts(2));
  expect_refused("nomic-bert-moe", {{"moe_every_n_layers", u32(3)}}, {"nomic-bert-moe.moe_every_n_layers", "3"});
}

TEST(Config, ThePageOfModelsHasEachArchitecture) {
  std::ifstream in(STOKER_GOLDEN_DIR "/../../docs/models.md");
  const std::string page((std::istreambuf_iterator<char>(in)), {});
  for (const std::string& arch : architectures()) {
    const size_t row = page.find("`" + arch + "`");
    EXPECT_NE(row, std::string::npos) << arch;
  }
}

TEST(Config, UnknownArchitectureListsTheKnown) {
  gguf::Writer writer("mamba");
  const std::string bytes = *writer.bytes();
  const auto file = gguf::File::parse(std::as_bytes(std::span(bytes)), "made");
  ASSERT_TRUE(file);
  const auto config = read_config(*file);
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, ErrorCode::kUnsupported);
  for (const char* word : {"mamba", "llama", "qwen3"}) EXPECT_NE(config.error().message.find(word), std::string::npos);
}

}  // namespace
}  // namespace stoker::model
