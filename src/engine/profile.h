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
  model::ExpertStore::Replay replay{};  ///< The same reads alone, where they were replayed.
  model::ExpertStore::Stats units{};    ///< As `experts`, of layers that are streamed.
  std::vector<uint64_t> routes{};       ///< [layers with experts][experts]: tokens that went there.

  uint64_t selections() const;
  /// Experts of a layer (by index among those with experts) that any token went to.
  int64_t unique(size_t layer, int64_t n_experts) const;
};

/// Takes the time of the phases of a run. Threads: one.
class Profiler {
 public:
  /// Phases begin once the engine is loaded; it must outlive this. `replay_reads`: what the phases read of streamed
  /// experts is read once more in pauses between calls of the model, without computing, so that a phase can be held
  /// against what the disk gives within the same second; a phase does not count its pauses.
  explicit Profiler(const Engine& engine, bool replay_reads = false) : engine_(engine), replays_(replay_reads) {}
  void begin();
  /// After a call of the model: here it may pause.
  void pause();
  /// What pauses have taken since `begin`.
  double paused_seconds() const { return paused_.wall_seconds; }
  /// Of what has happened since `begin`.
  void end(std::string name, int64_t tokens);
  const std::vector<ProfilePhase>& phases() const { return phases_; }

 private:
  ProfilePhase now() const;
  const Engine& engine_;
  const bool replays_;
  ProfilePhase before_;
  ProfilePhase paused_;  ///< What pauses took.
  std::vector<ProfilePhase> phases_;
};

}  // namespace stoker::engine
