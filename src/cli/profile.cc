#include "cli/profile.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/memory_limit.h"
#include "base/str_cat.h"
#include "cli/format.h"

namespace stoker::cli {
namespace {

using Stats = model::ExpertStore::Stats;

double share(uint64_t part, uint64_t all) { return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0; }

double seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

/// How much the disk had to do in so many seconds.
std::string disk_line(const Stats& s, double wall) {
  const double busy = seconds(s.disk_ns);
  std::string line = str_cat("disk at work ", fixed(wall > 0 ? 100 * busy / wall : 0, 1), " % of the time");
  if (s.disk_ns == 0 || s.bytes_read == 0) return line;
  return line + str_cat(", at ", fixed(static_cast<double>(s.bytes_read) / 1e9 / busy, 2), " GB/s with ",
                        fixed(share(s.read_ns, s.disk_ns), 1), " reads at once, packing ", fixed(seconds(s.pack_ns), 2),
                        " s of processors");
}

/// How much of the time the same reads take alone.
std::string replay_line(const engine::ProfilePhase& phase) {
  if (phase.replay.ns == 0) return {};
  const double again = seconds(phase.replay.ns), wall = phase.wall_seconds;
  return str_cat("; such reads alone: ", fixed(again, 3), " s at ",
                 fixed(static_cast<double>(phase.replay.bytes) / 1e9 / again, 2), " GB/s, ",
                 fixed(wall > 0 ? 100 * again / wall : 0, 1), " % of this");
}

/// Experts of a layer that were used, the fewest and the most of all layers.
std::pair<int64_t, int64_t> unique_range(const engine::ProfilePhase& phase, int64_t n_experts) {
  const size_t n_layers = phase.routes.size() / static_cast<size_t>(n_experts);
  std::pair<int64_t, int64_t> range{n_experts, 0};
  for (size_t layer = 0; layer < n_layers; ++layer) {
    const int64_t n = phase.unique(layer, n_experts);
    range = {std::min(range.first, n), std::max(range.second, n)};
  }
  return range;
}

nlohmann::json to_json(const Stats& s) {
  return {{"requests", s.requests},
          {"hits", s.hits},
          {"joined", s.joined},
          {"foreseen", s.foreseen},
          {"misses", s.misses},
          {"ahead", s.ahead},
          {"evictions", s.evictions},
          {"pass_throughs", s.pass_throughs},
          {"cancelled", s.cancelled},
          {"errors", s.errors},
          {"bytes_read", s.bytes_read},
          {"resident_bytes", s.resident_bytes},
          {"hit_rate", share(s.hits, s.requests)},
          {"wait_seconds", seconds(s.wait_ns)},
          {"disk_seconds", seconds(s.disk_ns)},
          {"read_seconds", seconds(s.read_ns)},
          {"pack_seconds", seconds(s.pack_ns)},
          {"in_flight_peak", s.in_flight_peak}};
}

nlohmann::json to_json(const engine::ProfilePhase& phase, const engine::Engine& engine) {
  nlohmann::json out = {{"name", phase.name},
                        {"tokens", phase.tokens},
                        {"wall_seconds", phase.wall_seconds},
                        {"cpu_seconds", phase.cpu_seconds},
                        {"minor_faults", phase.minor_faults},
                        {"major_faults", phase.major_faults}};
  if (engine.units()) out["layers"] = to_json(phase.units);
  const model::ExpertIndex& index = engine.model().expert_index();
  if (index.layers.empty()) return out;
  out["expert_selections"] = phase.selections();
  if (engine.experts()) out["experts"] = to_json(phase.experts);
  if (phase.replay.ns > 0) {
    out["replay"] = {{"seconds", seconds(phase.replay.ns)}, {"bytes_read", phase.replay.bytes}};
  }
  const auto n = static_cast<size_t>(index.n_experts);
  for (size_t i = 0; i < index.layers.size(); ++i) {
    const auto first = phase.routes.begin() + static_cast<std::ptrdiff_t>(i * n);
    out["routes"].push_back({{"layer", index.layers[i].layer},
                             {"unique", phase.unique(i, index.n_experts)},
                             {"counts", std::vector<uint64_t>(first, first + static_cast<std::ptrdiff_t>(n))}});
  }
  return out;
}

}  // namespace

std::string expert_line(const Stats& s) {
  std::string line =
      str_cat(s.requests, " requests, ", fixed(100 * share(s.hits, s.requests), 1), " % hits, ", s.misses, " misses");
  const auto add = [&](uint64_t n, const char* what) {
    if (n > 0) line += str_cat(", ", n, what);
  };
  add(s.foreseen, " read ahead"), add(s.joined, " joined"), add(s.evictions, " evicted");
  add(s.pass_throughs, " passed through"), add(s.cancelled, " cancelled"), add(s.errors, " failed");
  return line + str_cat(", ", format_bytes(s.bytes_read), " read, waited ", fixed(seconds(s.wait_ns), 2), " s");
}

std::string unit_line(const Stats& s) {
  std::string line = str_cat(s.misses, " parts read, ", format_bytes(s.bytes_read));
  if (s.errors > 0) line += str_cat(", ", s.errors, " failed");
  return line + str_cat(", waited ", fixed(seconds(s.wait_ns), 2), " s");
}

void print_profile(const engine::Profiler& profiler, const engine::Engine& engine) {
  const int64_t n_experts = engine.model().expert_index().n_experts;
  for (const engine::ProfilePhase& phase : profiler.phases()) {
    const unsigned long long faults = phase.minor_faults + phase.major_faults;
    std::fprintf(stderr, "profile: %s: %lld tokens, %.3f s, processors %.3f s, page faults %llu, from disk %llu\n",
                 phase.name.c_str(), static_cast<long long>(phase.tokens), phase.wall_seconds, phase.cpu_seconds,
                 faults, static_cast<unsigned long long>(phase.major_faults));
    if (engine.units()) {
      std::fprintf(stderr, "profile: %s: %s\n", phase.name.c_str(), unit_line(phase.units).c_str());
      std::fprintf(stderr, "profile: %s: %s\n", phase.name.c_str(), disk_line(phase.units, phase.wall_seconds).c_str());
    }
    if (phase.routes.empty()) continue;
    const auto [fewest, most] = unique_range(phase, n_experts);
    std::fprintf(stderr, "profile: %s: %llu expert selections, %lld to %lld different ones of %lld in a layer\n",
                 phase.name.c_str(), static_cast<unsigned long long>(phase.selections()),
                 static_cast<long long>(fewest), static_cast<long long>(most), static_cast<long long>(n_experts));
    if (engine.experts()) {
      std::fprintf(stderr, "profile: %s: %s\n", phase.name.c_str(), expert_line(phase.experts).c_str());
      std::fprintf(stderr, "profile: %s: %s%s\n", phase.name.c_str(),
                   disk_line(phase.experts, phase.wall_seconds).c_str(), replay_line(phase).c_str());
    }
  }
}

Status save_profile(const engine::Profiler& profiler, const engine::Engine& engine, OutputFile& to) {
  nlohmann::json out = {{"model", engine.file().path()}, {"phases", nlohmann::json::array()}};
  for (const engine::ProfilePhase& phase : profiler.phases()) out["phases"].push_back(to_json(phase, engine));
  STOKER_TRY_STATUS(to.write(out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"));
  return to.commit();
}

}  // namespace stoker::cli
