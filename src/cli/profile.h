// What `stoker run --profile` says.
#pragma once

#include <string>

#include "base/output_file.h"
#include "base/result.h"
#include "engine/profile.h"

namespace stoker::cli {

/// Counters of the expert store in a line, without its end.
std::string expert_line(const model::ExpertStore::Stats& stats);
/// Those of the store of streamed layers.
std::string unit_line(const model::ExpertStore::Stats& stats);
/// A few lines per phase, on standard error.
void print_profile(const engine::Profiler& profiler, const engine::Engine& engine);
/// The same as JSON with the route histogram.
Status save_profile(const engine::Profiler& profiler, const engine::Engine& engine, OutputFile& to);

}  // namespace stoker::cli
