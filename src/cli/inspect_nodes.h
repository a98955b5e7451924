// What `stoker inspect --plan` says of memory nodes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/memory_nodes.h"
#include "model/model.h"

namespace stoker::cli {

/// How a run with so many workers would be placed on a machine with these nodes.
struct NodeReport {
  std::vector<MemoryNode> nodes{};
  NodeSplit split{};
  model::PageNodes weights{};  ///< Empty where there is one node.
  bool interleaves = false;

  static NodeReport of(const model::Model& model, std::vector<MemoryNode> nodes, int n_workers);
};

std::string nodes_text(const NodeReport& report);
nlohmann::json nodes_json(const NodeReport& report);

}  // namespace stoker::cli
