#include "engine/profile.h"

#include <sys/resource.h>

#include <numeric>
#include <utility>

namespace stoker::engine {
namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

model::ExpertStore::Stats difference(model::ExpertStore::Stats after, const model::ExpertStore::Stats& before) {
  using Stats = model::ExpertStore::Stats;
  for (uint64_t Stats::*counter :
       {&Stats::requests, &Stats::hits, &Stats::joined, &Stats::foreseen, &Stats::misses, &Stats::ahead,
        &Stats::evictions, &Stats::pass_throughs, &Stats::cancelled, &Stats::errors, &Stats::bytes_read,
        &Stats::wait_ns, &Stats::disk_ns, &Stats::read_ns, &Stats::pack_ns}) {
    after.*counter -= before.*counter;
  }
  return after;
}

}  // namespace

uint64_t ProfilePhase::selections() const { return std::accumulate(routes.begin(), routes.end(), uint64_t{0}); }

int64_t ProfilePhase::unique(size_t layer, int64_t n_experts) const {
  int64_t n = 0;
  for (int64_t e = 0; e < n_experts; ++e) {
    n += routes[layer * static_cast<size_t>(n_experts) + static_cast<size_t>(e)] > 0;
  }
  return n;
}

ProfilePhase Profiler::now() const {
  ProfilePhase phase;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  phase.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  phase.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  phase.minor_faults = static_cast<uint64_t>(usage.ru_minflt);
  phase.major_faults = static_cast<uint64_t>(usage.ru_majflt);
  if (engine_.experts()) phase.experts = engine_.experts()->stats();
  if (engine_.units()) phase.units = engine_.units()->stats();
  const auto counts = engine_.runner().expert_counts();
  phase.routes.assign(counts.begin(), counts.end());
  return phase;
}

void Profiler::begin() {
  if (replays_ && engine_.experts()) engine_.experts()->remember_reads(true);
  paused_ = {};
  before_ = now();
}

void Profiler::pause() {
  if (!replays_ || !engine_.experts()) return;
  const ProfilePhase start = now();
  const model::ExpertStore::Replay replay = engine_.experts()->replay_reads();
  const ProfilePhase end = now();
  paused_.replay.bytes += replay.bytes;
  paused_.replay.ns += replay.ns;
  paused_.wall_seconds += end.wall_seconds - start.wall_seconds;
  paused_.cpu_seconds += end.cpu_seconds - start.cpu_seconds;
}

void Profiler::end(std::string name, int64_t tokens) {
  ProfilePhase phase = now();
  phase.name = std::move(name);
  phase.tokens = tokens;
  phase.wall_seconds -= before_.wall_seconds + paused_.wall_seconds;
  phase.cpu_seconds -= before_.cpu_seconds + paused_.cpu_seconds;
  phase.replay = paused_.replay;
  phase.minor_faults -= before_.minor_faults;
  phase.major_faults -= before_.major_faults;
  phase.experts = difference(phase.experts, before_.experts);
  phase.units = difference(phase.units, before_.units);
  for (size_t i = 0; i < phase.routes.size(); ++i) phase.routes[i] -= before_.routes[i];
  phases_.push_back(std::move(phase));
}

}  // namespace stoker::engine
