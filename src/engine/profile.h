#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace stoker::engine {

/// What a part of a run took.
struct ProfilePhase {
  std::string name;
  int64_t tokens = 0;
  double wall_seconds = 0;
  double cpu_seconds = 0;  ///< Of all threads, the system's part included.
  uint64_t minor_faults = 0, major_faults = 0;
  /// Of the store, where experts are streamed: what was added, but for gauges and peaks, which are as they were at the
  /// end.
  model::ExpertStore::Stats experts{};
  std::vector<uint64_t> routes{};  ///< [layers with experts][experts]: tokens that went there.

  uint64_t selections() const;
  /// Experts of a layer (by index among those with experts) that any token went to.
  int64_t unique(size_t layer, int64_t n_experts) const;
};

/// Takes the time of the phases of a run. Threads: one.
class Profiler {
 public:
  /// A loaded engine, which must outlive it.
  explicit Profiler(const Engine& engine) : engine_(engine) {}
  void begin();
  /// Of what has happened since `begin`.
  void end(std::string name, int64_t tokens);
  const std::vector<ProfilePhase>& phases() const { return phases_; }

 private:
  ProfilePhase now() const;
  const Engine& engine_;
  ProfilePhase before_;
  std::vector<ProfilePhase> phases_;
};

}  // namespace stoker::engine
