#include "engine/plan_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "engine/bench_case.h"
#include "engine/synth.h"
#include "model/lookahead.h"
#include "tests/base/temp_dir.h"
#include "tests/model/golden.h"

namespace stoker::engine {
namespace {

constexpr uint64_t kMiB = 1u << 20;
const char* const kMixtures[] = {"gpt-oss-mxfp4", "mixtral", "olmoe", "qwen2moe", "qwen3moe"};

MachineRates rates() {
  return {.read = 20e9, .steady_read = 20e9, .int8_ops = 500e9, .float_ops = 100e9, .kernels = {}, .disk = 1e9};
}

std::unique_ptr<Engine> open(const std::string& name, EngineOptions options = {}) {
  options.path = model::testing::tiny_path(name);
  if (options.memory_bytes == 0) options.memory_bytes = 1u << 30;
  auto engine = Engine::open(std::move(options));
  if (!engine) {
    ADD_FAILURE() << engine.error().message;
    std::abort();
  }
  return std::move(*engine);
}

PlanRun run_of(const Engine& engine, int64_t parallel = 1) {
  auto run = PlanRun::of(engine, parallel);
  if (!run) ADD_FAILURE() << run.error().message;
  return run ? *run : PlanRun{};
}

std::map<std::string, uint64_t> by_name(const std::vector<Ledger::Line>& lines, bool peak) {
  std::map<std::string, uint64_t> bytes;
  for (const Ledger::Line& line : lines) {
    // What is in the page cache is no need of the run.
    if (line.name != "page cache") bytes[line.name] += peak ? line.peak : line.bytes;
  }
  return bytes;
}

TEST(PlanReport, LinesAreThoseOfTheLedgerOnceLoaded) {
  for (const auto& name : {"llama", "gemma3", "gpt-oss-mxfp4", "olmoe", "deepseek2"}) {
    for (const std::optional<uint64_t> cache : {std::optional<uint64_t>(), std::optional<uint64_t>(200'000)}) {
      if (cache && std::string(name) != "olmoe" && std::string(name) != "gpt-oss-mxfp4") continue;
      auto engine = open(name, {.expert_cache_bytes = cache});
      const PlanRun run = run_of(*engine, 2);
      const auto report = plan_report(*engine, run, rates());
      ASSERT_TRUE(report) << report.error().message;
      uint64_t sum = 0;
      for (const Ledger::Line& line : report->lines) sum += line.bytes;
      EXPECT_EQ(report->bytes, sum);
      const Status status = engine->load(run.needs);
      ASSERT_TRUE(status) << status.error().message;
      EXPECT_EQ(by_name(report->lines, false), by_name(engine->ledger().lines(), true)) << name;
      EXPECT_EQ(report->placement.max_rows, engine->placement().max_rows);
      EXPECT_EQ(report->placement.residency.stream_experts, engine->experts() != nullptr);
      EXPECT_EQ(report->n_slots, engine->experts() ? engine->experts()->n_slots() : 0);
    }
  }
}

TEST(PlanReport, SlotsAreThoseOfTheStoreAtAnyLimit) {
  for (const char* name : kMixtures) {
    uint64_t smallest = 0;
    {
      auto engine = open(name);
      smallest = engine->smallest_limit(run_of(*engine).needs);
    }
    for (const uint64_t more : {0, 1, 2}) {
      auto engine = open(name, {.memory_bytes = smallest + more * kMiB, .context = 256});
      const PlanRun run = run_of(*engine);
      const auto report = plan_report(*engine, run, rates());
      if (!report) continue;  // a longer context than the smallest's
      ASSERT_TRUE(engine->load(run.needs));
      EXPECT_EQ(report->n_slots, engine->experts() ? engine->experts()->n_slots() : 0) << name << " + " << more;
    }
  }
}

TEST(PlanReport, TheSmallestLimitWorksAndOneMiBLessDoesNot) {
  for (const auto& name : {"llama", "gpt-oss-mxfp4", "mixtral"}) {
    auto engine = open(name, {.context = 1024});
    const PlanRun run = run_of(*engine);
    const uint64_t smallest = engine->smallest_limit(run.needs);
    engine->set_limit(smallest);
    EXPECT_TRUE(engine->fits(run.needs)) << name;
    engine->set_limit(smallest - kMiB);
    const Status status = engine->fits(run.needs);
    ASSERT_FALSE(status) << name;
    EXPECT_EQ(status.error().code, ErrorCode::kOutOfMemory);
    EXPECT_NE(status.error().message.find(std::to_string(smallest / kMiB) + "M"), std::string::npos);
    EXPECT_FALSE(plan_report(*engine, run, rates()));
    engine->set_limit(0);
    EXPECT_TRUE(engine->load(run.needs)) << "the lines held before are kept";
  }
}

/// The header of a shape, whose weights are nowhere.
struct Shape {
  std::string header;
  std::unique_ptr<Engine> engine;
  explicit Shape(const std::string& name, EngineOptions options = {}) {
    auto synth = Synth::plan({.shape = name});
    header = synth->header().value();
    auto file = gguf::File::parse(std::as_bytes(std::span(header)), name, {.header_only = true});
    if (!file) {
      ADD_FAILURE() << file.error().message;
      std::abort();
    }
    options.path = name;
    engine = std::move(*Engine::open(std::move(options), std::move(*file)));
  }
};

TEST(PlanLimits, MoreMemoryIsNeverSlower) {
  Shape shape("gpt-oss-20b", {.memory_bytes = 6ull << 30, .threads = 2, .threads_exact = true, .context = 4096});
  for (const int64_t parallel : {1, 4, 32}) {
    const PlanRun run = run_of(*shape.engine, parallel);
    const auto reports = plan_limits(*shape.engine, run, rates());
    ASSERT_GE(reports.size(), 5u);
    EXPECT_EQ(shape.engine->ledger().limit(), 6ull << 30);
    for (size_t i = 1; i < reports.size(); ++i) {
      EXPECT_LT(reports[i - 1].limit, reports[i].limit);
      EXPECT_LE(reports[i - 1].decode.tokens, reports[i].decode.tokens) << parallel << ", " << i;
      EXPECT_LE(reports[i - 1].hit_rate, reports[i].hit_rate);
      EXPECT_LE(reports[i].bytes, reports[i].limit);
    }
    EXPECT_TRUE(reports.front().placement.residency.stream_experts);
    EXPECT_FALSE(reports.back().placement.residency.stream_experts);
    EXPECT_EQ(reports.back().hit_rate, 1);
    EXPECT_EQ(reports.back().per_token.experts_disk, 0);
    EXPECT_EQ(reports.back().limit, resident_limit(*shape.engine, run));
  }
}

/// Every limit from the smallest on works, with ever less on disk, and all that fits in memory.
TEST(PlanPlacement, AsFewLayersOnDiskAsNeedBe) {
  for (const char* name : {"llama-3.2-1b", "qwen3-0.6b", "gpt-oss-20b", "deepseek-moe-16b", "mixtral-8x7b"}) {
    Shape shape(name, {.memory_bytes = 1ull << 40, .context = 1024});
    Engine& engine = *shape.engine;
    const PlanRun run = run_of(engine);
    const uint64_t smallest = engine.smallest_limit(run.needs), whole = resident_limit(engine, run);
    EXPECT_LT(smallest, whole * 2 / 3) << name;
    engine.set_limit(smallest - kMiB);
    EXPECT_FALSE(engine.fits(run.needs)) << name;
    uint64_t in_memory = 0;
    for (uint64_t limit = smallest; limit < whole - kMiB; limit += (whole - smallest) / 20) {
      engine.set_limit(limit);
      EXPECT_TRUE(engine.fits(run.needs)) << name << " in " << limit;
      const Placement p = engine.placement(run.needs);
      EXPECT_TRUE(p.residency.streams() || p.residency.read_embedding) << name << " in " << limit;
      uint64_t bytes = p.expert_budget, largest = 0;
      for (const model::Unit& unit : engine.model().units()) largest = std::max(largest, unit.bytes());
      for (const Ledger::Line& line : engine.memory(run.needs, p)) bytes += line.name == "weights" ? line.bytes : 0;
      EXPECT_GE(bytes + largest, in_memory) << name << " in " << limit;
      in_memory = bytes;
      if (!p.residency.streams_units()) continue;
      // With one more in memory it would not fit, not even with one slot less.
      const auto n = std::count(p.residency.units.begin(), p.residency.units.end(), true);
      EXPECT_TRUE(p.residency.ring_slots == 2 || p.residency.ring_slots == 3);
      uint64_t room = limit - total(engine.ledger().lines()) - total(engine.memory(run.needs, p));
      EXPECT_TRUE(room < 2 * largest + 4 * kMiB || n == 0) << name << " in " << limit << ": " << room;
    }
    engine.set_limit(whole);
    EXPECT_FALSE(engine.placement(run.needs).residency.streams()) << name;
  }
}

/// Weights enough that a limit can be too small for them.
TEST(PlanPlacement, ADenseModelRunsInTheSmallestLimit) {
  test::TempDir folder;
  const std::string path = folder / "m.gguf";
  auto pool = Pool::create({.n_threads = 2});
  Ledger ledger;
  ASSERT_TRUE(Synth::plan({.shape = "tiny-llama", .type = "f32", .n_layers = 32})->write(path, **pool, ledger));
  const std::vector<int32_t> tokens = {5, 3, 90, 17, 8, 9, 10};
  std::vector<float> want;
  uint64_t smallest = 0;
  for (const uint64_t limit : {uint64_t{0}, uint64_t{1}, uint64_t{2}}) {
    auto engine = Engine::open({.path = path,
                                .memory_bytes = limit == 0 ? 1ull << 30 : smallest + (limit - 1) * 4 * kMiB,
                                .threads = 2,
                                .threads_exact = true,
                                .context = 64,
                                .batch = 4});
    ASSERT_TRUE(engine) << engine.error().message;
    const Engine::Needs needs{.positions = 64, .max_rows = 4, .prompt_rows = 7};
    if (limit == 0) smallest = (*engine)->smallest_limit(needs);
    const Status status = (*engine)->load(needs);
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ((*engine)->units() != nullptr, limit > 0);
    EXPECT_LE((*engine)->ledger().used(), (*engine)->ledger().limit());
    model::Sequence sequence((*engine)->kv());
    std::vector<float> got;
    for (size_t at = 0; at < tokens.size();) {
      const auto rows = std::min<size_t>(tokens.size() - at, static_cast<size_t>((*engine)->runner().max_rows()));
      const model::Span span{.sequence = &sequence,
                             .tokens = std::span(tokens).subspan(at, rows),
                             .position = sequence.length(),
                             .logits = {static_cast<int64_t>(rows) - 1, static_cast<int64_t>(rows)}};
      const auto outputs = (*engine)->runner().forward({&span, 1});
      ASSERT_TRUE(outputs && outputs->failures.empty());
      got.assign(outputs->logits_row(0), outputs->logits_row(0) + (*engine)->model().vocab_size());
      at += rows;
    }
    if (limit == 0) want = got;
    EXPECT_TRUE(std::equal(got.begin(), got.end(), want.begin(), want.end())) << limit;
  }
  EXPECT_LT(smallest, 64 * kMiB);
}

TEST(PlanReport, LayersOnDiskBoundATokenAndOnePromptAlike) {
  Shape shape("llama-3.2-1b", {.memory_bytes = 1ull << 40, .context = 1024});
  Engine& engine = *shape.engine;
  const PlanRun run = run_of(engine);
  engine.set_limit((engine.smallest_limit(run.needs) + resident_limit(engine, run)) / 2);
  const auto report = plan_report(engine, run, rates());
  ASSERT_TRUE(report);
  EXPECT_GT(report->n_units, 0);
  EXPECT_LT(report->n_units, engine.model().units().size());
  const auto bytes = static_cast<double>(report->unit_bytes);
  EXPECT_EQ(report->per_token.layers_disk, bytes);
  EXPECT_LE(bytes, static_cast<double>(report->streamed_bytes));
  EXPECT_EQ(report->decode.bound, Bound::kDisk);
  EXPECT_DOUBLE_EQ(report->decode.time.disk, bytes / rates().disk);
  EXPECT_GE(report->placement.max_rows, run.prompt);
  EXPECT_DOUBLE_EQ(report->prefill.time.disk, bytes / rates().disk);  // read once
}

TEST(PlanReport, AnExpertComesFromTheCacheOrFromTheDisk) {
  Shape shape("gpt-oss-20b", {.memory_bytes = 4ull << 30, .context = 4096});
  const auto report = plan_report(*shape.engine, run_of(*shape.engine), rates());
  ASSERT_TRUE(report);
  // 24 layers, 4 of 32 experts, 17 bytes for 32 weights, three matrices of 2880 * 2880; the last layer as all others.
  const double expert = 3 * 2880.0 * 2880 * 17 / 32, token = 24 * 4 * expert;
  EXPECT_NEAR(report->per_token.experts_disk, token * (1 - report->hit_rate), 1);
  EXPECT_GT(report->hit_rate, 0.1);
  EXPECT_LT(report->hit_rate, 0.3);
  EXPECT_NEAR(report->token_cycles * 4 / 32, report->hit_rate, 0.01);
  EXPECT_EQ(report->decode.bound, Bound::kDisk);
  EXPECT_NEAR(report->decode.least_tokens, 1e9 / report->per_token.experts_disk, 1e-3);
  EXPECT_LT(report->decode.tokens, report->decode.least_tokens);
  EXPECT_LE(report->decode_full.tokens, report->decode.tokens);  // K and V are read while the disk is
}

TEST(PlanReport, SequencesShareWhatTheyChoose) {
  Shape shape("gpt-oss-20b", {.memory_bytes = 5ull << 30, .context = 1024});
  const auto one = plan_report(*shape.engine, run_of(*shape.engine, 1), rates());
  const auto eight = plan_report(*shape.engine, run_of(*shape.engine, 8), rates());
  ASSERT_TRUE(one && eight);
  const double shared = (1 - std::pow(1 - 4.0 / 32, 8)) * 32 / 4 / 8;
  EXPECT_NEAR(eight->per_token.experts_disk / (1 - eight->hit_rate),
              one->per_token.experts_disk / (1 - one->hit_rate) * shared, 1);
  EXPECT_NEAR(eight->per_token.dense, one->per_token.dense / 8, one->per_token.dense / 50);
}

/// Of each of so many layers, these missed experts.
std::vector<PassReads::Experts> missed(size_t n_layers, PassReads::Experts of_each) {
  return std::vector<PassReads::Experts>(n_layers, of_each);
}

TEST(PassTime, NamesTheBound) {
  const auto gpt = open("gpt-oss-mxfp4");
  const CallTraffic token = call_traffic(gpt->model(), {{.end = 1, .wants_logits = true}}, 0);
  const CallTraffic prompt = call_traffic(gpt->model(), {{.end = 512, .wants_logits = true}}, 0);
  MachineRates machine = rates();
  EXPECT_EQ(pass_time(token, machine, {}).bound(), Bound::kMemory);
  EXPECT_EQ(pass_time(prompt, machine, {}).bound(), Bound::kArithmetic);
  const PassReads reads{.experts = missed(1, {.n = 1, .bytes = 1e6})};
  EXPECT_EQ(pass_time(token, machine, reads).bound(), Bound::kDisk);
  machine.disk = 1e15;
  EXPECT_EQ(pass_time(token, machine, reads).bound(), Bound::kMemory);
  machine.int8_ops = 1e6;
  EXPECT_EQ(pass_time(token, machine, {}).bound(), Bound::kArithmetic);
}

/// Four layers that each take 0.02 s before their experts, which take 0.05 s; 0.02 s behind the last.
CallTraffic four_layers() {
  const CallTraffic::Product dense{.type = gguf::TensorType::kQ8_0, .rows = 1, .bytes = 0.2e9};
  const CallTraffic::Product experts{.type = gguf::TensorType::kQ8_0, .rows = 1, .bytes = 0.5e9, .of_experts = true};
  CallTraffic call{.parts = {4, {.products = {dense, experts}, .expert_rows = 1, .active_experts = 4}}};
  call.parts.push_back({.products = {dense}});
  return call;
}

/// 10e9 bytes a second in every respect, with memory that is usually as fast as at best.
MachineRates ten_a_second() {
  MachineRates machine = rates();
  machine.read = 0.85 * machine.steady_read;
  machine.kernels = {{gguf::TensorType::kQ8_0, 1, 10e9}};
  return machine;
}

TEST(PassTime, WhatOverlapsIsCountedOnce) {
  const CallTraffic call = four_layers();
  const MachineRates machine = ten_a_second();
  const auto total = [&](PassReads::Experts of_each, bool spare = true) {
    return pass_time(call, machine, {.experts = missed(4, of_each), .spare = spare}).total;
  };
  const double work = 4 * 0.07 + 0.02;
  EXPECT_NEAR(pass_time(call, machine, {}).total, work, 1e-12);
  constexpr double kOfDisk = 0.8 * 1e9;  // bytes that the store gets in a second
  EXPECT_NEAR(total({.n = 1, .bytes = 0.04 * kOfDisk}), work, 1e-12) << "read beside the experts that are there";
  EXPECT_NEAR(total({.n = 1, .bytes = 0.06 * kOfDisk}), 4 * 0.08 + 0.02, 1e-12) << "not known before the router";
  EXPECT_NEAR(total({.n = 1, .bytes = 0.06 * kOfDisk, .foreseen = 1}), work, 1e-12) << "beside the dense part too";
  EXPECT_NEAR(total({.n = 1, .bytes = 0.2 * kOfDisk, .foreseen = 1}), 4 * 0.2 + 0.02, 1e-12);
  EXPECT_NEAR(total({.n = 1, .bytes = 0.2 * kOfDisk, .foreseen = 0.5}), 4 * 0.2 + 0.02, 1e-12)
      << "what was not foreseen follows it";
  EXPECT_NEAR(total({.n = 1, .bytes = 0.2 * kOfDisk, .foreseen = 0.05}), 4 * (0.02 + 0.95 * 0.2) + 0.02, 1e-12);
  EXPECT_NEAR(pass_time(call, machine, {.experts = {{.n = 1, .bytes = 0.2 * kOfDisk, .foreseen = 1}}}).total,
              0.2 + work - 0.07, 1e-12)
      << "one layer cannot wait for another's";
}

TEST(PassTime, ReadingTakesProcessorsFromThoseWhoMultiply) {
  const CallTraffic call = four_layers();
  const MachineRates machine = ten_a_second();
  const auto total = [&](PassReads::Experts of_each) {
    return pass_time(call, machine, {.experts = missed(4, of_each)}).total;
  };
  const double work = 4 * 0.07 + 0.02, bytes = 0.04e9 * 0.8;
  EXPECT_NEAR(total({.n = 1, .bytes = bytes, .foreseen = 1}), work + 4 * 3 * bytes / machine.steady_read, 1e-12)
      << "packing moves each byte three times";
  EXPECT_NEAR(total({.n = 1, .bytes = 0.16e9}), 4 * (0.02 + 1.1e-3 + 0.2) + 0.02, 1e-12) << "a thread wakes late";
  EXPECT_NEAR(total({.n = 0.1, .bytes = 0.16e9}), 4 * (0.02 + 1.1e-4 + 0.2) + 0.02, 1e-12) << "in one of ten layers";
}

TEST(PassTime, TheDiskHasNoPauseBetweenPartsOfLayers) {
  const CallTraffic call = four_layers();
  const MachineRates machine = ten_a_second();
  EXPECT_NEAR(pass_time(call, machine, {.unit_bytes = 0.9e9, .n_units = 10}).total, 0.9 + 0.03, 1e-12);
  EXPECT_NEAR(pass_time(call, machine, {.unit_bytes = 0.1e9, .n_units = 10}).total, 0.3 + 0.01, 1e-12);
  const PassReads both{.experts = missed(4, {.n = 1, .bytes = 0.02e9, .foreseen = 1}),
                       .spare = true,
                       .unit_bytes = 0.9e9,
                       .n_units = 10};
  EXPECT_NEAR(pass_time(call, machine, both).total, 1.0 + 0.03, 1e-12);
}

TEST(PlanReport, WhatATokenChoosesIsKnownBeforeTheLayer) {
  // All layers but the first of gpt-oss are guessed. DeepSeek V4's routers read mixed streams, but for those that go by
  // the token.
  for (const auto& [shape, n_layers, foreseen] :
       {std::tuple{"gpt-oss-20b", 24, 23}, std::tuple{"deepseek-v4-flash", 43, 2}}) {
    using Sight = model::Lookahead::Sight;
    Shape model(shape, {.memory_bytes = 1ull << 40, .context = 1024});
    const model::Lookahead lookahead(model.engine->model().plan());
    int n = 0;
    for (int i = 1; i < n_layers; ++i) n += lookahead.sight(static_cast<size_t>(i)) != Sight::kNone;
    EXPECT_EQ(n, foreseen) << shape;
    EXPECT_EQ(lookahead.sight(static_cast<size_t>(n_layers)), Sight::kNone);
  }
}

TEST(PlanReport, GuessingHidesReadsBehindTheDensePart) {
  double tokens[2];
  for (const bool guesses : {false, true}) {
    EngineOptions options{.memory_bytes = 10ull << 30, .context = 1024};
    if (!guesses) options.expert_lookahead = model::LookaheadUse::kOff;
    Shape model("gpt-oss-20b", options);
    tokens[guesses] = plan_report(*model.engine, run_of(*model.engine), rates())->decode.tokens;
  }
  EXPECT_GT(tokens[1], 1.1 * tokens[0]);
}

TEST(MachineRates, KernelsLieOnLinesBetweenWhatWasMeasured) {
  using gguf::TensorType;
  MachineRates machine = rates();
  machine.kernels = {{TensorType::kQ8_0, 1, 10e9}, {TensorType::kQ8_0, 16, 5e9}, {TensorType::kQ8_0, 512, 0.5e9}};
  // A piece sees memory at its best, a token as it usually is.
  const double longer = 1 / 17e9 - 1 / 20e9;
  EXPECT_DOUBLE_EQ(machine.seconds_per_byte(TensorType::kQ8_0, 1), 1e-10 + longer);
  EXPECT_DOUBLE_EQ(machine.seconds_per_byte(TensorType::kQ8_0, 8.5), 1.5e-10 + longer);
  EXPECT_DOUBLE_EQ(machine.seconds_per_byte(TensorType::kQ8_0, 512), 2e-9 + longer);
  EXPECT_DOUBLE_EQ(machine.seconds_per_byte(TensorType::kQ8_0, 1024), 4e-9 + longer);
  // Of a type that was not measured: memory's rate for one row, the instruction's for many.
  EXPECT_NEAR(machine.seconds_per_byte(TensorType::kQ4_0, 1), 1 / 17e9, 1e-12);
  EXPECT_GT(machine.seconds_per_byte(TensorType::kQ4_0, 512), 100 / 20e9);
}

}  // namespace
}  // namespace stoker::engine
