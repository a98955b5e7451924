#include "engine/plan_report.h"

#include <algorithm>

#include "base/checked.h"
#include "model/exec.h"
#include "model/lookahead.h"

namespace stoker::engine {
namespace {

constexpr uint64_t kGiB = 1u << 30;
/// Of the missed experts, those that the router foresaw from the layer before (docs/expert-store.md#lookahead).
constexpr double kForeseen = 2.0 / 3;

/// What the ledger holds now, and what a run would add.
std::vector<Ledger::Line> lines_of(const Engine& engine, const PlanRun& run, const Placement& placement) {
  std::vector<Ledger::Line> lines = engine.ledger().lines();
  for (const Ledger::Line& line : engine.memory(run.needs, placement)) {
    const auto same = std::find_if(lines.begin(), lines.end(), [&](const auto& l) { return l.name == line.name; });
    if (same == lines.end()) {
      lines.push_back(line);
    } else {
      same->bytes += line.bytes;
    }
  }
  std::erase_if(lines, [](const Ledger::Line& line) { return line.bytes == 0; });
  return lines;
}

BenchCall one_token_each(const PlanRun& run) {
  BenchCall call;
  for (int64_t i = 0; i < run.parallel; ++i) call.push_back({.stream = i, .begin = 0, .end = 1, .wants_logits = true});
  return call;
}

class Reporter {
 public:
  Reporter(const Engine& engine, const PlanRun& run, const MachineRates& rates)
      : engine_(engine),
        run_(run),
        rates_(rates),
        index_(engine.model().expert_index()),
        lookahead_(engine.model().plan()) {}

  PlanReport operator()() {
    r_.limit = engine_.ledger().limit();
    r_.placement = engine_.placement(run_.needs);
    r_.lines = lines_of(engine_, run_, r_.placement);
    r_.bytes = total(r_.lines);
    const model::Model& model = engine_.model();
    r_.streamed_bytes = model.file_bytes() - model.file_bytes(r_.placement.residency);
    add_units();
    add_experts();
    if (model.config().causal) add_decode();
    add_prefill();
    return r_;
  }

 private:
  bool streams() const { return r_.placement.residency.stream_experts; }

  void add_units() {
    const model::ExpertIndex units = engine_.model().unit_index(r_.placement.residency);
    r_.n_units = units.layers.size();
    r_.unit_bytes = units.file_bytes();
    const std::vector<model::Unit>& all = engine_.model().units();
    const std::vector<bool>& streamed = r_.placement.residency.units;
    for (size_t i = 0; i < all.size(); ++i) {
      using Kind = model::Unit::Kind;
      PlanReport::Units& kind = all[i].kind == Kind::kAttention     ? r_.attention
                                : all[i].kind == Kind::kFeedForward ? r_.feed_forward
                                                                    : r_.output;
      if (i < streamed.size() && streamed[i]) kind.layers.push_back(&kind == &r_.output ? kind.n_all : all[i].layer);
      ++kind.n_all;
    }
  }

  void add_experts() {
    r_.expert_bytes = index_.bytes();
    for (const auto& layer : index_.layers) r_.n_experts += static_cast<int64_t>(layer.experts.size());
    if (!streams()) return;
    const uint64_t budget = r_.placement.expert_budget;
    r_.n_slots = model::ExpertStore::slots_for(index_, budget);
    r_.token_cycles = static_cast<double>(budget) / static_cast<double>(std::max<uint64_t>(1, index_.cycle_bytes()));
    // Slots beside the budget keep nothing.
    const double share = static_cast<double>(budget) / static_cast<double>(std::max<uint64_t>(1, index_.bytes()));
    r_.hit_rate = std::min({1.0, share, static_cast<double>(r_.n_slots) / static_cast<double>(r_.n_experts)});
  }

  /// Of each layer's experts, if this share of the active ones has to be read.
  std::vector<PassReads::Experts> missed_experts(const CallTraffic& traffic, double share) const {
    std::vector<PassReads::Experts> missed;
    for (size_t i = 0; streams() && i < index_.layers.size() && i < traffic.parts.size(); ++i) {
      const CallTraffic::Part& part = traffic.parts[i];
      const double n = part.active_experts * share;
      missed.push_back({.n = n,
                        .bytes = n * static_cast<double>(index_.layers[i].file_bytes()),
                        .foreseen = foreseen(i, part.expert_rows)});
    }
    return missed;
  }

  /// Of the missed experts of layer `index` among those that have any.
  double foreseen(size_t index, int64_t rows) const {
    if (model::reads_ahead(engine_.model().plan().moe, rows)) return 1;
    const bool guesses = engine_.options().expert_lookahead != model::LookaheadUse::kOff;
    if (!guesses || index == 0 || rows > model::Lookahead::kMostRows) return 0;
    using Sight = model::Lookahead::Sight;
    const Sight sight = lookahead_.sight(index);
    return sight == Sight::kToken ? 1 : sight == Sight::kRouter ? kForeseen : 0;
  }

  double missed_bytes(const CallTraffic& traffic, double share) const {
    double bytes = 0;
    for (const PassReads::Experts& layer : missed_experts(traffic, share)) bytes += layer.bytes;
    return bytes;
  }

  PassTime time_of(const CallTraffic& traffic, double missed_share) const {
    const int threads = engine_.options().threads;
    return pass_time(traffic, rates_,
                     {.experts = missed_experts(traffic, missed_share),
                      .spare = threads > 0 && threads < usable_cpus(),
                      .unit_bytes = static_cast<double>(r_.unit_bytes),
                      .n_units = static_cast<double>(r_.n_units)});
  }

  static PlanSpeed speed(double tokens, const PassTime& time) {
    return {.tokens = tokens / time.total, .least_tokens = tokens / time.least(), .bound = time.bound(), .time = time};
  }

  void add_decode() {
    const BenchCall call = one_token_each(run_);
    const CallTraffic after_prompt = call_traffic(engine_.model(), call, run_.prompt);
    const CallTraffic full = call_traffic(engine_.model(), call, run_.context - 1);
    const auto n = static_cast<double>(run_.parallel);
    r_.decode = speed(n, time_of(after_prompt, 1 - r_.hit_rate));
    r_.decode_full = speed(n, time_of(full, 1 - r_.hit_rate));
    for (const CallTraffic::Part& part : full.parts) {
      for (const CallTraffic::Product& p : part.products) {
        (p.of_experts ? r_.per_token.experts_memory : r_.per_token.dense) += p.bytes / n;
      }
    }
    r_.per_token.dense += full.sum(&CallTraffic::Part::embedding_bytes) / n;
    r_.per_token.experts_memory *= r_.hit_rate;
    r_.per_token.experts_disk = missed_bytes(full, 1 - r_.hit_rate) / n;
    r_.per_token.layers_disk = static_cast<double>(r_.unit_bytes) / n;
    r_.per_token.kv = full.sum(&CallTraffic::Part::kv_bytes) / n;
  }

  /// Passes one after the other; the first finds no expert, later ones as many as the cache holds.
  void add_prefill() {
    PassTime sum;
    double missed = 1;
    for (const BenchCall& call : bench_calls({.n = run_.prompt}, r_.placement.max_rows)) {
      const PassTime t = time_of(call_traffic(engine_.model(), call, 0), missed);
      for (double PassTime::*part : {&PassTime::dense, &PassTime::experts, &PassTime::attention, &PassTime::steps,
                                     &PassTime::disk, &PassTime::total, &PassTime::memory, &PassTime::arithmetic}) {
        sum.*part += t.*part;
      }
      missed = 1 - r_.hit_rate;
    }
    r_.prefill = speed(static_cast<double>(run_.prompt), sum);
  }

  const Engine& engine_;
  const PlanRun& run_;
  const MachineRates& rates_;
  const model::ExpertIndex& index_;
  const model::Lookahead lookahead_;
  PlanReport r_;
};

}  // namespace

Result<PlanRun> PlanRun::of(const Engine& engine, int64_t parallel) {
  PlanRun run{.parallel = parallel};
  const int64_t asked = engine.options().context, trained = engine.model().config().context_length;
  run.prompt = std::min(kPrompt, asked > 0 ? asked : trained);
  run.needs = {.positions = run.prompt,
               .max_rows = std::max(std::min(run.prompt, engine.options().batch), parallel),
               .prompt_rows = run.prompt,
               .max_logits = parallel,
               .n_sequences = parallel};
  STOKER_TRY(run.context, engine.context(run.needs, parallel));
  run.needs.positions = round_up<int64_t>(run.context, kernels::kTilePositions) * parallel;
  return run;
}

uint64_t resident_limit(const Engine& engine, const PlanRun& run) {
  return round_up<uint64_t>(total(lines_of(engine, run, Engine::resident(run.needs))), 1u << 20);
}

Result<PlanReport> plan_report(const Engine& engine, const PlanRun& run, const MachineRates& rates) {
  STOKER_TRY_STATUS(engine.fits(run.needs));
  return Reporter(engine, run, rates)();
}

std::vector<PlanReport> plan_limits(Engine& engine, const PlanRun& run, const MachineRates& rates) {
  const uint64_t before = engine.ledger().limit();
  const uint64_t smallest = engine.smallest_limit(run.needs), largest = resident_limit(engine, run);
  std::vector<uint64_t> limits = {smallest};
  for (uint64_t power = 1; power * kGiB < largest; power *= 2) {
    for (const uint64_t limit : {power * kGiB, power * kGiB / 2 * 3}) {
      if (limit > smallest && limit < largest) limits.push_back(limit);
    }
  }
  if (!engine.options().expert_cache_bytes && largest > smallest) limits.push_back(largest);
  std::vector<PlanReport> reports;
  for (const uint64_t limit : limits) {
    engine.set_limit(limit);
    if (auto report = plan_report(engine, run, rates)) reports.push_back(std::move(*report));
  }
  engine.set_limit(before);
  return reports;
}

std::vector<gguf::TensorType> plan_types(const Engine& engine) {
  std::vector<gguf::TensorType> types;
  for (const CallTraffic::Part& part : call_traffic(engine.model(), {{.end = 1, .wants_logits = true}}, 0).parts) {
    for (const CallTraffic::Product& p : part.products) {
      if (std::find(types.begin(), types.end(), p.type) == types.end()) types.push_back(p.type);
    }
  }
  return types;
}

}  // namespace stoker::engine
