#include "cli/inspect_nodes.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/huge_pages.h"
#include "base/memory_limit.h"
#include "base/str_cat.h"
#include "cli/format.h"

namespace stoker::cli {
namespace {

double near_share(const NodeReport& report) {
  const model::PageNodes& weights = report.weights;
  if (weights.split_bytes == 0) return 1;
  return static_cast<double>(weights.near_bytes) / static_cast<double>(weights.split_bytes);
}

std::string huge_pages_text() {
  const std::string refusal = huge_pages_refusal();
  return refusal.empty() ? "huge pages     granted\n"
                         : str_cat("huge pages     refused, which is slower: ", refusal, "\n");
}

}  // namespace

NodeReport NodeReport::of(const model::Model& model, std::vector<MemoryNode> nodes, int n_workers) {
  NodeReport report{.nodes = std::move(nodes)};
  report.split = NodeSplit(report.nodes, n_workers);
  if (report.split.n_nodes() == 1) return report;
  report.weights = model.page_nodes(report.split);
  report.interleaves = can_interleave(report.split.ids());
  return report;
}

std::string nodes_text(const NodeReport& report) {
  const NodeSplit& split = report.split;
  std::string out = huge_pages_text() + "memory         ";
  if (split.n_nodes() == 1) {
    out += report.nodes.size() == 1 ? "one node\n" : str_cat("node ", split.node(0).id, " alone has workers\n");
    return out;
  }
  for (int i = 0; i < split.n_nodes(); ++i) {
    out += str_cat(i > 0 ? ", " : "", "node ", split.node(i).id, ": ", split.workers(i).size(), " workers, ",
                   format_bytes(report.weights.bytes[static_cast<size_t>(i)]), " of weights");
  }
  out +=
      line("\n               %.1f %% of what products read lies on the node that reads it\n", 100 * near_share(report));
  out += report.interleaves
             ? "               key-value pages and expert slots come from these nodes in turn\n"
             : "               key-value pages and expert slots come from where they are first touched: the system "
               "refuses mbind\n";
  return out;
}

nlohmann::json nodes_json(const NodeReport& report) {
  nlohmann::json nodes = nlohmann::json::array();
  for (const MemoryNode& node : report.nodes) {
    nodes.push_back({{"node", node.id}, {"cpus", node.cpus}, {"workers", 0}, {"weight_bytes", 0}});
    for (int i = 0; i < report.split.n_nodes(); ++i) {
      if (report.split.node(i).id != node.id) continue;
      nodes.back()["workers"] = report.split.workers(i).size();
      if (!report.weights.bytes.empty()) {
        nodes.back()["weight_bytes"] = report.weights.bytes[static_cast<size_t>(i)];
      }
    }
  }
  return {{"nodes", nodes},
          {"placed", report.split.n_nodes() > 1},
          {"near_share", near_share(report)},
          {"interleaves", report.interleaves},
          {"huge_pages_refusal", huge_pages_refusal()}};
}

}  // namespace stoker::cli
