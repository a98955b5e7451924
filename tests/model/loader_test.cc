// Tensors: each one that an architecture requires missing, misshapen or of an unknown type in turn; reads that fail.
#include "model/loader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <set>

#include "base/str_cat.h"
#include "gguf/file.h"
#include "gguf/writer.h"
#include "model/arch/arch.h"
#include "model/model.h"
#include "tests/model/golden.h"

namespace stoker::model {
namespace {

/// What becomes of one tensor of a file.
struct Change {
  std::string name;
  enum { kLeftOut, kOneRowMore, kUnknownType, kHalves, kAdded } what;
};

/// The bytes of this tiny model with one tensor changed.
std::string changed(const std::string& model, const Change& change) {
  const auto file = gguf::File::open(testing::tiny_path(model));
  gguf::Writer writer((*file->string("general.architecture")).value());
  for (const auto& [key, value] : file->metadata()) {
    if (key != "general.architecture") writer.add(key, value);
  }
  for (const auto& tensor : file->tensors()) {
    std::vector<std::byte> bytes(tensor.bytes);
    EXPECT_TRUE(file->read_tensor(tensor, 0, bytes));
    auto shape = tensor.shape;
    auto type = tensor.type();
    if (tensor.name == change.name) {
      if (change.what == Change::kLeftOut) continue;
      if (change.what == Change::kOneRowMore) {
        bytes.resize(bytes.size() / static_cast<size_t>(shape[0]) * static_cast<size_t>(shape[0] + 1));
        ++shape[0];
      }
      if (change.what == Change::kHalves) type = gguf::TensorType::kF16, bytes.resize(bytes.size() / 2);
      if (change.what == Change::kUnknownType) type = gguf::TensorType::kI32;
    }
    EXPECT_TRUE(writer.add_tensor(tensor.name, type, shape, bytes));
  }
  if (change.what == Change::kAdded) {
    const float one = 1;
    EXPECT_TRUE(writer.add_tensor(change.name, gguf::TensorType::kF32, {1}, std::as_bytes(std::span(&one, 1))));
  }
  return *writer.bytes();
}

/// The error of preparing and loading these bytes; the ledger must be at zero afterwards.
std::string error_of(const std::string& bytes) {
  Ledger ledger;
  auto pool = Pool::create({.n_threads = 2});
  const auto file = gguf::File::parse(std::as_bytes(std::span(bytes)), "made");
  EXPECT_TRUE(file) << (file ? "" : file.error().message);
  std::string message;
  {
    auto model = Model::from_gguf(*file, {}, ledger, **pool);
    if (!model) message = model.error().message;
  }
  EXPECT_EQ(ledger.used(), 0u);
  return message;
}

/// The error of looking at these bytes, before anything is loaded.
std::string refusal_of(const std::string& bytes) {
  const auto file = gguf::File::parse(std::as_bytes(std::span(bytes)), "made");
  EXPECT_TRUE(file) << (file ? "" : file.error().message);
  const auto model = Model::prepare(*file, {});
  return model ? "" : model.error().message;
}

/// Of all layers alike those of one; each kind of layer has its turn.
std::vector<std::string> required_tensors(const Arch& arch) {
  std::vector<std::string> names;
  for (const GlobalTensorSpec& spec : arch.globals) {
    if (spec.need == Need::kRequired) names.emplace_back(spec.name);
  }
  const auto file = gguf::File::open(testing::tiny_path(std::string(arch.name)));
  const auto config = read_config(*file);
  std::set<const TensorSpec*> seen;
  for (int64_t layer = config->n_layers; layer-- > 0;) {
    for (const TensorSpec& spec : arch.tensors) {
      if (is_optional(spec.need) || !may_have(spec, *config, layer) || !seen.insert(&spec).second) continue;
      const std::string_view fused = fused_form(spec.need);
      if (!fused.empty() && file->find_tensor(str_cat("blk.", layer, ".", fused))) continue;
      names.push_back(str_cat("blk.", layer, ".", spec.name));
    }
  }
  return names;
}

TEST(Loader, EachRequiredTensorIsMissedByName) {
  for (const Arch* arch : all_archs()) {
    for (const std::string& name : required_tensors(*arch)) {
      const std::string message = refusal_of(changed(std::string(arch->name), {name, Change::kLeftOut}));
      EXPECT_NE(message.find(name), std::string::npos) << message;
      EXPECT_NE(message.find("missing"), std::string::npos) << message;
      EXPECT_NE(message.find("shape ["), std::string::npos) << message;
    }
  }
}

TEST(Loader, EachShapeIsChecked) {
  for (const Arch* arch : all_archs()) {
    for (const std::string& name : required_tensors(*arch)) {
      if (name == "token_embd.weight") continue;  // its rows are the vocabulary's size
      const std::string message = refusal_of(changed(std::string(arch->name), {name, Change::kOneRowMore}));
      EXPECT_NE(message.find(name), std::string::npos) << name << ": " << message;
      EXPECT_NE(message.find("wanted ["), std::string::npos) << message;
    }
  }
}

TEST(Loader, EachTypeIsChecked) {
  for (const Arch* arch : all_archs()) {
    for (const std::string& name : required_tensors(*arch)) {
      const auto other = name.ends_with("tid2eid.weight") ? Change::kHalves : Change::kUnknownType;
      const std::string message = refusal_of(changed(std::string(arch->name), {name, other}));
      EXPECT_NE(message.find(name), std::string::npos) << name << ": " << message;
      EXPECT_NE(message.find("I32"), std::string::npos) << message;
    }
  }
}

TEST(Loader, SinksAreFloats) {
  const std::string message = error_of(changed("gpt-oss", {"blk.1.attn_sinks.weight", Change::kHalves}));
  EXPECT_NE(message.find("tensor blk.1.attn_sinks.weight has type F16, wanted F32"), std::string::npos) << message;
  EXPECT_EQ(message.find("BF16"), std::string::npos) << message;
  EXPECT_EQ(error_of(changed("gpt-oss", {"blk.1.attn_norm.weight", Change::kHalves})), "");
}

TEST(Loader, ExpertsOfTokensAreChecked) {
  const std::string name = "blk.0.ffn_gate_tid2eid.weight";
  const auto with = [&](int32_t id) {
    const auto file = gguf::File::open(testing::tiny_path("deepseek4"));
    gguf::Writer writer("deepseek4");
    for (const auto& [key, value] : file->metadata()) {
      if (key != "general.architecture") writer.add(key, value);
    }
    for (const auto& tensor : file->tensors()) {
      std::vector<std::byte> bytes(tensor.bytes);
      EXPECT_TRUE(file->read_tensor(tensor, 0, bytes));
      if (tensor.name == name) std::memcpy(bytes.data() + 7 * sizeof(id), &id, sizeof(id));
      EXPECT_TRUE(writer.add_tensor(tensor.name, tensor.type(), tensor.shape, bytes));
    }
    return error_of(*writer.bytes());
  };
  EXPECT_EQ(with(7), "");
  for (const int32_t id : {8, -1, 1 << 30}) {
    const std::string message = with(id);
    EXPECT_NE(message.find(name + ": entry 7 is"), std::string::npos) << message;
    EXPECT_NE(message.find("wanted 0 to 7"), std::string::npos) << message;
  }
}

/// What the way out of groups of heads looks like in some files: a matrix for each.
TEST(Loader, GroupsMayBeAStack) {
  const auto file = gguf::File::open(testing::tiny_path("deepseek4"));
  gguf::Writer writer("deepseek4");
  for (const auto& [key, value] : file->metadata()) {
    if (key != "general.architecture") writer.add(key, value);
  }
  for (const auto& tensor : file->tensors()) {
    std::vector<std::byte> bytes(tensor.bytes);
    EXPECT_TRUE(file->read_tensor(tensor, 0, bytes));
    auto shape = tensor.shape;
    if (tensor.name.ends_with("attn_output_a.weight")) shape = {2, shape[0] / 2, shape[1]};
    EXPECT_TRUE(writer.add_tensor(tensor.name, tensor.type(), shape, bytes));
  }
  EXPECT_EQ(error_of(*writer.bytes()), "");
}

TEST(Loader, KeysAndValuesOfCompressedRowsHaveTypes) {
  const auto file = gguf::File::open(testing::tiny_path("deepseek4"));
  const auto model = Model::prepare(*file, {.kv_type = kernels::KvType::kQ8_0});
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(model.error().message.find("q8_0"), std::string::npos) << model.error().message;
}

TEST(Loader, ContextsOfCompressedRowsAreBounded) {
  const auto file = gguf::File::open(testing::tiny_path("deepseek4"));
  EXPECT_TRUE(Model::prepare(*file, {.context = 4096}));
  const auto model = Model::prepare(*file, {.context = 4097});
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message.find("4097 positions"), std::string::npos) << model.error().message;
}

TEST(Loader, ExpertsOfMixtralAreChecked) {
  for (const char* name :
       {"ffn_gate_inp.weight", "ffn_gate_exps.weight", "ffn_up_exps.weight", "ffn_down_exps.weight"}) {
    const std::string full = std::string("blk.1.") + name;
    EXPECT_NE(error_of(changed("mixtral", {full, Change::kLeftOut})).find(full + " is missing"), std::string::npos);
    EXPECT_NE(error_of(changed("mixtral", {full, Change::kOneRowMore})).find("wanted [8, "), std::string::npos) << name;
    EXPECT_NE(error_of(changed("mixtral", {full, Change::kUnknownType})).find("I32"), std::string::npos) << name;
  }
}

/// The tiny Mixtral with one tensor per expert, as its first files had them. `wrong`: one of them is left out, `odd`:
/// is of another type.
std::string split_mixtral(const std::string& wrong, const std::string& odd) {
  const auto file = gguf::File::open(testing::tiny_path("mixtral"));
  gguf::Writer writer("llama");
  for (const auto& [key, value] : file->metadata()) {
    if (key != "general.architecture") writer.add(key, value);
  }
  for (const auto& tensor : file->tensors()) {
    std::vector<std::byte> bytes(tensor.bytes);
    EXPECT_TRUE(file->read_tensor(tensor, 0, bytes));
    const size_t stacked = tensor.name.find("_exps.weight");
    const size_t n = stacked == std::string::npos ? 1 : static_cast<size_t>(tensor.shape[0]);
    for (size_t e = 0; e < n; ++e) {
      std::string name = tensor.name;
      auto shape = tensor.shape;
      if (n > 1) name = name.substr(0, stacked) + "." + std::to_string(e) + ".weight", shape.erase(shape.begin());
      const auto part = std::span(bytes).subspan(e * bytes.size() / n, bytes.size() / n);
      if (name == wrong) continue;
      if (name == odd) {
        EXPECT_TRUE(writer.add_tensor(name, gguf::TensorType::kF16, shape, part.first(part.size() / 2)));
      } else {
        EXPECT_TRUE(writer.add_tensor(name, tensor.type(), shape, part));
      }
    }
  }
  return *writer.bytes();
}

TEST(Loader, OneTensorPerExpert) {
  const std::string bytes = split_mixtral("", "");
  const auto split = gguf::File::parse(std::as_bytes(std::span(bytes)), "made");
  const auto stacked = gguf::File::open(testing::tiny_path("mixtral"));
  ASSERT_TRUE(split && stacked);
  testing::Loaded a(*split), b(*stacked);
  EXPECT_EQ(a.model->weights().arena.size(), b.model->weights().arena.size());
  const std::vector<int32_t> tokens{3, 1, 4, 1, 5, 9, 2, 6};
  EXPECT_EQ(testing::all_logits(a, tokens, 8), testing::all_logits(b, tokens, 8));
  EXPECT_NE(error_of(split_mixtral("blk.2.ffn_up.5.weight", "")).find("blk.2.ffn_up.5.weight is missing"),
            std::string::npos);
  const std::string odd = error_of(split_mixtral("", "blk.0.ffn_down.7.weight"));
  EXPECT_NE(odd.find("blk.0.ffn_down.7.weight has type F16, wanted F32"), std::string::npos) << odd;
}

/// deepseek2 as files were before keys and values got matrices of their own: of each head the rows of both together.
std::string joined_deepseek() {
  const auto file = gguf::File::open(testing::tiny_path("deepseek2"));
  const auto config = read_config(*file);
  gguf::Writer writer("deepseek2");
  for (const auto& [key, value] : file->metadata()) {
    if (key != "general.architecture") writer.add(key, value);
  }
  const auto floats = [&](const std::string& name) {
    const gguf::TensorInfo* tensor = file->find_tensor(name);
    std::vector<float> values(tensor->bytes / sizeof(float));
    EXPECT_TRUE(file->read_tensor(*tensor, 0, std::as_writable_bytes(std::span(values))));
    return values;
  };
  for (const auto& tensor : file->tensors()) {
    if (tensor.name.ends_with("attn_v_b.weight")) continue;
    std::string name = tensor.name;
    auto shape = tensor.shape;
    std::vector<float> values = floats(name);
    if (name.ends_with("attn_k_b.weight")) {
      const int64_t n_heads = shape[0], latent = shape[1], plain = shape[2], value = config->head_v_dim;
      const auto k = std::move(values), v = floats(name.replace(name.size() - 10, 1, "v"));
      name.replace(name.size() - 10, 1, "kv");
      shape = {n_heads * (plain + value), latent};
      for (int64_t h = 0; h < n_heads; ++h) {
        for (int64_t i = 0; i < plain * latent; ++i)
          values.push_back(k[static_cast<size_t>((h * latent + i % latent) * plain + i / latent)]);
        values.insert(values.end(), v.begin() + h * value * latent, v.begin() + (h + 1) * value * latent);
      }
    }
    EXPECT_TRUE(writer.add_tensor(name, tensor.type(), shape, std::as_bytes(std::span(values))));
  }
  return *writer.bytes();
}

TEST(Loader, KeysAndValuesInOneMatrixGiveTheSameBits) {
  const std::string bytes = joined_deepseek();
  const auto joined = gguf::File::parse(std::as_bytes(std::span(bytes)), "made");
  const auto split = gguf::File::open(testing::tiny_path("deepseek2"));
  ASSERT_TRUE(joined && split);
  ASSERT_TRUE(joined->find_tensor("blk.2.attn_kv_b.weight"));
  testing::Loaded a(*joined), b(*split);
  const std::vector<int32_t> tokens{3, 1, 4, 1, 5, 9, 2, 6};
  EXPECT_EQ(testing::all_logits(a, tokens, 8), testing::all_logits(b, tokens, 8));
}

/// Gate and up of each expert as one matrix, the rows of gate first.
std::string fused_experts(const std::string& name) {
  const auto file = gguf::File::open(testing::tiny_path(name));
  gguf::Writer writer(**file->string("general.architecture"));
  for (const auto& [key, value] : file->metadata()) {
    if (key != "general.architecture") writer.add(key, value);
  }
  const auto bytes_of = [&](const std::string& of) {
    const gguf::TensorInfo* tensor = file->find_tensor(of);
    std::vector<std::byte> bytes(tensor->bytes);
    EXPECT_TRUE(file->read_tensor(*tensor, 0, bytes));
    return bytes;
  };
  for (const auto& tensor : file->tensors()) {
    if (tensor.name.ends_with("ffn_up_exps.weight")) continue;
    std::string to = tensor.name;
    auto shape = tensor.shape;
    std::vector<std::byte> bytes = bytes_of(to);
    if (to.ends_with("ffn_gate_exps.weight")) {
      const auto gate = std::move(bytes), up = bytes_of(to.substr(0, to.size() - 16) + "up_exps.weight");
      const auto each = static_cast<std::ptrdiff_t>(gate.size()) / shape[0];
      bytes.clear();
      for (std::ptrdiff_t at = 0; at < static_cast<std::ptrdiff_t>(gate.size()); at += each) {
        bytes.insert(bytes.end(), gate.begin() + at, gate.begin() + at + each);
        bytes.insert(bytes.end(), up.begin() + at, up.begin() + at + each);
      }
      shape[1] *= 2;
      to = to.substr(0, to.size() - 16) + "gate_up_exps.weight";
    }
    EXPECT_TRUE(writer.add_tensor(to, tensor.type(), shape, bytes));
  }
  return *writer.bytes();
}

TEST(Loader, GateAndUpOfExpertsInOneTensorGiveTheSameBits) {
  for (const char* name : {"deepseek2", "glm-dsa", "gemma4-moe-split"}) {
    const std::string bytes = fused_experts(name);
    const auto fused = gguf::File::parse(std::as_bytes(std::span(bytes)), "made");
    const auto split = gguf::File::open(testing::tiny_path(name));
    ASSERT_TRUE(fused && split);
    ASSERT_TRUE(fused->find_tensor("blk.1.ffn_gate_up_exps.weight"));
    testing::Loaded a(*fused), b(*split);
    const std::vector<int32_t> tokens{3, 1, 4, 1, 5, 9, 2, 6};
    EXPECT_EQ(testing::all_logits(a, tokens, 8), testing::all_logits(b, tokens, 8)) << name;
  }
}

/// gemma4 whose later layers have keys and values of their own after all: equal ones are no part of it.
TEST(Loader, WhatLayersWithoutKeysHaveOfThemIsNotRead) {
  const auto file = gguf::File::open(testing::tiny_path("gemma4"));
  gguf::Writer writer("gemma4");
  for (const auto& [key, value] : file->metadata()) {
    if (key != "general.architecture") writer.add(key, value);
  }
  std::vector<std::vector<std::byte>> kept;
  for (const auto& tensor : file->tensors()) {
    auto& bytes = kept.emplace_back(tensor.bytes);
    ASSERT_TRUE(file->read_tensor(tensor, 0, bytes));
    ASSERT_TRUE(writer.add_tensor(tensor.name, tensor.type(), tensor.shape, bytes));
    if (!tensor.name.starts_with("blk.0.attn_k")) continue;
    ASSERT_TRUE(writer.add_tensor("blk.5" + tensor.name.substr(5), tensor.type(), tensor.shape, bytes));
  }
  const std::string bytes = *writer.bytes();
  const auto more = gguf::File::parse(std::as_bytes(std::span(bytes)), "made");
  ASSERT_TRUE(more) << more.error().message;
  testing::Loaded a(*more), b(*file);
  const std::vector<int32_t> tokens{3, 1, 4, 1, 5, 9, 2, 6};
  EXPECT_EQ(testing::all_logits(a, tokens, 8), testing::all_logits(b, tokens, 8));
}

/// glm-dsa without its indexers: attention over all latents, as mistral4 has it.
std::string without_indexers() {
  const auto file = gguf::File::open(testing::tiny_path("glm-dsa"));
  gguf::Writer writer("mistral4");
  const std::string prefix = "glm-dsa.";
  for (const auto& [key, value] : file->metadata()) {
    if (key == "general.architecture" || key.find(".indexer.") != std::string::npos) continue;
    writer.add(key.starts_with(prefix) ? "mistral4." + key.substr(prefix.size()) : key, value);
  }
  writer.add("mistral4.expert_gating_func", {gguf::ValueType::kU32, int64_t{2}});
  std::vector<std::vector<std::byte>> kept;
  for (const auto& tensor : file->tensors()) {
    if (tensor.name.find(".indexer.") != std::string::npos) continue;
    auto& bytes = kept.emplace_back(tensor.bytes);
    EXPECT_TRUE(file->read_tensor(tensor, 0, bytes));
    EXPECT_TRUE(writer.add_tensor(tensor.name, tensor.type(), tensor.shape, bytes));
  }
  return *writer.bytes();
}

TEST(Loader, WhoMayChooseAllPositionsHasTheBitsOfThoseWhoSeeAll) {
  const std::string bytes = without_indexers();
  const auto all = gguf::File::parse(std::as_bytes(std::span(bytes)), "made");
  ASSERT_TRUE(all) << all.error().message;
  const auto sparse = gguf::File::open(testing::tiny_path("glm-dsa"));
  std::vector<int32_t> tokens(100);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * i % 251);
  const Isa best = available_isas().back();
  for (kernels::KvType kv : {kernels::KvType::kF16, kernels::KvType::kBf16, kernels::KvType::kQ8_0}) {
    testing::Loaded a(*all, {.isa = best, .kv = kv});
    const auto want = testing::all_logits(a, tokens, 64);
    testing::Loaded many(*sparse, {.isa = best, .kv = kv, .overrides = {{"attention.indexer.top_k", "100"}}});
    EXPECT_EQ(testing::all_logits(many, tokens, 64), want);
    testing::Loaded few(*sparse, {.isa = best, .kv = kv});
    const auto some = testing::all_logits(few, tokens, 64);
    for (size_t i = 0; i < 9; ++i) EXPECT_EQ(some[i], want[i]) << i;  // top_k of the file
    for (size_t i = 12; i < tokens.size(); ++i) EXPECT_NE(some[i], want[i]) << i;
  }
}

TEST(Loader, UnusedTensorsAreNotedAndCompanionsRefused) {
  const std::string extra = changed("llama", {"v.vision.weight", Change::kAdded});
  const auto file = gguf::File::parse(std::as_bytes(std::span(extra)), "made");
  ASSERT_TRUE(file);
  const auto model = Model::prepare(*file, {});
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ((*model)->unused_tensors(), std::vector<std::string>{"v.vision.weight"});
  EXPECT_NE(error_of(changed("llama", {"blk.0.attn_q.scale", Change::kAdded})).find("blk.0.attn_q.scale"),
            std::string::npos);
}

TEST(Loader, TablesOfEncoders) {
  const auto refusal = [&](const char* model, const char* tensor, auto what) {
    return refusal_of(changed(model, {tensor, what}));
  };
  EXPECT_EQ(refusal("bert", "token_types.weight", Change::kLeftOut), "");  // not all have it
  EXPECT_NE(refusal("bert", "token_types.weight", Change::kOneRowMore)
                .find("token_types.weight has shape [3, 96], wanted [2, 96]"),
            std::string::npos);
  EXPECT_NE(refusal("bert", "position_embd.weight", Change::kOneRowMore).find("position_embd.weight"),
            std::string::npos);
  // Without a gate of its own `ffn_up` must hold both.
  EXPECT_NE(refusal("jina-bert-v2", "blk.0.ffn_gate.weight", Change::kLeftOut)
                .find("blk.0.ffn_up.weight has shape [160, 96], wanted [320, 96]"),
            std::string::npos);
  EXPECT_EQ(refusal("gemma-embedding", "dense_2.weight", Change::kLeftOut), "");
  EXPECT_NE(refusal("gemma-embedding", "dense_2.weight", Change::kOneRowMore).find("dense_2.weight"),
            std::string::npos);
  EXPECT_NE(refusal("jina-bert-v2", "blk.0.attn_norm_2.weight", Change::kAdded).find("blk.0.attn_norm_2.weight"),
            std::string::npos);
}

TEST(Loader, WhatALayerHasAndTheFamilyDoesNotIsRefused) {
  for (const Arch* arch : all_archs()) {
    for (const char* name : {"blk.0.attn_extra.weight", "blk.1.attn_sub_norm.weight"}) {
      const std::string message = refusal_of(changed(std::string(arch->name), {name, Change::kAdded}));
      EXPECT_NE(message.find(str_cat("tensor ", name, " is no part of ", arch->name)), std::string::npos) << message;
    }
  }
}

TEST(Loader, TheLedgerRefusesAndIsAtZeroAgain) {
  const auto file = gguf::File::open(testing::tiny_path("llama"));
  ASSERT_TRUE(file);
  auto pool = Pool::create({.n_threads = 2});
  for (uint64_t limit : {1u << 10, 1u << 20, 3u << 20}) {
    Ledger ledger(limit);
    const auto model = Model::from_gguf(*file, {}, ledger, **pool);
    ASSERT_FALSE(model) << limit;
    EXPECT_EQ(model.error().code, ErrorCode::kOutOfMemory);
    EXPECT_EQ(ledger.used(), 0u);
  }
}

TEST(Loader, AFileThatShrinksIsAnErrorThatNamesTheTensor) {
  const std::string path = ::testing::TempDir() + "/stoker_shrinks_" + std::to_string(::getpid()) + ".gguf";
  const std::string bytes = changed("llama", {"", Change::kLeftOut});
  std::FILE* out = std::fopen(path.c_str(), "wb");
  ASSERT_TRUE(out);
  ASSERT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), out), bytes.size());
  std::fclose(out);
  const auto file = gguf::File::open(path);
  ASSERT_TRUE(file) << file.error().message;
  Ledger ledger;
  auto pool = Pool::create({.n_threads = 2});
  {
    auto model = Model::prepare(*file, {});
    ASSERT_TRUE(model);
    ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(bytes.size() / 2)), 0);
    const auto status = (*model)->read(*file, ledger, **pool, {});
    ASSERT_FALSE(status);
    EXPECT_TRUE(status.error().code == ErrorCode::kCorrupt || status.error().code == ErrorCode::kIo);
    EXPECT_NE(status.error().message.find("blk."), std::string::npos) << status.error().message;
  }
  EXPECT_EQ(ledger.used(), 0u);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace stoker::model
