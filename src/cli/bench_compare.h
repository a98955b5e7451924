#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/bench_table.h"

namespace stoker::cli {

/// The rows of an older run, as `stoker bench --json` wrote them.
class OldRun {
 public:
  /// kNotFound, kIo; kInvalidArgument: no such rows. All name the file.
  static Result<OldRun> read(const std::string& path);
  /// Tokens per second now to those then, for the same model, test, threads and type of the cache.
  std::optional<double> ratio(const BenchRecord& record) const;

 private:
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
};

}  // namespace stoker::cli
