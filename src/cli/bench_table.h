// How `stoker bench` writes its rows.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/bench.h"

namespace stoker::cli {

enum class TableFormat { kText, kMarkdown, kJson, kCsv };

/// A row with what it was measured on.
struct BenchRecord {
  std::string model;  ///< The file's name.
  std::string kv_type, isa;
  int threads = 0;
  engine::BenchRow row;
  std::optional<double> bandwidth_share{}, int8_share{};  ///< Of what the machine was measured to give.
  std::optional<double> ratio{};                          ///< To an older run.
};

/// The keys and values of a row in JSON, those of --compare too.
nlohmann::ordered_json to_json(const BenchRecord& record, bool compares);

/// Rows one after the other: text and Markdown come at once, so that a long table can be watched; so does CSV. JSON is
/// one array at the end.
class BenchTable {
 public:
  /// `models` decide the width of their column.
  BenchTable(TableFormat format, const std::vector<std::string>& models, bool compares);
  /// What is to be written for a further row.
  std::string add(const BenchRecord& record);
  /// What is to be written at the end, after the last row or when it was cut short.
  std::string finish();

 private:
  const TableFormat format_;
  const bool compares_;
  bool has_energy_ = false;  ///< Text has a column of it if the first row does.
  size_t model_width_ = 5;
  size_t n_rows_ = 0;
};

}  // namespace stoker::cli
