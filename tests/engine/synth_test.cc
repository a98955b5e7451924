#include "engine/synth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/file.h"
#include "engine/synth_blocks.h"
#include "engine/synth_router.h"
#include "gguf/verify.h"
#include "model/arch/arch.h"
#include "model/entry.h"
#include "quant/all.h"
#include "tests/base/temp_dir.h"

namespace stoker::engine {
namespace {

Synth planned(SynthOptions options) {
  auto synth = Synth::plan(std::move(options));
  if (synth) return std::move(*synth);
  ADD_FAILURE() << synth.error().message;
  std::abort();
}

void write(const Synth& synth, const std::string& path, int threads = 1) {
  Ledger ledger;
  auto pool = Pool::create({.n_threads = threads});
  ASSERT_TRUE(pool);
  const Status status = synth.write(path, **pool, ledger);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(ledger.used(), 0u);
}

gguf::File written(const SynthOptions& options, const std::string& path, int threads = 1) {
  write(planned(options), path, threads);
  auto file = gguf::File::open(path);
  if (file) return std::move(*file);
  ADD_FAILURE() << file.error().message;
  std::abort();
}

std::vector<std::byte> tensor_bytes(const gguf::File& file, std::string_view name) {
  const gguf::TensorInfo* tensor = file.find_tensor(name);
  if (!tensor) return {};
  std::vector<std::byte> out(tensor->bytes);
  EXPECT_TRUE(file.read_tensor(*tensor, 0, out));
  return out;
}

std::vector<float> tensor_values(const gguf::File& file, std::string_view name) {
  const gguf::TensorInfo& tensor = *file.find_tensor(name);
  std::vector<float> out(static_cast<size_t>(tensor.n_elements()));
  EXPECT_TRUE(quant::dequantize_row(tensor.type(), tensor_bytes(file, name), tensor.n_elements(), out.data()));
  return out;
}

std::string type_of(const gguf::File& file, std::string_view name) {
  return std::string(gguf::type_name(file.find_tensor(name)->type()));
}

TEST(SynthBlocks, AreValidAndSpreadAsAskedForInEveryType) {
  std::set<gguf::TensorType> types;
  for (const SynthType& type : synth_types()) {
    for (const SynthRule& rule : type.rules) types.insert(rule.type);
  }
  for (const gguf::TensorType type : types) {
    for (const float deviation : {1.2f / 128, 0.05f, 20.0f}) {
      constexpr size_t kWeights = 1 << 17;
      const gguf::TypeInfo info = *gguf::type_info(type);
      std::vector<std::byte> bytes(kWeights / static_cast<size_t>(info.n_weights) * static_cast<size_t>(info.n_bytes));
      SynthBlocks(type, deviation).fill(SynthRandom(7), bytes);
      EXPECT_FALSE(gguf::verify_tensor(type, bytes)) << info.name;
      std::vector<float> values(kWeights);
      ASSERT_TRUE(quant::dequantize_row(type, bytes, kWeights, values.data()));
      double sum = 0, squares = 0;
      for (const float value : values) {
        sum += static_cast<double>(value);
        squares += static_cast<double>(value) * static_cast<double>(value);
      }
      const double found = std::sqrt(squares / kWeights) / static_cast<double>(deviation);
      // Scales of MXFP4 are powers of two.
      EXPECT_GT(found, type == gguf::TensorType::kMXFP4 ? 0.9 : 0.97) << info.name << " " << deviation;
      EXPECT_LT(found, type == gguf::TensorType::kMXFP4 ? 2.0 : 1.03) << info.name << " " << deviation;
      EXPECT_LT(std::fabs(sum / kWeights), 0.03 * found * static_cast<double>(deviation)) << info.name;
    }
  }
}

TEST(SynthRouter, SharesFollowTheLaw) {
  const std::vector<double> shares = zipf_shares(64, 8, 1);
  double sum = 0;
  for (const double share : shares) sum += share;
  EXPECT_NEAR(sum, 8, 1e-9);
  EXPECT_NEAR(shares[0], kMostChosen, 1e-9);
  for (size_t i = 2; i < shares.size(); ++i) EXPECT_NEAR(shares[i] / shares[1], 2.0 / static_cast<double>(i + 1), 1e-9);
  for (const double share : zipf_shares(16, 4, 0)) EXPECT_NEAR(share, 0.25, 1e-12);
  for (const float offset : router_offsets(zipf_shares(16, 4, 0), 4)) EXPECT_EQ(offset, 0);
}

/// How often each of the experts is among the `used` largest of logits(token, expert).
template <class Logits>
std::vector<double> count_choices(int64_t n_tokens, size_t n_experts, size_t used, Logits logits) {
  std::vector<double> shares(n_experts);
  for (int64_t token = 0; token < n_tokens; ++token) {
    std::vector<std::pair<float, size_t>> all;
    for (size_t e = 0; e < n_experts; ++e) all.emplace_back(-logits(token, e), e);
    std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(used), all.end());
    for (size_t i = 0; i < used; ++i) shares[all[i].second] += 1.0 / static_cast<double>(n_tokens);
  }
  return shares;
}

/// Sums of twelve uniform numbers are normal enough.
float normal(SynthRandom& random) {
  float sum = 0;
  for (int i = 0; i < 12; ++i) sum += random.uniform();
  return sum * 0.28867513f;
}

TEST(SynthRouter, OffsetsGiveTheShares) {
  for (const auto& [n, used, exponent] : {std::tuple<int, int, double>{8, 2, 1.0}, {32, 4, 0.5}, {64, 8, 1.2}}) {
    const std::vector<double> wanted = zipf_shares(n, used, exponent);
    const std::vector<float> offsets = router_offsets(wanted, used);
    SynthRandom random(3);
    const auto got = count_choices(20000, wanted.size(), static_cast<size_t>(used),
                                   [&](int64_t, size_t e) { return offsets[e] + normal(random); });
    for (size_t e = 0; e < got.size(); ++e) EXPECT_NEAR(got[e], wanted[e], 0.012) << n << " experts, " << e;
  }
}

/// What the router of the first layer sees of each token, attention left out: the normalised embedding.
std::vector<double> first_layer_choices(const gguf::File& file, const std::string& gain_name) {
  const std::vector<float> embedding = tensor_values(file, "token_embd.weight");
  const std::vector<float> router = tensor_values(file, "blk.0.ffn_gate_inp.weight");
  const std::vector<float> gain = tensor_values(file, gain_name);
  std::vector<float> bias(16);
  if (file.find_tensor("blk.0.ffn_gate_inp.bias")) bias = tensor_values(file, "blk.0.ffn_gate_inp.bias");
  const size_t dim = gain.size();
  const auto logit = [&](int64_t token, size_t e) {
    const float* x = embedding.data() + static_cast<size_t>(token) * dim;
    double squares = 0, sum = 0;
    for (size_t i = 0; i < dim; ++i) {
      squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
      sum += static_cast<double>(x[i]) * static_cast<double>(gain[i]) * static_cast<double>(router[e * dim + i]);
    }
    return static_cast<float>(sum / std::sqrt(squares / static_cast<double>(dim))) + bias[e];
  };
  return count_choices(512, 16, 4, logit);
}

TEST(SynthRouter, FilesRouteByTheLaw) {
  const test::TempDir folder;
  for (const auto& [shape, gain] : {std::pair<const char*, const char*>{"tiny-olmoe", "blk.0.ffn_norm.weight"},
                                    {"tiny-gpt-oss", "blk.0.post_attention_norm.weight"}}) {
    for (const char* type : {"q8_0", "q4_k_m"}) {
      for (const double zipf : {0.0, 0.8}) {
        const auto file = written({.shape = shape, .type = type, .zipf = zipf}, folder / "m.gguf");
        std::vector<double> got = first_layer_choices(file, gain);
        std::sort(got.rbegin(), got.rend());
        const std::vector<double> wanted = zipf_shares(16, 4, zipf);
        // 512 tokens: a standard error of 2 percent; sorting adds to it, and so does what the mark costs in precision.
        for (size_t i = 0; i < got.size(); ++i)
          EXPECT_NEAR(got[i], wanted[i], 0.075) << shape << " " << type << " " << zipf << " rank " << i;
      }
    }
  }
}

TEST(SynthRouter, LayersPreferDifferentExperts) {
  const test::TempDir folder;
  const auto file = written({.shape = "tiny-gpt-oss", .zipf = 1}, folder / "m.gguf");
  const auto first = tensor_values(file, "blk.0.ffn_gate_inp.bias"),
             second = tensor_values(file, "blk.1.ffn_gate_inp.bias");
  EXPECT_NE(first, second);
  EXPECT_EQ(std::multiset<float>(first.begin(), first.end()), std::multiset<float>(second.begin(), second.end()));
}

TEST(Synth, HasATinyShapeOfEveryFamilyAndItRuns) {
  const test::TempDir folder;
  std::set<std::string_view> families;
  for (const SynthShape& shape : synth_shapes()) {
    if (!shape.name.starts_with("tiny-")) continue;
    families.insert(shape.arch);
    for (const double zipf : {0.0, 1.0}) {
      const std::string path = folder / "m.gguf";
      auto synth = Synth::plan({.shape = std::string(shape.name), .zipf = zipf});
      if (!synth) continue;  // no experts
      write(*synth, path);
      auto decoder = model::Decoder::from_gguf(path, {.positions = 64, .max_rows = 16});
      ASSERT_TRUE(decoder) << shape.name << ": " << decoder.error().message;
      auto state = (*decoder)->new_state();
      const int32_t tokens[] = {0, 511, 99, 5, 5, 77, 300, 256, 12};
      const auto rows = (*decoder)->forward_batch(tokens, 0, state);
      ASSERT_TRUE(rows) << shape.name << ": " << rows.error().message;
      EXPECT_NE((*rows)[0], (*rows)[1]);
    }
  }
  for (const model::Arch* arch : model::all_archs()) {
    model::ModelConfig config;
    arch->defaults(config);
    if (!config.causal) continue;  // Of encoders there are none.
    EXPECT_TRUE(families.contains(arch->name)) << arch->name;
  }
}

TEST(Synth, HasThePublishedNumbersOfParameters) {
  const std::map<std::string, double> published = {{"smollm2-135m", 134.5e6},
                                                   {"smollm2-360m", 361.8e6},
                                                   {"smollm2-1.7b", 1711e6},
                                                   {"llama-3.2-1b", 1.236e9},
                                                   {"llama-3.2-3b", 3.21e9},
                                                   {"llama-3.1-8b", 8.03e9},
                                                   {"llama-3.3-70b", 70.6e9},
                                                   {"mistral-7b", 7.25e9},
                                                   {"gemma2-2b", 2.61e9},
                                                   {"gemma3-270m", 268e6},
                                                   {"gemma3-1b", 1.0e9},
                                                   {"qwen2.5-0.5b", 494e6},
                                                   {"qwen2.5-1.5b", 1.54e9},
                                                   {"qwen2.5-7b", 7.62e9},
                                                   {"qwen3-0.6b", 596e6},
                                                   {"qwen3-1.7b", 1.72e9},
                                                   {"qwen3-4b", 4.02e9},
                                                   {"qwen3-8b", 8.19e9},
                                                   {"olmoe-1b-7b", 6.92e9},
                                                   {"qwen1.5-moe-a2.7b", 14.3e9},
                                                   {"qwen3-30b-a3b", 30.5e9},
                                                   {"qwen3-235b-a22b", 235e9},
                                                   {"mixtral-8x7b", 46.7e9},
                                                   {"gpt-oss-20b", 20.9e9},
                                                   {"gpt-oss-120b", 116.8e9},
                                                   {"deepseek-moe-16b", 16.4e9},
                                                   {"ernie4.5-0.3b", 0.36e9},
                                                   {"ernie4.5-21b-a3b", 21.8e9},
                                                   {"glm-4.5-air", 106.8e9},
                                                   {"glm-4.5", 353e9},
                                                   {"granite-3.1-2b", 2.53e9},
                                                   {"granite-3.1-1b-a400m", 1.33e9},
                                                   {"granite-3.1-3b-a800m", 3.3e9},
                                                   {"phi-3.5-mini", 3.82e9},
                                                   {"phi-4-mini", 3.84e9},
                                                   {"phi-4", 14.66e9},
                                                   {"ministral-3-3b", 3.43e9},
                                                   {"ministral-3-8b", 8.49e9},
                                                   {"smollm3-3b", 3.08e9},
                                                   {"glm-4-9b", 9.4e9},
                                                   {"glm-4-32b", 32.57e9},
                                                   {"olmo-2-1b", 1.485e9},
                                                   {"olmo-2-7b", 7.3e9},
                                                   {"command-r7b", 8.03e9},
                                                   {"command-r-35b", 34.98e9},
                                                   {"starcoder2-3b", 3.03e9},
                                                   {"qwen2.5-vl-3b", 3.086e9},
                                                   {"qwen3-vl-4b", 4.02e9},
                                                   {"internlm2.5-7b", 7.74e9},
                                                   {"apertus-8b", 8.05e9},
                                                   {"exaone-4-1.2b", 1.28e9},
                                                   {"exaone-4-32b", 32.0e9},
                                                   {"seed-oss-36b", 36.15e9},
                                                   {"hunyuan-a13b", 80.4e9},
                                                   {"phi-3.5-moe", 41.87e9},
                                                   {"minicpm-2b", 2.725e9},
                                                   {"gemma-2b", 2.506e9},
                                                   {"stablelm-2-1.6b", 1.644e9},
                                                   {"pythia-1.4b", 1.4146e9},
                                                   {"phi-2", 2.78e9},
                                                   {"gpt2", 124.4e6},
                                                   {"deepseek-v2-lite", 15.7e9},
                                                   // Published are 5.1e9 and 8e9 with what sees and hears.
                                                   {"gemma4-e2b", 4.63e9},
                                                   {"gemma4-e4b", 7.46e9},
                                                   {"gemma4-26b-a4b", 25.2e9},
                                                   {"gemma4-31b", 30.7e9},
                                                   {"deepseek-v3", 671e9},
                                                   {"deepseek-v3.2", 672e9},
                                                   {"deepseek-v4-flash", 284e9},
                                                   {"glm-5", 744e9},
                                                   {"glm-5.2", 744e9},
                                                   {"kimi-k2", 1.026e12},
                                                   // Without their draft layers.
                                                   {"qwen3-next-80b-a3b", 79.67e9},
                                                   {"qwen3.5-35b-a3b", 34.66e9},
                                                   {"kimi-linear-48b-a3b", 49.1e9},
                                                   {"kimi-k3", 2.78e12},
                                                   {"llama-4-scout", 107.77e9},  // without what sees
                                                   {"step-3.5-flash", 196.8e9},
                                                   // Without keys and values that no layer reads.
                                                   {"gemma3n-e2b", 4.44e9},
                                                   {"gemma3n-e4b", 6.84e9},
                                                   {"bloom-7b1", 7.069e9},
                                                   {"mpt-7b", 6.649e9},
                                                   {"olmo-7b", 6.888e9},
                                                   {"dbrx", 131.6e9},
                                                   {"nemotron-3-nano-30b-a3b", 31.6e9},
                                                   {"falcon-h1-7b", 7.59e9},
                                                   {"lfm2-1.2b", 1.17e9},
                                                   {"granite-4.0-h-tiny", 6.94e9},
                                                   {"glm-4.7-flash", 29.94e9},
                                                   {"mistral-small-4", 119e9}};
  for (const SynthShape& shape : synth_shapes()) {
    if (shape.name.starts_with("tiny-")) continue;
    const std::string name(shape.name);
    ASSERT_TRUE(published.contains(name)) << name;
    const auto found = static_cast<double>(planned({.shape = name}).n_parameters());
    EXPECT_NEAR(found / published.at(name), 1, 0.005) << name;
  }
}

TEST(Synth, TheSeedDecidesAboutTheBytesAndTheThreadsDoNot) {
  const test::TempDir folder;
  std::vector<std::vector<std::byte>> all;
  for (const auto& [seed, threads] : {std::pair<uint32_t, int>{1, 1}, {1, 3}, {2, 1}}) {
    const auto file = written({.shape = "tiny-qwen2moe", .seed = seed, .zipf = 1}, folder / "m.gguf", threads);
    std::vector<std::byte> bytes;
    for (const gguf::TensorInfo& tensor : file.tensors()) {
      const auto part = tensor_bytes(file, tensor.name);
      bytes.insert(bytes.end(), part.begin(), part.end());
    }
    all.push_back(std::move(bytes));
  }
  EXPECT_EQ(all[0], all[1]);
  EXPECT_NE(all[0], all[2]);
  EXPECT_EQ(folder.n_entries(), 1u);
}

TEST(Synth, FewerLayersHaveTheSameFirstOnes) {
  const test::TempDir folder;
  const auto one = written({.shape = "tiny-llama", .n_layers = 1}, folder / "one.gguf");
  const auto two = written({.shape = "tiny-llama"}, folder / "two.gguf");
  EXPECT_EQ(*one.integer("llama.block_count").value(), 1);
  EXPECT_EQ(tensor_bytes(one, "blk.0.attn_q.weight"), tensor_bytes(two, "blk.0.attn_q.weight"));
  EXPECT_FALSE(one.find_tensor("blk.1.attn_q.weight"));
}

TEST(Synth, SaysWhatItIs) {
  const test::TempDir folder;
  const auto file = written({.shape = "tiny-llama", .seed = 9}, folder / "m.gguf");
  EXPECT_TRUE(is_synthetic(file));
  EXPECT_EQ(*file.string("general.name").value(), "tiny-llama, random weights");
  EXPECT_EQ(*file.integer("stoker.synthetic.seed").value(), 9);
  EXPECT_TRUE(file.notes().empty());
}

TEST(Synth, Names) {
  EXPECT_EQ(planned({.shape = "gpt-oss-20b"}).name(), "gpt-oss-20b-mxfp4");
  const SynthOptions all{.shape = "gpt-oss-20b", .type = "q8_0", .n_layers = 2, .seed = 7, .zipf = 1.25};
  EXPECT_EQ(planned(all).name(), "gpt-oss-20b-2l-q8_0-seed7-zipf1.25");
}

/// llama.cpp takes no others.
TEST(Synth, HasTheUnitsThatConvertersWrite) {
  const auto shape = [](const char* name, const char* tensor) {
    const auto header = planned({.shape = name}).header();
    const auto file = gguf::File::parse(std::as_bytes(std::span(*header)), name, {.header_only = true});
    const gguf::TensorInfo* found = file ? file->find_tensor(tensor) : nullptr;
    return found ? found->shape : std::vector<int64_t>{};
  };
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(shape("tiny-kimi-linear", "blk.0.ssm_conv1d_q.weight"), (Shape{256, 1, 4}));
  EXPECT_EQ(shape("tiny-kimi-linear", "blk.0.ssm_a"), (Shape{4, 1}));
  EXPECT_EQ(shape("tiny-kimi-k3", "blk.0.ssm_conv1d_v.weight"), (Shape{256, 1, 4}));
  EXPECT_EQ(shape("tiny-kimi-k3", "blk.0.ssm_a"), (Shape{4}));
  EXPECT_EQ(shape("tiny-granitehybrid", "blk.0.ssm_d"), (Shape{8, 1}));
  EXPECT_EQ(shape("tiny-falcon-h1", "blk.0.ssm_a"), (Shape{4, 1}));
  EXPECT_EQ(shape("tiny-nemotron_h", "blk.0.ssm_a"), (Shape{4, 1}));
  EXPECT_EQ(shape("tiny-qwen3next", "blk.0.ssm_a"), (Shape{8}));
}

TEST(Synth, TypesOfTensors) {
  const test::TempDir folder;
  const auto mixture = written({.shape = "tiny-llama", .type = "q4_k_m", .n_layers = 8}, folder / "m.gguf");
  EXPECT_EQ(type_of(mixture, "token_embd.weight"), "Q6_K");
  EXPECT_EQ(type_of(mixture, "blk.0.ffn_down.weight"), "Q6_K");
  EXPECT_EQ(type_of(mixture, "blk.1.ffn_down.weight"), "Q4_K");
  EXPECT_EQ(type_of(mixture, "blk.3.attn_v.weight"), "Q6_K");
  EXPECT_EQ(type_of(mixture, "blk.0.attn_q.weight"), "Q4_K");
  EXPECT_EQ(type_of(mixture, "blk.0.attn_norm.weight"), "F32");
  const auto experts = written({.shape = "tiny-gpt-oss"}, folder / "m.gguf");
  EXPECT_EQ(type_of(experts, "blk.0.ffn_up_exps.weight"), "MXFP4");
  EXPECT_EQ(type_of(experts, "blk.0.attn_q.weight"), "Q8_0");
  EXPECT_EQ(type_of(experts, "blk.0.ffn_gate_inp.weight"), "F32");
  const SynthType& q4_k = **find_synth_type("q4_k");
  EXPECT_EQ(synth_type_of(q4_k, "blk.0.ffn_up.weight", 288, 1, false), gguf::TensorType::kQ8_0);
  EXPECT_EQ(synth_type_of(q4_k, "blk.0.ffn_up.weight", 24, 1, false), gguf::TensorType::kF16);
}

TEST(Synth, RefusesWhatCannotBe) {
  const auto refused = [](SynthOptions options, std::string_view words) {
    const auto synth = Synth::plan(std::move(options));
    ASSERT_FALSE(synth);
    EXPECT_EQ(synth.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(synth.error().message.find(words), std::string::npos) << synth.error().message;
  };
  refused({.shape = "huge"}, "'huge'; known are smollm2-135m");
  refused({.shape = "tiny-llama", .type = "q3"}, "'q3'; known are f32");
  refused({.shape = "tiny-llama", .n_layers = 513}, "513 layers, wanted 1 to 512");
  refused({.shape = "tiny-olmoe", .zipf = 3.5}, "3.5, wanted 0 to 3");
  refused({.shape = "tiny-olmoe", .zipf = std::nan("")}, "wanted 0 to 3");
  refused({.shape = "tiny-llama", .zipf = 1}, "has no experts");
}

TEST(Synth, LeavesNothingBehindWhenItFails) {
  const test::TempDir folder;
  const std::string path = folder.write("m.gguf", "mine");
  const Synth synth = planned({.shape = "tiny-llama"});
  auto pool = Pool::create({.n_threads = 2});
  const auto fails = [&](Ledger& ledger, ErrorCode code, const std::function<void(uint64_t)>& on_bytes = {},
                         const std::atomic<bool>* cancel = nullptr) {
    const Status status = synth.write(path, **pool, ledger, on_bytes, cancel);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, code) << status.error().message;
    EXPECT_EQ(ledger.used(), 0u);
    EXPECT_EQ(folder.n_entries(), 1u);
    EXPECT_EQ(*read_text(path, 100), "mine");
  };
  Ledger large, small(1 << 16);
  fails(small, ErrorCode::kOutOfMemory);
  std::atomic<bool> cancel{false};
  fails(
      large, ErrorCode::kCancelled, [&](uint64_t) { cancel = true; }, &cancel);
  Ledger ledger;
  EXPECT_EQ(synth.write(folder / "none/m.gguf", **pool, ledger).error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace stoker::engine
