// Memory nodes decide who reads which rows and where experts' rows lie, and never about a bit. This machine's
// processors are said to be of several nodes.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "base/cpu_order.h"
#include "tests/model/invariance.h"

namespace stoker::model {
namespace {

using namespace testing;

std::vector<MemoryNode> made_up(int n_nodes) {
  std::vector<MemoryNode> nodes;
  for (int id = 0; id < n_nodes; ++id) nodes.push_back({.id = id, .cpus = process_cpus()});
  return nodes;
}

Setup setup(int n_nodes, int threads) {
  return {.isa = available_isas().back(),
          .threads = threads,
          .nodes = made_up(n_nodes),
          .kv = kernels::KvType::kF16,
          .positions = 128,
          .max_rows = 32};
}

// Fused and separate matrices, one of a few rows, tied and not, experts in stacked tensors and in others, latents whose
// matrices are split by head, AltUp, a vocabulary of an odd size.
class Nodes : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, Nodes,
                         ::testing::Values("llama", "llama-rows-15", "llama-fused-qkv", "gemma3", "tied-q6_k",
                                           "mixtral", "gemma4-moe-split", "qwen2moe", "qwen3moe", "gpt-oss-mxfp4",
                                           "llama4", "deepseek2", "deepseek2-joined", "qwen3next", "gemma3n",
                                           "deepseek4", "kimi-k3"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(Nodes, SameBits) {
  Loaded one(tiny_path(GetParam()), setup(1, 1));
  const std::vector<int32_t> tokens = text(one.n_vocab(), 24, 5);
  const Rows want = all_logits(one, tokens, 1);
  for (const auto& [n_nodes, threads] : {std::pair{2, 2}, {2, 3}, {3, 3}, {4, 9}}) {
    Loaded several(tiny_path(GetParam()), setup(n_nodes, threads));
    ASSERT_EQ(several.pool->split().n_nodes(), n_nodes);
    expect_same(all_logits(several, tokens, 1), want, "token by token");
    expect_same(all_logits(several, tokens, 19), want, "in chunks");
  }
}

TEST(NodesStreamed, SameBits) {
  for (const char* name : {"qwen3moe", "llama"}) {
    Loaded one(tiny_path(name), setup(1, 1));
    const std::vector<int32_t> tokens = text(one.n_vocab(), 24, 6);
    const Rows want = all_logits(one, tokens, 1);
    testing::Setup streamed = setup(2, 3);
    streamed.stream = true;
    streamed.streams_unit = [](const Unit& unit) { return unit.kind != Unit::Kind::kAttention; };
    Loaded several(tiny_path(name), streamed);
    expect_same(all_logits(several, tokens, 1), want, "streamed");
  }
}

TEST(NodesLoaded, ForOthersThanThoseWhoRun) {
  Loaded loaded(tiny_path("qwen3moe"), setup(3, 3));
  const std::vector<int32_t> tokens = text(loaded.n_vocab(), 24, 7);
  const Rows want = all_logits(loaded, tokens, 5);
  for (const auto& [n_nodes, threads] : {std::pair{1, 2}, {2, 2}}) {
    auto pool = std::move(Pool::create({.n_threads = threads, .nodes = made_up(n_nodes)})).value();
    loaded.runner = std::move(Runner::create(loaded.model->plan(), *pool, loaded.ledger, {.max_rows = 32})).value();
    expect_same(all_logits(loaded, tokens, 5), want, "another pool");
    loaded.runner.reset();
  }
}

TEST(NodesPlaced, AllBytesOfTheWeightsAndMostReadsNear) {
  for (const char* name : {"llama", "qwen3moe", "tied-q6_k"}) {
    Loaded loaded(tiny_path(name), setup(1, 1));
    const std::vector<MemoryNode> nodes = made_up(2);
    for (const bool streams : {false, true}) {
      Residency residency{.stream_experts = streams, .read_embedding = streams};
      const PageNodes pages = loaded.model->page_nodes(NodeSplit(nodes, 2), residency);
      const uint64_t all = loaded.model->load_memory(1, residency)[0].bytes;
      EXPECT_EQ(pages.bytes[0] + pages.bytes[1], all);
      EXPECT_LE(pages.split_bytes, all);
      EXPECT_GE(2 * pages.near_bytes, pages.split_bytes);
    }
    // Everything but the look-up table of an untied model and vectors is read in parts.
    const PageNodes pages = loaded.model->page_nodes(NodeSplit(nodes, 2));
    const Weights& w = loaded.model->weights();
    const auto table = static_cast<uint64_t>(w.tied ? 0 : w.embedding.bytes());
    const uint64_t all = loaded.model->load_memory(1)[0].bytes;
    EXPECT_GT(static_cast<double>(pages.split_bytes + table), 0.95 * static_cast<double>(all)) << name;
  }
}

}  // namespace
}  // namespace stoker::model
