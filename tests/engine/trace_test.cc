// Traces as text, and the simulator beside the store itself.
#include "engine/trace.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/str_cat.h"
#include "engine/generate.h"
#include "engine/trace_replay.h"
#include "tests/base/temp_dir.h"
#include "tests/model/golden.h"

namespace stoker::engine {
namespace {

using Policy = Replay::Policy;

Trace empty(std::string model, int64_t n_experts, int64_t n_used, std::vector<Trace::Layer> layers) {
  Trace trace;
  trace.model = std::move(model);
  trace.n_experts = n_experts;
  trace.n_used = n_used;
  trace.layers = std::move(layers);
  return trace;
}

/// One layer, one expert per token, in this order.
Trace one_by_one(std::vector<int32_t> experts, int64_t n_experts) {
  Trace trace = empty("m", n_experts, 1, {{3, 100, 90}});
  for (const int32_t expert : experts) {
    trace.calls.push_back({1, trace.visits.size()});
    trace.visits.push_back({0, trace.routes.size()});
    trace.routes.push_back(expert);
  }
  return trace;
}

TEST(Trace, TextAndBack) {
  Trace trace = empty("a b.gguf", 8, 2, {{1, 100, 90}, {4, 200, 190}});
  trace.calls = {{3, 0}, {1, 2}, {2, 4}};
  trace.visits = {{0, 0}, {1, 6}, {0, 8}, {1, 10}, {0, 12}};  // the last call wanted no outputs
  trace.routes = {1, 0, 7, 3, 2, 4, 5, 6, 0, 1, 7, 6, 1, 2, 3, 4};
  const std::string text = to_text(trace);
  EXPECT_EQ(text,
            "stoker-trace 1\nmodel a b.gguf\nexperts 8 used 2\nlayer 1 slot 100 read 90\nlayer 4 slot 200 read 190\n"
            "call 0 tokens 3\n1: 1 0, 7 3, 2 4\n4: 5 6\ncall 1 tokens 1\n1: 0 1\n4: 7 6\n"
            "call 2 tokens 2\n1: 1 2, 3 4\n");
  const auto back = parse_trace(text, "t");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(to_text(*back), text);
  EXPECT_EQ(back->routes, trace.routes);
  EXPECT_EQ(back->bytes(), 8u * 300);
  EXPECT_EQ(back->cycle_bytes(), 2u * 300);
}

TEST(Trace, WhatIsNoneIsRefusedByLine) {
  const std::string head = "stoker-trace 1\nmodel m\nexperts 4 used 2\nlayer 0 slot 9 read 8\nlayer 1 slot 9 read 8\n";
  const std::string call = "call 0 tokens 1\n";
  ASSERT_TRUE(parse_trace(head + call + "0: 1 2\n", "t"));
  const auto line_of = [](const std::string& text) {
    const auto trace = parse_trace(text, "t.txt");
    if (trace) return std::string("accepted");
    EXPECT_EQ(trace.error().code, ErrorCode::kCorrupt);
    const std::string& message = trace.error().message;
    EXPECT_TRUE(message.starts_with("t.txt: ")) << message;
    return message.substr(7, message.find(" is no") - 7);
  };
  EXPECT_EQ(line_of(""), "line 0");
  EXPECT_EQ(line_of("stoker-trace 2\n"), "line 1");
  EXPECT_EQ(line_of("stoker-trace 1\nmodel"), "line 2");
  for (const char* counts : {"experts 4 used 5", "experts 0 used 0", "experts -1 used 1", "experts 4 used 2 x"}) {
    EXPECT_EQ(line_of(str_cat("stoker-trace 1\nmodel m\n", counts, "\n")), "line 3") << counts;
  }
  for (const char* layer : {"layer 1 slot 9 read 8", "layer 2 slot 0 read 8", "layer 2 slot 9", "layer x", "0: 1 2"}) {
    EXPECT_EQ(line_of(str_cat(head, layer, "\n")), "line 6") << layer;
  }
  EXPECT_EQ(line_of(head + "call 1 tokens 1\n"), "line 6");
  EXPECT_EQ(line_of(head + "call 0 tokens 0\n"), "line 6");
  for (const char* visit : {"0: 1", "0: 1 1", "0: 1 4", "0: 1 -1", "0: 1 2 3", "0: 1 2, 1 3", "0: 1 2,", "2: 1 2",
                            "0 1 2", "0:", "", "0: 1 2 "}) {
    EXPECT_EQ(line_of(str_cat(head, call, visit, "\n")), "line 7") << visit;
  }
  EXPECT_EQ(line_of(head + call + "1: 1 2\n0: 1 2\n"), "line 8");
  EXPECT_EQ(line_of(head + call + "0: 1 2\n0: 1 2\n"), "line 8");
  EXPECT_NE(parse_trace(head, "t").error().message.find("no routes"), std::string::npos);
}

TEST(Trace, PoliciesByHand) {
  // Room for two. Recency: 0 1 2 0 1 2 never hits; the optimum keeps what comes next.
  const Trace cycle = one_by_one({0, 1, 2, 0, 1, 2, 0, 1, 2}, 4);
  const Replay of_cycle(cycle);
  EXPECT_EQ(of_cycle.run(Policy::kRecency, 200).all.hits, 0u);
  EXPECT_EQ(of_cycle.run(Policy::kOptimum, 200).all.hits, 3u);
  EXPECT_EQ(of_cycle.run(Policy::kRecency, 300).all.hits, 6u);
  EXPECT_EQ(of_cycle.run(Policy::kRecency, 300).n_slots, 3);
  // Three uses of 0 keep it where counts do not age; with a short half-life it goes.
  const Trace once = one_by_one({0, 0, 0, 1, 2, 1, 2, 3, 0}, 4);
  const Replay of_once(once);
  EXPECT_EQ(of_once.run(Policy::kForever, 200).all.hits, 3u);
  EXPECT_EQ(of_once.run(Policy::kCounts, 200, 0.5).all.hits, 4u);
  const Replay::Outcome outcome = of_once.run(Policy::kForever, 200);
  EXPECT_EQ(outcome.all.requests, 9u);
  EXPECT_EQ(outcome.all.bytes_read, 6u * 90);
  EXPECT_EQ(outcome.decode.tokens, 9);
  EXPECT_EQ(of_once.run(Policy::kRecency, 0).all.hits, 0u);  // nothing stays
}

TEST(Trace, APromptReadsEachOnceAndDoesNotCountAsDecoding) {
  Trace trace = empty("m", 4, 2, {{0, 10, 10}, {1, 20, 18}});
  trace.calls = {{3, 0}, {1, 2}};
  trace.visits = {{0, 0}, {1, 6}, {0, 8}, {1, 10}};
  trace.routes = {0, 1, 1, 2, 3, 0, 2, 3, 0, 3, 1, 2};
  const auto outcome = Replay(trace).run(Policy::kStore, trace.bytes());
  EXPECT_EQ(outcome.n_slots, 8);
  EXPECT_EQ(outcome.all.requests, 4u + 2 + 2 + 2);
  EXPECT_EQ(outcome.all.hits, 3u);  // layer 0: both; layer 1: expert 2
  EXPECT_EQ(outcome.decode.requests, 4u);
  EXPECT_EQ(outcome.decode.hits, 3u);
  EXPECT_EQ(outcome.decode.bytes_read, 18u);
  const auto small = Replay(trace).run(Policy::kStore, 40);  // fewer slots than a layer of the prompt wants
  EXPECT_EQ(small.all.requests, 10u);
}

TEST(Trace, MadeUpRoutesFollowTheirLaw) {
  const MadeRoutes options{.zipf = 1, .n_experts = 16, .n_used = 2, .n_layers = 3, .n_tokens = 2000};
  const Trace trace = make_routes(options);
  const auto back = parse_trace(to_text(trace), "made up");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(to_text(*back), to_text(make_routes(options)));
  std::map<int32_t, int> counts;
  for (size_t visit = 0; visit < trace.visits.size(); visit += 3) {
    for (const int32_t expert : trace.routes_of(visit)) ++counts[expert];
  }
  std::vector<int> sorted;
  for (const auto& [expert, n] : counts) sorted.push_back(n);
  std::sort(sorted.rbegin(), sorted.rend());
  ASSERT_EQ(sorted.size(), 16u);
  EXPECT_GT(sorted[0], 2 * sorted[3]);
  EXPECT_LT(sorted[0], 2000);
  const Trace still = make_routes({.persistence = 1, .n_experts = 16, .n_used = 2, .n_layers = 1, .n_tokens = 5});
  EXPECT_EQ(still.routes_of(0)[0], still.routes_of(4)[0]);
}

TEST(Trace, TheOptimumIsNeverBeaten) {
  const Trace trace = make_routes({.persistence = 0.2, .n_layers = 6, .n_tokens = 300});
  const Replay replay(trace);
  for (const double cycles : {0.5, 1.1, 2.0, 4.0}) {
    const auto bytes = static_cast<uint64_t>(cycles * static_cast<double>(trace.cycle_bytes()));
    const uint64_t best = replay.run(Policy::kOptimum, bytes).all.hits;
    for (const Policy policy : {Policy::kStore, Policy::kRecency, Policy::kCounts, Policy::kForever}) {
      EXPECT_LE(replay.run(policy, bytes).all.hits, best) << cycles;
    }
    EXPECT_LE(best, replay.run(Policy::kOptimum, bytes + trace.cycle_bytes()).all.hits);
  }
}

TEST(Trace, TheStoreHitsWhatRecencyAndCountsHit) {
  const MadeRoutes all[] = {
      {.zipf = 1, .persistence = 0.18, .n_layers = 12, .n_tokens = 300},
      {.zipf = 0.5, .persistence = 0.4, .n_experts = 64, .n_used = 8, .n_layers = 6, .n_tokens = 300},
      {.zipf = 1.5, .n_experts = 64, .n_used = 8, .n_layers = 6, .n_tokens = 300},
  };
  for (const MadeRoutes& routes : all) {
    const Trace trace = make_routes(routes);
    const Replay replay(trace);
    for (const double cycles : {0.9, 1.1, 1.5, 2.0, 4.0}) {
      const auto bytes = static_cast<uint64_t>(cycles * static_cast<double>(trace.cycle_bytes()));
      const double store = replay.run(Policy::kStore, bytes).all.hit_rate();
      for (const Policy policy : {Policy::kRecency, Policy::kCounts, Policy::kForever}) {
        // Half a point: what the goal of the store allows, since it learns on the way what the routes are like.
        EXPECT_GE(store, replay.run(policy, bytes).all.hit_rate() - 0.005) << routes.zipf << " " << cycles;
      }
    }
  }
}

/// Runs a tiny model with a cache of so many bytes and returns its trace.
Trace record(Engine& engine, std::span<const int32_t> prompt, int64_t n, const std::string& path) {
  EXPECT_TRUE(engine.load({.positions = 512, .max_rows = 64}));
  auto writer = TraceWriter::create(path, engine);
  if (!writer) {
    ADD_FAILURE() << writer.error().message;
    std::abort();
  }
  const auto out = generate(engine, prompt,
                            {.max_tokens = n,
                             .context = 512,
                             .sampler = {.temperature = 1, .top_k = 0, .seed = 3},
                             .ignore_end = true,
                             .trace = &*writer});
  EXPECT_TRUE(out) << out.error().message;
  EXPECT_TRUE(writer->commit());
  auto trace = read_trace(path);
  if (!trace) {
    ADD_FAILURE() << trace.error().message;
    std::abort();
  }
  return std::move(*trace);
}

std::unique_ptr<Engine> open(const std::string& name, std::optional<uint64_t> cache_bytes, bool keep_routes = true) {
  auto engine = Engine::open({.path = model::testing::tiny_path(name),
                              .memory_bytes = 1u << 30,
                              .threads = 1,
                              .expert_cache_bytes = cache_bytes,
                              .expert_lookahead = model::LookaheadUse::kOff,  // the simulator reads nothing ahead
                              .keep_routes = keep_routes});
  if (!engine) {
    ADD_FAILURE() << engine.error().message;
    std::abort();
  }
  return std::move(*engine);
}

TEST(Trace, TheSimulatorHitsWhatTheStoreHits) {
  const test::TempDir dir;
  for (const char* name : {"gpt-oss-mxfp4", "olmoe"}) {
    const auto other = open(name, 0);
    const model::ExpertIndex index = other->model().expert_index();
    for (const double cycles : {1.0, 1.5, 2.5, 100.0}) {
      const auto bytes = static_cast<uint64_t>(cycles * static_cast<double>(index.cycle_bytes()));
      auto engine = open(name, bytes);
      const Trace trace = record(*engine, std::vector<int32_t>{5}, 80, dir / "trace");
      const model::ExpertStore::Stats stats = engine->experts()->stats();
      const Replay::Outcome outcome = Replay(trace).run(Policy::kStore, bytes);
      EXPECT_EQ(outcome.n_slots, engine->experts()->n_slots()) << name << cycles;
      EXPECT_EQ(outcome.all.requests, stats.requests) << name << cycles;
      EXPECT_EQ(outcome.all.hits, stats.hits + stats.foreseen) << name << cycles;
      EXPECT_EQ(outcome.all.bytes_read, stats.bytes_read) << name << cycles;
      EXPECT_EQ(outcome.decode.tokens, 80);
    }
  }
}

TEST(Trace, EveryChoiceIsInItOnce) {
  const test::TempDir dir;
  std::vector<int32_t> prompt(150);
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<int32_t>(i);
  for (const std::optional<uint64_t> cache : {std::optional<uint64_t>(), std::optional<uint64_t>(100000)}) {
    auto engine = open("olmoe", cache);
    const Trace trace = record(*engine, prompt, 20, dir / "trace");
    std::vector<uint64_t> counts(engine->runner().expert_counts().size());
    int64_t n_tokens = 0;
    for (size_t visit = 0; visit < trace.visits.size(); ++visit) {
      const size_t first = trace.visits[visit].layer * static_cast<size_t>(trace.n_experts);
      for (const int32_t expert : trace.routes_of(visit)) ++counts[first + static_cast<size_t>(expert)];
    }
    for (const Trace::Call& call : trace.calls) n_tokens += call.n_tokens;
    const auto want = engine->runner().expert_counts();
    EXPECT_EQ(counts, std::vector<uint64_t>(want.begin(), want.end()));
    EXPECT_EQ(n_tokens, 150 + 19);
    EXPECT_EQ(trace.model, "olmoe.gguf");
  }
}

TEST(Trace, OffItCostsNothingAndDenseModelsHaveNone) {
  auto engine = open("olmoe", {}, false);
  ASSERT_TRUE(engine->load({.positions = 64, .max_rows = 8}));
  EXPECT_TRUE(engine->runner().routes(0).empty());
  for (const Ledger::Line& line : engine->ledger().lines()) EXPECT_NE(line.name, "route trace");
  const test::TempDir dir;
  auto dense = open("llama", {});
  const auto writer = TraceWriter::create(dir / "trace", *dense);
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(dir / "trace"));
}

}  // namespace
}  // namespace stoker::engine
