// The reports of `stoker plan`, as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "cli/plan_figures.h"
#include "engine/plan_report.h"

namespace stoker::cli {

struct PlanText {
  const engine::Engine& engine;
  const engine::PlanRun& run;
  const engine::PlanReport& report;
  const std::vector<engine::PlanReport>& limits;
  const PlanFigures& figures;
  std::string kv_type;
  int threads = 0;
};
std::string plan_text(const PlanText& plan);
std::string plan_json(const PlanText& plan);

}  // namespace stoker::cli
